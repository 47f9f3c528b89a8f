"""Tensors whose values a recorded graph has yet to compute."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.torch_function import disabled, plain_types
from tensorflow_lite_clone.ops.create.constructors import empty_strided
from tensorflow_lite_clone.tensor import Buffer, Parameter, Tensor

_STORAGE: Any = vars(Tensor)["_storage"]
_EDGE: Any = vars(Tensor)["_edge"]
_VIEW: Any = vars(Tensor)["_view"]
_META = Device("meta")
#: What makes the tensors without values on which calls are run to see what they give.
FAKES = FakeTensorMode()


class Snapshot(NamedTuple):
    """What is known of a tensor besides its values."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: DType
    device: Device
    requires_grad: bool
    is_leaf: bool

    @classmethod
    def of(cls, tensor: Tensor) -> Snapshot:
        """That of a tensor."""
        stride: Any = tensor.stride()
        return cls(
            tuple(tensor.shape),
            tuple(stride),
            tensor.dtype,
            tensor.device,
            tensor.requires_grad,
            tensor.is_leaf,
        )

    def meta(self) -> Tensor:
        """A tensor on the meta device that looks like it."""
        meta: Any = empty_strided(self.shape, self.stride, dtype=self.dtype, device=_META)
        if self.requires_grad:
            meta.requires_grad_()
            if not self.is_leaf:
                meta = meta.clone()
        return meta

    def fake(self) -> FakeTensor:
        """A tensor without values that looks like it."""
        return FAKES.dress(self.meta(), self.device)


class Promise:
    """What a pending tensor waits for: it is `number` of what `tape` computes.

    `own` is what a tensor of the program had before a call was recorded that writes into it: its
    class, storage, place in the graph and view. It is None for tensors that calls make.
    """

    __slots__ = ("number", "own", "tape")

    def __init__(self, tape: Any, number: int, own: tuple | None = None) -> None:
        self.tape = tape
        self.number = number
        self.own = own


class Unsettled(Tensor):
    """A tensor whose values are not computed before somebody needs them.

    The slot of its storage holds a `Promise`. Whatever reads storage, graph or view has the tape
    run what it has recorded, which makes this an ordinary tensor.
    """

    __slots__ = ()
    __torch_function__ = disabled

    @property
    def _storage(self) -> Any:  # type: ignore[override]  # nobody writes there but by the slot
        return self._settled()._storage

    @property
    def _edge(self) -> Any:
        return self._settled()._edge

    @_edge.setter
    def _edge(self, value: Any) -> None:
        self._settled()._edge = value

    @property
    def _view(self) -> Any:
        return self._settled()._view

    @_view.setter
    def _view(self, value: Any) -> None:
        self._settled()._view = value

    def _settled(self) -> Tensor:
        promise_of(self).tape.need(self)
        return self


class Pending(Unsettled):
    """What a recorded call gives, or a tensor of the program that it writes into."""

    __slots__ = ()


class PendingParameter(Unsettled, Parameter):
    """A parameter that a recorded call writes into."""

    __slots__ = ()


class PendingBuffer(Unsettled, Buffer):
    """A buffer that a recorded call writes into."""

    __slots__ = ()


#: Classes of a program's tensors that graphs take, and what these are while a write is pending.
PENDING: dict[type, type] = {
    Tensor: Pending,
    Parameter: PendingParameter,
    Buffer: PendingBuffer,
}
plain_types.update(PENDING.values())


def pend(tape: Any, number: int) -> Pending:
    """A tensor that is number `number` of what `tape` computes."""
    tensor = object.__new__(Pending)
    _STORAGE.__set__(tensor, Promise(tape, number))
    return tensor


def hold(tensor: Tensor, tape: Any, number: int) -> None:
    """Have whoever reads a tensor of the program wait for what `tape` writes into it."""
    own = tensor.__class__, tensor._storage, tensor._edge, tensor._view
    tensor.__class__ = PENDING[own[0]]
    _STORAGE.__set__(tensor, Promise(tape, number, own))


def release(tensor: Tensor) -> None:
    """Take `hold` back."""
    kind, *slots = promise_of(tensor).own or ()
    tensor.__class__ = kind
    tensor._storage, tensor._edge, tensor._view = slots


def promise_of(tensor: Tensor) -> Promise:
    """What a pending tensor holds in place of a storage."""
    promise: Promise = _STORAGE.__get__(tensor)
    return promise


def settle(tensor: Tensor, value: Tensor) -> None:
    """Make a pending tensor what `value` is."""
    _STORAGE.__set__(tensor, value._storage)
    _EDGE.__set__(tensor, value._edge)
    _VIEW.__set__(tensor, value._view)
    vars(tensor).update(vars(value))
    tensor.__class__ = value.__class__
