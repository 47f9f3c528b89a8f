"""`load`: checkpoint files of any of PyTorch's formats."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import sys
import warnings
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.serialization import _legacy
from tensorflow_lite_clone.serialization._archive import ArchiveReader, end_of
from tensorflow_lite_clone.serialization._files import is_archive, is_path, opened_to_read
from tensorflow_lite_clone.serialization._foreign import Sightings
from tensorflow_lite_clone.serialization._locations import Restorer, mapper
from tensorflow_lite_clone.serialization._names import find, is_torch
from tensorflow_lite_clone.serialization._options import LoadEndianness, options
from tensorflow_lite_clone.serialization._safe import DEFAULT, added
from tensorflow_lite_clone.serialization._storages import Loaded
from tensorflow_lite_clone.serialization._unpickler import Source, WeightsUnpickler

_UNSAFE = (
    "Weights only load failed. The file holds more than tensors and plain values, or is damaged. "
    "With `weights_only` set to `False` it may load, but that can run any code that whoever made "
    "the file has put into it: do so only if you trust the source.\n\tWeightsUnpickler error: "
)

_TRUSTED = (
    "weights_only=False can run any code that whoever made the file has put into it: leave it out "
    "unless the file needs it and you trust the source"
)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save`, or PyTorch's, wrote to a path or a binary file object that can seek.

    With `weights_only`, which is the default unless a `pickle_module` is given, a file can only
    have tensors, containers of Python's and what `add_safe_globals` lists; anything else is an
    UnpicklingError that names it. **With weights_only=False a file can run any code**: its names
    ``torch...`` mean this package's, all others are imported. It warns.

    `map_location` says where storages go: a device, a dictionary of tags such as ``{"cuda:0":
    "cpu"}``, or a function of a storage in host memory and its tag that gives a storage or None.
    With `mmap` the file, which must be a path, is mapped, and its parts are read when they are
    used; checksums are not compared then. `encoding` is that of text which Python 2 wrote.

    ``TORCH_FORCE_WEIGHTS_ONLY_LOAD=1`` in the environment overrules `weights_only`, and
    ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1`` makes it False where it is not given. Raises
    RuntimeError for broken archives and for devices that are not there, EOFError for files that
    end early.
    """
    weights_only = _weights_only(weights_only, pickle_module is None)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only is False:
        warnings.warn(_TRUSTED, stacklevel=level_outside())
    if mmap and not is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    restore = mapper(map_location)
    if weights_only and pickle_load_args.keys() - {"encoding"}:
        raise TypeError(
            "with weights_only the one argument for the unpickler is `encoding`, and there is "
            f"{', '.join(sorted(pickle_load_args))}"
        )
    unpickle = _Unpickling(weights_only, pickle_module or pickle, pickle_load_args)
    with opened_to_read(f) as file:
        if is_archive(file):
            archive = ArchiveReader(file, f, bool(mmap))
            return _load_archive(archive, unpickle, restore)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with "
                "`torch.save(_use_new_zipfile_serialization=True)`, please torch.save your "
                "checkpoint with this option in order to use mmap."
            )
        if _is_tar(file):
            raise RuntimeError(
                "this is a file in the legacy .tar format, which is not supported here: PyTorch "
                "can load it and save it anew"
            )
        return _legacy.load_legacy(file, unpickle, restore)


def _weights_only(given: bool | None, default: bool) -> bool:
    """What `load` does by its argument and by the environment."""
    forced, forbidden = [
        os.environ.get(f"TORCH_FORCE_{name}", "").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY_LOAD", "NO_WEIGHTS_ONLY_LOAD")
    ]
    if forced and forbidden:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if forced:
        return True
    if given is None and forbidden:
        return False
    return default if given is None else given


def _is_tar(file: Any) -> bool:
    start = file.tell()
    head = file.read(262)
    file.seek(start)
    return head[257:] == b"ustar"


def _load_archive(archive: ArchiveReader, unpickle: _Unpickling, restore: Restorer) -> Any:
    if "constants.pkl" in archive:
        raise RuntimeError(
            "this is an archive of TorchScript, which is not supported here: save the state_dict"
        )
    order = archive.read("byteorder").decode("ascii", "replace") if "byteorder" in archive else None
    if order is None:
        native = options.endianness is LoadEndianness.NATIVE
        big = options.endianness is LoadEndianness.BIG
        order = sys.byteorder if native else "big" if big else "little"
    if order not in ("little", "big"):
        raise ValueError(f"Unknown endianness type: {order}")
    if "version" in archive and archive.read("version").strip() not in _VERSIONS:
        raise RuntimeError("the file has a version that is not known: 1 to 10 are")

    def read(key: str, nbytes: int) -> Any:
        data = archive.bytes_of(f"data/{key}", not options.skips_data)
        if not 0 <= data.size - nbytes < 16:
            raise RuntimeError(f"storage {key} has {data.size} bytes, but is said to have {nbytes}")
        return data

    loaded = Loaded(read, restore, order != sys.byteorder)
    pickled = archive.read("data.pkl")
    result = unpickle(io.BytesIO(pickled), loaded.persistent_load, archive.size)
    unpickle.foreign.expect_none(result)
    return result


_VERSIONS = {str(number).encode() for number in range(1, 11)}


class _Unpickling:
    """Reads the next pickle of a file in the way that was asked for."""

    def __init__(self, weights_only: bool, module: Any, arguments: dict[str, Any]) -> None:
        self.weights_only = weights_only
        self.module = module
        self.arguments = arguments
        self.foreign = Sightings()

    def __call__(self, file: Any, persistent_load: Any, room: int = 0) -> Any:
        if self.weights_only:
            start = file.tell()
            left = end_of(file) - start
            file.seek(start)
            machine = WeightsUnpickler(Source(file, left), persistent_load, room, **self.arguments)
            machine.foreign = self.foreign
            try:
                return machine.load()
            except pickle.UnpicklingError as error:
                raise pickle.UnpicklingError(f"{_UNSAFE}{error}") from None
        base: Any = self.module.Unpickler
        foreign = self.foreign

        class TrustingUnpickler(base):
            """Imports whatever the file names; PyTorch's names mean this package's."""

            def find_class(self, module: str, name: str) -> Any:
                if is_torch(module):
                    return foreign.look_up(module, name) or find(module, name)
                return super().find_class(module, name)

        unpickler = TrustingUnpickler(file, **self.arguments)
        if persistent_load is not None:
            unpickler.persistent_load = persistent_load
        return unpickler.load()


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load` with `weights_only` would refuse, sorted.

    Raises ValueError for files that are no zip archives.
    """
    with opened_to_read(f) as file:
        if not is_archive(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        pickled = ArchiveReader(file).read("data.pkl")
    allowed = {f"{module}.{name}" for module, name in DEFAULT} | set(added())
    return sorted(names_in(pickled) - allowed)


def names_in(pickled: bytes) -> set[str]:
    """The full names of all globals in a pickle, without looking one up."""
    found: set[str] = set()
    texts: list[str] = []  # those last read: STACK_GLOBAL takes two
    memo: dict[int, str] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            module, name = argument.split(" ")
            found.add(_today(module, name))
        elif opcode.name == "STACK_GLOBAL":
            found.add(_today(*texts[-2:]))
        elif opcode.name == "MEMOIZE" or "PUT" in opcode.name:
            memo[len(memo) if argument is None else argument] = texts[-1] if texts else ""
        elif "GET" in opcode.name:
            texts.append(memo.get(argument, ""))
        elif isinstance(argument, str):
            texts.append(argument)
    return found


def _today(module: str, name: str) -> str:
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    return f"{module}.{name}"
