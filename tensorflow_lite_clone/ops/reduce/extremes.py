"""Largest and smallest: max, min, amax, amin, aminmax, argmax, argmin."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_unary
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._fast_paths import reduction
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.reduce._arguments import (
    axes_of,
    axis_of,
    delivered,
    reduced_count,
    restored,
)
from tensorflow_lite_clone.tensor import Tensor

_Max = result_type("max", "values", "indices")
_Min = result_type("min", "values", "indices")
_Aminmax = result_type("aminmax", "min", "max")


def _extreme_label(name: str) -> Any:
    """``max()`` of everything and ``amax(dim)`` are one op here and two in torch."""

    def label(node: Any) -> str:
        whole = len(node.parameters["axis"]) == len(node.parameters["shape"])
        return f"{name}Backward1" if whole else f"A{name.lower()}Backward0"

    return label


class Amax(Op):
    """The largest element over axes; elements that tie share the gradient."""

    label = _extreme_label("Max")

    def forward(F, x, *, axis, keepdims, shape):
        return F.max(x, axis=axis, keepdims=keepdims)

    def backward_x(F, g, x, out, *, axis, keepdims, shape):
        g = restored(F, g, axis, keepdims, shape)
        return F.share_backward(g, x, restored(F, out, axis, keepdims, shape), axis=axis)


class Amin(Op):
    """The smallest element over axes; elements that tie share the gradient."""

    label = _extreme_label("Min")

    def forward(F, x, *, axis, keepdims, shape):
        return F.min(x, axis=axis, keepdims=keepdims)

    def backward_x(F, g, x, out, *, axis, keepdims, shape):
        g = restored(F, g, axis, keepdims, shape)
        return F.share_backward(g, x, restored(F, out, axis, keepdims, shape), axis=axis)


@composite
def share_backward(F, g, x, y, *, axis):
    """``g`` in equal parts to the elements along `axis` that are equal to ``y``.

    A NaN is equal to NaN where ``y`` is of all elements; along axes PyTorch's gradient is NaN then.
    """
    ties = x == y
    if len(axis) == x.ndim:
        ties = ties | ((x != x) & (y != y))
    ties = F.astype(ties, x.dtype)
    return ties * (g / F.sum(ties, axis=axis, keepdims=True))


class Picked(Op):
    """Base of ops that pick elements along an axis and give (values, int64 indices)."""

    nondifferentiable = (1,)

    def backward_x(F, g, out1, *, axis, keepdims, size):
        if not keepdims:
            g, out1 = F.expand_dims(g, axis=axis), F.expand_dims(out1, axis=axis)
        return F.put_along_axis(g, out1, axis=axis, size=size)


class PutAlongAxis(Op):
    """Zeros of length `size` along `axis` with the values at the places `index`."""

    primitive = "put_along_axis"

    def forward(F, values, index, *, axis, size):
        return F.put_along_axis(values, index, axis=axis, size=size)

    def backward_values(F, g, index, *, axis, size):
        return F.take_along_axis(g, index, axis=axis)


class MaxWithIndices(Picked):
    """The largest element along an axis and its first place."""

    cost = costs.Cost(costs.per_operand())
    label = "Max"

    def forward(F, x, *, axis, keepdims, size):
        index = F.argmax(x, axis=axis, keepdims=keepdims)
        return F.max(x, axis=axis, keepdims=keepdims), index


class MinWithIndices(Picked):
    """The smallest element along an axis and its first place."""

    cost = costs.Cost(costs.per_operand())
    label = "Min"

    def forward(F, x, *, axis, keepdims, size):
        index = F.argmin(x, axis=axis, keepdims=keepdims)
        return F.min(x, axis=axis, keepdims=keepdims), index


def pick(op: type[Op], kind: Any, input: Tensor, dim: Any, keepdim: bool, **parameters: Any) -> Any:
    """Apply a `Picked` op along `dim`; a zero-dim tensor counts as one element."""
    shape = input._storage.physical.shape
    axis = axis_of(dim, len(shape))
    if shape:
        size = shape[axis]
        return kind(apply(op, input, axis=axis, keepdims=keepdim, size=size, **parameters))
    results = apply(op, input.reshape(1), axis=0, keepdims=True, size=1, **parameters)
    return kind([result.reshape(()) for result in results])


def require_elements(name: str, input: Tensor, dim: Any) -> None:
    """Raise IndexError when the axis `dim` is empty."""
    shape = input._storage.physical.shape
    if shape and not shape[axis_of(dim, len(shape))]:
        axis = axis_of(dim, len(shape))
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _require_any(name: str, input: Tensor) -> None:
    if not input._storage.physical.size:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )


def _require_real(name: str, input: Tensor) -> None:
    if input._storage.physical.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")


@public("torch", "method")
def amax(
    input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The largest value over `dim` (an int, several, or all); ties share the gradient equally."""
    return delivered("amax", _extreme("amax", Amax, input, dim, keepdim), out)


