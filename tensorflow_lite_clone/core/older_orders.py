"""Orders of arguments that PyTorch still takes from earlier versions.

There numbers stood between or before the tensors: ``add(input, alpha, other)``. `core.signature`
asks here about calls whose types it has not seen before, so that no other call pays for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.flags import flags

_PRODUCTS = {
    "addbmm": "batch1 batch2",
    "addmm": "mat1 mat2",
    "addmv": "mat vec",
    "addr": "vec1 vec2",
    "baddbmm": "batch1 batch2",
}
#: function -> its parameters in earlier orders; functions take numbers first, methods after self
ORDERS: dict[str, list[tuple[str, ...]]] = {
    "add": [("input", "alpha", "other")],
    "sub": [("input", "alpha", "other")],
    "addcdiv": [("input", "value", "tensor1", "tensor2")],
    "addcmul": [("input", "value", "tensor1", "tensor2")],
}
for _name, _factors in _PRODUCTS.items():
    ORDERS[_name] = [
        (*leading.split(), *_factors.split())
        for leading in ("beta input alpha", "beta input", "input beta alpha", "input beta")
    ]
ORDERS |= {f"{name}_": orders for name, orders in ORDERS.items()}
_NUMBERS = ("alpha", "beta", "value")


class _Warned:
    once = False


def in_present_order(
    name: str, fits: Callable[[str, Any], bool], args: tuple, kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments of a call in an earlier order as keywords, or None for any other call.

    ``fits(parameter, value)`` says whether a value is of the parameter's kind. Warns once that the
    order is deprecated, for all functions together as PyTorch does.
    """
    for order in ORDERS[name]:
        named = dict(zip(order, args, strict=False))
        if (
            len(args) <= len(order)
            and any([number in named for number in _NUMBERS])
            and not named.keys() & kwargs.keys()
            and {*named, *kwargs} - {"out"} == {*order}
            and all([fits(word, value) for word, value in (named | kwargs).items()])
        ):
            _warn(name, order)
            return named | kwargs
    return None


def _warn(name: str, order: tuple[str, ...]) -> None:
    if _Warned.once and not flags.warn_always:
        return
    _Warned.once = True
    tensors = ", ".join([word for word in order if word not in _NUMBERS])
    numbers = ", ".join([f"{word}={word}" for word in order if word in _NUMBERS])
    warnings.warn(
        f"{name}({', '.join(order)}) is deprecated: write {name}({tensors}, {numbers})",
        stacklevel=level_outside(),
    )
