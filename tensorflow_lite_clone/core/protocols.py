"""What arrays, the namespaces over them and devices must have: for type checkers alone.

Nothing imports this when a program runs: `if TYPE_CHECKING` stands around each import of it. The
layers below `backends` name no device, so they name these; `backends.base.Backend`,
`dispatch.raw.Raw` and `autograd.namespaces.Recorded` are what there is of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType

#: A function over arrays, maybe with parameters by name: a primitive, an op's form, a gradient.
Function = Callable[..., Any]


class Array(Protocol):
    """What is asked of any array, be it a backend's own, one without values, or a Tensor."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...


class Namespace(Protocol):
    """``F``: what formulas are written over, the same for arrays and for Tensors.

    It has the array API standard's functions, our primitives beyond them, and the ops and
    composites of the table, so most of it is found by name.
    """

    @property
    def backend(self) -> Backend: ...

    def run(self, op: Any, *arrays: Any, **parameters: Any) -> Any:
        """Run an op of the table whose name may also be that of a primitive."""

    def __getattr__(self, name: str, /) -> Any: ...


class Backend(Protocol):
    """A device, as the layers below `backends` see it; `backends.base.Backend` explains each.

    Arrays are Any here: a backend takes its own alone.
    """

    name: str
    device: Device
    xp: Any
    primitives: Any
    accelerators: tuple[str, ...]
    lays: bool
    batched: bool
    dispatches: bool
    alone: bool
    has_values: bool
    add: Function
    add_to: Function

    @property
    def F(self) -> Namespace: ...
    @property
    def array_type(self) -> type[Any]: ...
    @property
    def dtypes(self) -> Mapping[Any, DType]: ...
    @property
    def native(self) -> Mapping[DType, Any]: ...
    @property
    def gradients(self) -> Mapping[Function, Function]: ...
    @property
    def joint_gradients(self) -> Mapping[Function, Function]: ...
    @property
    def writers(self) -> Mapping[Any, Any]: ...

    def asarray(self, data: Any, dtype: DType | None = None) -> Any: ...
    def from_host(self, array: Any, non_blocking: bool = False) -> Any: ...
    def to_host(self, array: Any, non_blocking: bool = False) -> Any: ...
    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any: ...
    def write(self, target: Any, value: Any) -> None: ...
    def strides(self, array: Any) -> tuple[int, ...]: ...
    def is_contiguous(self, array: Any) -> bool: ...
    def owns_memory(self, array: Any) -> bool: ...
    def settled(self, array: Any) -> Any: ...
    def numbers(self, array: Any) -> Any: ...
    def number(self, array: Any) -> Any: ...
    def synchronize(self) -> None: ...
    def guarded(self, call: Function) -> Function: ...
    def adapted(self, op: Any, generic: Function) -> Function: ...
    def fused(
        self, name: str, body: Function, generic: Function, kept: tuple[int, ...] = ()
    ) -> Function: ...
    def foreign(self, call: Function, is_view: bool = False) -> Function: ...
    def forget(self) -> None: ...