@public("torch", "method")
def amin(
    input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The smallest value over `dim` (an int, several, or all); ties share the gradient equally."""
    return delivered("amin", _extreme("amin", Amin, input, dim, keepdim), out)


def _extreme(name: str, op: type[Op], input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    array = input._storage.array
    shape = array.shape
    axis = axes_of(dim, len(shape))
    if array.size == 0:
        if len(axis) == len(shape) and (dim is None or dim == ()):
            _require_any(name, input)
        if not reduced_count(shape, axis):
            empty = next(i for i in axis if not shape[i])
            raise IndexError(f"{name}(): Expected reduction dim {empty} to have non-zero size.")
    else:
        _require_real(name, input)
    return apply_unary(op, input, {"axis": axis, "keepdims": keepdim, "shape": shape})


@public("torch", "method")
@reduction(Amax, "c", whole=True)
def max(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """The largest of all elements; with `dim` the largest along it as (values, indices).

    ``max(input, other)`` is `maximum`.
    """
    if isinstance(dim, Tensor) or other is not None:
        return input.maximum(dim if other is None else other, out=out)
    if dim is None:
        return delivered("max_unary", _extreme("max", Amax, input, None, keepdim), out)
    require_elements("max", input, dim)
    _require_real("max", input)
    return delivered("max", pick(MaxWithIndices, _Max, input, dim, keepdim), out, (input,))


@public("torch", "method")
@reduction(Amin, "c", whole=True)
def min(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """The smallest of all elements; with `dim` the smallest along it as (values, indices).

    ``min(input, other)`` is `minimum`.
    """
    if isinstance(dim, Tensor) or other is not None:
        return input.minimum(dim if other is None else other, out=out)
    if dim is None:
        return delivered("min_unary", _extreme("min", Amin, input, None, keepdim), out)
    require_elements("min", input, dim)
    _require_real("min", input)
    return delivered("min", pick(MinWithIndices, _Min, input, dim, keepdim), out, (input,))


@public("torch", "method")
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None
) -> Any:
    """The smallest and the largest value over `dim`, or of all, as (min, max)."""
    if dim is None:
        if not input._storage.physical.size:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                "no identity."
            )
        axes: Any = ()
    else:
        axes = axis_of(dim, input._storage.physical.ndim)
    low = _extreme("aminmax", Amin, input, axes, keepdim)
    high = _extreme("aminmax", Amax, input, axes, keepdim)
    return delivered("aminmax", _Aminmax((low, high)), out)


class Argmax(Op):
    """The first place of the largest element."""

    primitive = "argmax"

    def forward(F, x, *, axis, keepdims):
        return F.argmax(x, axis=axis, keepdims=keepdims)


class Argmin(Op):
    """The first place of the smallest element."""

    primitive = "argmin"

    def forward(F, x, *, axis, keepdims):
        return F.argmin(x, axis=axis, keepdims=keepdims)


@public("torch", "method")
def argmax(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Where the largest element along `dim` (of the flattened input without) is, as int64."""
    return delivered("argmax", _place("argmax", Argmax, input, dim, keepdim), out)


@public("torch", "method")
def argmin(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Where the smallest element along `dim` (of the flattened input without) is, as int64."""
    return delivered("argmin", _place("argmin", Argmin, input, dim, keepdim), out)


def _place(name: str, op: type[Op], input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    array = input._storage.array
    letter = array.dtype.kind
    if letter == "b" or letter == "c":
        raise RuntimeError(
            f"{name}(): does not support {'bool' if letter == 'b' else 'complex'} input"
        )
    if dim is None:
        if not array.size:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
            )
    else:
        dim = axis_of(dim, array.ndim)
        require_elements(name, input, dim)
        if not array.ndim:
            dim = None
    return apply(op, input, axis=dim, keepdims=keepdim)
