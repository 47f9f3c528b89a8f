"""Dtypes in few letters, as annotations of graphs show them."""

from __future__ import annotations

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType

_LETTERS = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}


def _abbreviation(name: str) -> str:
    if name == "bool":
        return "b8"
    kind = name.rstrip("0123456789") if "_" not in name else "float"
    return _LETTERS[kind] + name[len(kind) :].replace("_", "")


#: dtype -> what stands for it: f32, i64, b8, f8e4m3fn.
dtype_abbrs: dict[DType, str] = {
    dtype: _abbreviation(dtype.name) for dtype in (*dtypes.ALL, *dtypes.FLOAT8)
}
