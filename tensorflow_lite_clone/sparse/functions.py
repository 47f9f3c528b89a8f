"""Where the functions of sparse tensors are entered: by name, and as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.compressed import CompressedTensor
from tensorflow_lite_clone.sparse.tensor import SparseTensor

_F = TypeVar("_F", bound=Callable[..., Any])


class Register:
    """Decorators that enter functions for tensors of a class; see `function` and `method`."""

    def __init__(self, cls: type[SparseBase]) -> None:
        self._cls = cls

    def function(self, *names: str) -> Callable[[_F], _F]:
        """Enter the decorated function as what the functions `names` of dense tensors do where an
        argument is of the class, and as these methods."""

        def register(call: _F) -> _F:
            self._cls.functions |= dict.fromkeys(names, call)
            return self.method(*names)(call)

        return register

    def method(self, *names: str) -> Callable[[_F], _F]:
        """Enter the decorated function as the methods `names` alone."""

        def register(call: _F) -> _F:
            for name in names:
                setattr(self._cls, name, call)
            return call

        return register


coordinates, compressed = Register(SparseTensor), Register(CompressedTensor)
#: Those of tensors in coordinates.
function, method = coordinates.function, coordinates.method
