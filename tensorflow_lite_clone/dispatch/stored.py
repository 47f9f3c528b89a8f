"""What happens when NumPy refuses to do an op: dtypes that are stored only, sizes that overflow.

NumPy says TypeError to the former, ValueError or OverflowError to the latter. So whoever calls an
op comes here in these cases alone, and nothing else is slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from tensorflow_lite_clone.core.dtypes import FLOAT8, DType, float32
from tensorflow_lite_clone.core.errors import size_error
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.result_layout import elementwise

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend

#: What NumPy says where `calculated` is to be asked.
REFUSALS = (TypeError, ValueError, OverflowError)

#: What PyTorch calculates with such tensors, too: in float32.
_SERVED = {"abs", "addmm", "all", "any", "eq", "isnan", "linear", "mm", "ne"}
_UNSIGNED = {"all", "any", "eq", "isnan", "ne"}
#: What NumPy does with them and PyTorch does not.
REFUSED = frozenset(
    "count_nonzero cumprod cummax cummin cumsum digamma erf erfc erfcx erfinv gather "
    "histc i0 i0e i1 i1e igamma igammac kthvalue lgamma log_ndtr logcumsumexp logical_and "
    "logical_or logical_xor masked_fill median_of_all median_with_indices mode nanmedian_of_all "
    "nanmedian_with_indices ndtri search_sorted sort_with_indices topk tril triu unique_rows "
    "zeta".split()
)


def unserved(name: str, dtype: DType) -> NotImplementedError:
    """The error for an op that does not serve a dtype."""
    return NotImplementedError(f"\"{name}\" not implemented for '{dtype.short_name}'")


def refusing(name: str, backend: Backend, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, but NotImplementedError for arrays of such a dtype."""

    def checked(*arrays: Any, **parameters: Any) -> Any:
        dtype = arrays[0].dtype
        if getattr(dtype, "names", None) is not None:
            raise unserved(name, backend.dtypes[dtype])
        return call(*arrays, **parameters)

    return checked


def calculated(
    op: Any, backend: Backend, call: Callable[..., Any], arrays: Any, parameters: dict | None = None
) -> Any:
    """What an op gives to which NumPy has said one of the `REFUSALS`; NotImplementedError for most.

    RuntimeError where a size overflowed, or where operands of an elementwise op do not broadcast.
    Where it is neither that nor an array of a dtype that is stored only, the error is raised again.
    """
    error = sys.exception()
    if isinstance(error, Exception) and not isinstance(error, TypeError):
        translated = size_error(op.name, error, (*arrays, *(parameters or {}).values()))
        if translated is error:
            if op.layout is elementwise:
                broadcast_shapes(*[array.shape for array in arrays if array is not None])
            raise
        raise translated from None
    kinds = _dtypes_of(backend, arrays)
    dtype = next((kind for kind in kinds if kind in FLOAT8), None)
    if dtype is None:
        raise  # noqa: PLE0704  (the TypeError that brought us here)
    served = op.name in (_SERVED if dtype.is_signed else _UNSIGNED)
    if not served and not (op.name == "mul" and all([array.ndim for array in arrays])):
        raise unserved(op.name, dtype) from None
    F = backend.F
    wide = [
        F.astype(array, float32) if kind in FLOAT8 else array
        for array, kind in zip(arrays, kinds, strict=True)
    ]
    result = call(*wide, **(parameters or {}))
    return F.astype(result, dtype) if result.dtype.kind == "f" else result


def refuse_in_place(op: Any, backend: Backend, arrays: Any) -> NoReturn:
    """NotImplementedError for an op in place to which NumPy has said TypeError, as above."""
    for dtype in _dtypes_of(backend, arrays):
        if dtype in FLOAT8:
            raise unserved(f"{op.name}_", dtype) from None
    raise  # noqa: PLE0704


def _dtypes_of(backend: Backend, arrays: Any) -> list[DType | None]:
    return [backend.dtypes.get(getattr(array, "dtype", None)) for array in arrays]
