"""One operation on each tensor of a list: ``torch._foreach_add_`` and its kin.

PyTorch saves launches of kernels by them; here they are loops over the methods of single tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.core.public import EXPORTS, export
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.tensor import Tensor

_POINTWISE = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp "
    "expm1 floor frac lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal "
    "round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc"
).split()
#: Methods that take numbers as well, where the one of the same name takes tensors alone.
_METHODS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_LISTS = list | tuple


def _rows(tensors: Sequence[Tensor], argument: Any) -> Sequence[Any]:
    """What each of the tensors is combined with: an entry of a list, or the argument itself."""
    count = len(tensors)
    if not isinstance(argument, _LISTS):
        return [argument] * count
    if len(argument) == count:
        return argument
    if argument and isinstance(argument[0], Tensor):
        raise RuntimeError(
            f"Tensor lists must have the same number of tensors, got {count} and {len(argument)}"
        )
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _check_tensors(name: str, tensors: Any) -> None:
    if not isinstance(tensors, _LISTS) or any([not isinstance(x, Tensor) for x in tensors]):
        raise TypeError(
            f"{name}(): argument 'self' must be tuple of Tensors, not {type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _export(name: str, method: str, in_place: bool) -> None:
    scaled = method.rstrip("_") in ("addcdiv", "addcmul")

    def function(self: Any, *arguments: Any, **keywords: Any) -> Any:
        _check_tensors(name, self)
        columns = [_rows(self, argument) for argument in arguments]
        values = [keywords] * len(self)
        if scaled and len(columns) == 3:  # the last is the factor of the products
            values = [{"value": value} for value in columns.pop()]
        single = EXPORTS["method"][method]
        results = [single(*row, **value) for *row, value in zip(self, *columns, values)]
        return self if in_place else tuple(results)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`Tensor.{method}` of each tensor of a list."
    export(checked(function), "torch", name=name)


for _name in _POINTWISE:
    _method = _METHODS.get(_name, _name)
    _export(f"_foreach_{_name}", _method, in_place=False)
    _export(f"_foreach_{_name}_", f"{_method}_", in_place=True)
for _name in ("clone", "max", "mm"):
    _export(f"_foreach_{_name}", _name, in_place=False)
for _name in ("copy_", "zero_"):
    _export(f"_foreach_{_name}", _name, in_place=True)


def _export_of_order(name: str, reduction: str) -> None:
    def function(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
        _check_tensors(name, self)
        reduced: Callable[..., Tensor] = EXPORTS["linalg"][reduction]
        return tuple([reduced(x, ord, dtype=dtype) for x in self])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`linalg.{reduction}` of order `ord` of each tensor of a list."
    export(function, "torch", name=name)


_export_of_order("_foreach_norm", "vector_norm")
_export_of_order("_foreach_powsum", "_powsum")
