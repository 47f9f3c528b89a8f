"""Where the functions of sparse tensors are entered: by name, and as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tensorflow_lite_clone.sparse.tensor import SparseTensor

_F = TypeVar("_F", bound=Callable[..., Any])


def function(*names: str) -> Callable[[_F], _F]:
    """Enter the decorated function as what the functions `names` of dense tensors do where an
    argument is sparse, and as these methods."""

    def register(call: _F) -> _F:
        SparseTensor.functions |= dict.fromkeys(names, call)
        return method(*names)(call)

    return register


def method(*names: str) -> Callable[[_F], _F]:
    """Enter the decorated function as the methods `names` alone."""

    def register(call: _F) -> _F:
        for name in names:
            setattr(SparseTensor, name, call)
        return call

    return register
