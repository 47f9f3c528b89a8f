"""Writes into a tensor's own memory: `copy_`, `fill_`, `zero_`."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.autograd.inplace import (
    apply_inplace,
    beside,
    check_writable,
    copy_beside,
)
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.limits import fitting_number
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch import costs, hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import like_first
from tensorflow_lite_clone.ops.create.convert import to_device
from tensorflow_lite_clone.ops.pointwise._operands import as_number, warn_imaginary
from tensorflow_lite_clone.ops.shape.slices import as_strided, diagonal
from tensorflow_lite_clone.storage import offset_of
from tensorflow_lite_clone.tensor import Tensor, new_tensor


class CopyInto(Op):
    """The values of y, cast and broadcast, in place of those of x."""

    cost = costs.Cost(reads="none")
    layout = like_first
    label = "torch::autograd::CopyBackwards"

    def forward(F, x, y):
        out = F.copy(x)
        F.backend.write(out, y)
        return out

    def write(F, x, y):
        F.backend.write(x, F.real(y) if y.dtype.kind == "c" and x.dtype.kind not in "cb" else y)

    def backward_x(F, g):
        return F.zeros_like(g)

    def backward_y(F, g):
        return g


class Fill(Op):
    """One number everywhere."""

    cost = costs.Cost(reads="none")
    layout = like_first
    label = "FillBackward2"
    writes_expanded = True

    def forward(F, x, *, value):
        return F.full(x.shape, value, dtype=x.dtype)

    def write(F, x, *, value):
        F.backend.write(x, value)

    def backward_x(F, g, *, value):
        return F.zeros_like(g)


class Zero(Op):
    """Zeros everywhere."""

    cost = costs.Cost(reads="none")
    layout = like_first
    writes_expanded = True

    def forward(F, x):
        return F.zeros(x.shape, dtype=x.dtype)

    def write(F, x):
        F.backend.write(x, 0)

    def backward_x(F, g):
        return F.zeros_like(g)


def held_value(like: Tensor, value: Any) -> Tensor:
    """A number as a zero-dim tensor of `like`'s dtype, on its device."""
    backend = like._storage.backend
    return wrap(backend.asarray(fitting_number(value, like.dtype), like.dtype), backend)


def write_value(storage: Any, part: Any, value: Any) -> None:
    """Write a number or Tensor into `part`, a view of the storage's array, outside of graphs."""
    backend = storage.backend
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        letter = part.dtype.kind
        if letter != "f" or kind is not float:
            value = fitting_number(value, backend.dtypes[part.dtype])
        backend.write(part, value)
    elif isinstance(value, Tensor):
        source = value._storage
        if source.backend is not backend:
            target = new_tensor(storage)
            source = beside(target, to_device(value, backend.device), CopyInto)._storage
        array = source.array
        if array.dtype.kind == "c" and part.dtype.kind != "c":
            warn_imaginary()
            if part.dtype.kind != "b":
                array = backend.F.real(array)
        try:
            backend.write(part, array)
        except ValueError:
            raise _does_not_fit(part.shape, array.shape) from None
    else:
        number = as_number(value)
        if number is None:
            dtype = backend.dtypes[part.dtype]
            raise TypeError(
                f"can't assign a {type(value).__name__} to a torch.{dtype.short_name}Tensor"
            )
        backend.write(part, fitting_number(number, backend.dtypes[part.dtype]))
    storage.bump()


def _does_not_fit(target: tuple, shape: tuple) -> RuntimeError:
    if len(shape) > len(target):
        return RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to "
            f"the number of dimensions in the tensor ({len(shape)})"
        )
    offset = len(target) - len(shape)
    for dim, size in enumerate(shape, offset):
        if size != target[dim] and size != 1:
            return RuntimeError(
                f"The expanded size of the tensor ({target[dim]}) must match the existing size "
                f"({size}) at non-singleton dimension {dim}.  Target sizes: {list(target)}.  "
                f"Tensor sizes: {list(shape)}"
            )
    return RuntimeError(f"a tensor of shape {list(shape)} does not fit into {list(target)}")


@public("method", flat=True)
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write `src` into this tensor, cast to its dtype, broadcast to its shape, from any device."""
    if not isinstance(src, Tensor):
        number = as_number(src)
        if number is None:
            raise TypeError(
                f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}"
            )
        return fill_(self, number)
    try:
        storage, source = self._storage, src._storage
    except NotStrided as reason:
        return reason.answer("copy_", self, src)
    have, want = source.array.shape, storage.laid.shape
    if have != want and not _fits(have, want):
        raise RuntimeError(
            f"output with shape {list(want)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(want, have))}"
        )
    if source.array.dtype.kind == "c" and storage.laid.dtype.kind != "c":
        warn_imaginary()
    if source.backend is not storage.backend:
        src = to_device(src, self.device, non_blocking)
    elif _outside(self) and (src._edge is None or not mode.grad) and src._view is None:
        check_writable(storage.array)
        call = partial(CopyInto.write, storage.backend.F, storage.array, source.array)
        hooks.writing(CopyInto, call, (storage.array, source.array), {})
        storage.bump()
        return self
    return apply_inplace(CopyInto, self, src)


def _fits(shape: tuple, target: tuple) -> bool:
    """Whether `shape` broadcasts to `target`."""
    offset = len(target) - len(shape)
    return offset >= 0 and all([n == m or n == 1 for n, m in zip(shape, target[offset:])])


def _outside(x: Tensor) -> bool:
    """Whether a write into `x` surely has nothing to do with a graph."""
    return not mode.grad or (x._edge is None and x._view is None)


@public("torch", "method")
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number, or the value of a zero-dim tensor, everywhere."""
    if isinstance(value, Tensor):
        ndim = value._storage.laid.ndim
        if ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {ndim} "
                "dimensions."
            )
        return copy_(self, value)
    number = as_number(value)
    if number is None:
        raise TypeError(
            f"fill_(): argument 'value' (position 1) must be Number, not {type(value).__name__}"
        )
    value = fitting_number(number, self.dtype)
    if _outside(self):
        return _write_number(Fill, self, value, {"value": value})
    return apply_inplace(Fill, self, value=value)


@public("torch", names=("fill",))
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of `input`'s shape and dtype with one value everywhere."""
    return fill_(copy_beside(input, value), value)


@public("torch", "method")
def zero_(self: Tensor) -> Tensor:
    """Write zeros everywhere."""
    if _outside(self):
        return _write_number(Zero, self, 0, {})
    return apply_inplace(Zero, self)


def _write_number(op: type[Op], x: Tensor, value: complex, parameters: dict) -> Tensor:
    storage = x._storage
    if hooks.around_write:
        call = partial(storage.backend.write, storage.array, value)
        hooks.writing(op, call, (storage.array,), parameters)
    else:
        storage.backend.write(storage.array, value)
    storage.bump()
    return x


@public("method")
def fill_diagonal_(self: Tensor, fill_value: complex, wrap: bool = False) -> Tensor:
    """Write a number onto the main diagonal; with `wrap` it goes on below in tall matrices."""
    shape = self._storage.laid.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if len(shape) == 2:
        fill_(diagonal(self), fill_value)
        height, width = shape
        if wrap and height > width + 1:
            below = self[width + 1 :]
            fill_diagonal_(below, fill_value, wrap)
    else:
        step = sum(self.stride())
        fill_(as_strided(self, (shape[0],), (step,), offset_of(self._storage)), fill_value)
    return self
