"""`save` and `load`: exported programs in files.

A file is a zip archive. ``format`` says what it is, and its version; ``program.json`` has the
graph, its signature and what is expected of the arguments; ``tensors.pt`` the tensors, as
`torch.save` writes them; ``extra/`` further files of the program that saved it. Loading runs no
code of the file: functions are operations and a few of Python's own, by their names.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from typing import IO, Any

from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.export._codec import decoded_program, encoded_program
from tensorflow_lite_clone.export.exported_program import ExportedProgram
from tensorflow_lite_clone.serialization import load as load_tensors
from tensorflow_lite_clone.serialization import save as save_tensors

_FORMAT = "tensorflow_lite_clone.export"
_VERSION = 1
#: A moment for all members: files of the same program are the same.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def save(
    ep: ExportedProgram,
    f: str | os.PathLike | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write an exported program to a path, whole or not at all, or to a file object.

    `extra_files` are texts or bytes by their names. The format is this package's own. TypeError for
    what is no `ExportedProgram`; ValueError for a constant in the graph that has no form in a file.

    >>> import io
    >>> file = io.BytesIO()
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> torch.export.save(program, file, extra_files={"note": "for the test"})
    >>> _ = file.seek(0)
    >>> torch.export.load(file).module()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead."
        )
    description, tensors = encoded_program(ep)
    weights = io.BytesIO()
    save_tensors(tensors, weights)
    members: dict[str, Any] = {
        "format": f"{_FORMAT}\n{_VERSION}\n",
        "program.json": json.dumps(description, allow_nan=False),
        "tensors.pt": weights.getvalue(),
    }
    for name, content in (extra_files or {}).items():
        members[f"extra/{name}"] = content if isinstance(content, bytes) else str(content)
    if isinstance(f, (str, os.PathLike)):
        with whole_file(f, "wb") as file:
            _write(file, members)
    else:
        _write(f, members)


def _write(file: IO[bytes], members: Mapping[str, Any]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), content)


def load(
    f: str | os.PathLike | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read what `save` wrote.

    The entries of `extra_files` are filled with the texts of their names. RuntimeError for what is
    no such file, and for a later version of the format. PyTorch's own archives are not read.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            names = set(archive.namelist())
            if "format" not in names:
                raise RuntimeError(
                    "torch.export.load: this is no file of tensorflow_lite_clone's torch.export."
                    "save (PyTorch's .pt2 archives are not read: export the module here)"
                )
            kind, version, *_ = archive.read("format").decode().split("\n")
            if kind != _FORMAT or int(version) > _VERSION:
                raise RuntimeError(
                    f"torch.export.load: the file is of {kind!r}, version {version}; expected "
                    f"{_FORMAT!r}, up to version {_VERSION}"
                )
            description = json.loads(archive.read("program.json"))
            tensors = load_tensors(io.BytesIO(archive.read("tensors.pt")), weights_only=True)
            for name in extra_files or ():
                if f"extra/{name}" in names:
                    extra_files[name] = archive.read(f"extra/{name}").decode()  # type: ignore[index]
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"torch.export.load: the file is no archive: {error}") from error
    return decoded_program(description, tensors)
