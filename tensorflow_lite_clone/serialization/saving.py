"""`save`: tensors, containers and whole modules into a checkpoint file."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import Any

import numpy as np

from tensorflow_lite_clone.serialization._archive import ALIGNMENT, ArchiveWriter, pieces, write_all
from tensorflow_lite_clone.serialization._files import folder_name, opened_to_write
from tensorflow_lite_clone.serialization._legacy import MAGIC_NUMBER, PROTOCOL_VERSION, SYSTEM
from tensorflow_lite_clone.serialization._options import options
from tensorflow_lite_clone.serialization._pickler import pickler
from tensorflow_lite_clone.serialization._storages import Collected

DEFAULT_PROTOCOL = 2


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to a path or a binary file object, in PyTorch's format.

    Tensors that share memory do so when they are loaded. A path's file appears complete or not
    at all: what stood there before stays until all is written. `pickle_module` is `pickle` or a
    module like it. Raises RuntimeError for a folder that does not exist and for tensors of
    several dtypes over one memory.
    """
    storages = Collected(() if _use_new_zipfile_serialization else (None,))
    stream = io.BytesIO()
    pickler(pickle_module, stream, pickle_protocol, storages).dump(obj)
    pickled = stream.getbuffer()
    with opened_to_write(f) as file:
        if not _use_new_zipfile_serialization:
            _write_legacy(file, pickled, storages, pickle_module, pickle_protocol)
            return
        with ArchiveWriter(file, folder_name(f)) as archive:
            archive.write("data.pkl", pickled)
            archive.write(".format_version", b"1")
            archive.write(".storage_alignment", str(ALIGNMENT).encode())
            if not _disable_byteorder_record:
                archive.write("byteorder", sys.byteorder.encode())
            for key in range(len(storages)):
                data = _contents(storages, key)
                archive.write(f"data/{key}", data, checked=not options.skips_data)


def _contents(storages: Collected, key: int) -> Any:
    if options.skips_data:
        return np.zeros(storages.nbytes(key), np.uint8)
    return storages.bytes_of(key)


def _write_legacy(
    file: Any, pickled: Any, storages: Collected, pickle_module: Any, protocol: int
) -> None:
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, SYSTEM):
        write_all(file, pickle_module.dumps(header, protocol=protocol))
    write_all(file, pickled)
    keys = range(len(storages))
    write_all(file, pickle_module.dumps([str(key) for key in keys], protocol=protocol))
    for key in keys:
        data = _contents(storages, key)
        write_all(file, struct.pack("<q", data.size // storages.itemsize(key)))
        for chunk in pieces(data):
            write_all(file, chunk)
