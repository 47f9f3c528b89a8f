"""Kinds of storages: PyTorch's typed ones, which name a dtype, and the one of plain bytes."""

from __future__ import annotations

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType


class StorageKind:
    """What a pickle names where it refers to a storage; `dtype` None means bytes."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: DType | None) -> None:
        self.name = name
        self.dtype = dtype

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return 1 if self.dtype is None else self.dtype.itemsize

    def __reduce__(self) -> tuple:
        return _called, (self.name,)

    def __repr__(self) -> str:
        return f"<storage kind {self.name}>"


UNTYPED = StorageKind("UntypedStorage", None)
#: By dtype; the larger unsigned integers have none and lie in untyped storages.
KINDS = {
    dtype: StorageKind(f"{dtype.short_name}Storage", dtype)
    for dtype in dtypes.ALL
    if dtype not in dtypes.ALOOF
} | {
    dtype: StorageKind(f"{dtype.short_name}Storage", codes)
    for dtype, codes in dtypes.QUANTIZED.items()
}
_NAMED = {kind.name: kind for kind in (UNTYPED, *KINDS.values())}


def _called(name: str) -> StorageKind:
    """The kind of this name."""
    return _NAMED[name]
