"""Tensors whose values a recorded graph has yet to compute."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.torch_function import disabled, plain_types
from tensorflow_lite_clone.ops.create import empty_strided
from tensorflow_lite_clone.tensor import Tensor

_STORAGE: Any = vars(Tensor)["_storage"]
_EDGE: Any = vars(Tensor)["_edge"]
_VIEW: Any = vars(Tensor)["_view"]
_META = Device("meta")


class Snapshot(NamedTuple):
    """What is known of a tensor besides its values."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: DType
    device: Device
    requires_grad: bool
    is_leaf: bool

    @classmethod
    def of(cls, tensor: Tensor, device: Device | None = None) -> Snapshot:
        """That of a tensor; with `device`, of one there for which it stands."""
        stride: Any = tensor.stride()
        return cls(
            tuple(tensor.shape),
            tuple(stride),
            tensor.dtype,
            device or tensor.device,
            tensor.requires_grad,
            tensor.is_leaf,
        )

    def fake(self) -> Tensor:
        """A tensor without values that looks like it."""
        fake: Any = empty_strided(self.shape, self.stride, dtype=self.dtype, device=_META)
        if self.requires_grad:
            fake.requires_grad_()
            if not self.is_leaf:
                fake = fake.clone()
        return fake


class Promise:
    """Where the values of a `Pending` tensor come from: it is `number` of what `tape` holds."""

    __slots__ = ("number", "tape")

    def __init__(self, tape: Any, number: int) -> None:
        self.tape = tape
        self.number = number


class Pending(Tensor):
    """A tensor whose values are not computed before somebody needs them.

    The slot of its storage holds a `Promise`. Whatever reads storage, graph or view has the tape
    run what it has recorded, which makes this an ordinary tensor.
    """

    __slots__ = ()
    __torch_function__ = disabled

    @property
    def _storage(self) -> Any:
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


plain_types.add(Pending)


def pend(tape: Any, number: int) -> Pending:
    """A tensor that is number `number` of what `tape` computes."""
    tensor = object.__new__(Pending)
    _STORAGE.__set__(tensor, Promise(tape, number))
    return tensor


def promise_of(tensor: Pending) -> Promise:
    """What a pending tensor holds in place of a storage."""
    promise: Promise = _STORAGE.__get__(tensor)
    return promise


def settle(tensor: Pending, value: Tensor) -> None:
    """Make a pending tensor what `value` is."""
    _STORAGE.__set__(tensor, value._storage)
    _EDGE.__set__(tensor, value._edge)
    _VIEW.__set__(tensor, value._view)
    vars(tensor).update(vars(value))
    tensor.__class__ = value.__class__
