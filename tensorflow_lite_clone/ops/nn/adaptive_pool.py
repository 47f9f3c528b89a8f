"""Pools that are told the size of their result, and the way back from a maximum's indices."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.backends.windows import Ints, int_tuple
from tensorflow_lite_clone.core.determinism import expect_any_order
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import expect_storage
from tensorflow_lite_clone.core.signature import checked, is_number
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.nn import pool
from tensorflow_lite_clone.ops.nn._resample import Resample, mean_taps, windows
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.ops.shape.memory import in_format_of
from tensorflow_lite_clone.tensor import Tensor


def adaptive_average(x: Tensor, counts: Ints) -> Tensor:
    """Means over `counts` windows that cover the last axes of x (n, c, ...)."""
    ndim = len(counts)
    size = x._storage.physical.shape[-ndim:]
    if all(count and not n % count for n, count in zip(size, counts)):
        kernel = tuple([n // count for n, count in zip(size, counts)])
        return apply(
            pool.AvgPool, x, size=size, kernel=kernel, stride=kernel, padding=(0,) * ndim,
            ceil_mode=False, include=True, divisor=None,
        )  # fmt: skip
    x = stepwise(x)
    for axis in range(ndim):
        if size[axis] != counts[axis]:
            taps = mean_taps(size[axis], counts[axis])
            x = apply(Resample, x, axis=x.ndim - ndim + axis, taps=taps)
    return x.contiguous() if ndim == 3 else x


class AdaptiveMaxIndices(Op):
    """Where the maxima of `counts` windows over x (n, c, *space) lie in the flattened space."""

    def forward(F, x, *, counts):
        size = x.shape[2:]
        ndim = len(size)
        per_axis = [windows(n, count) for n, count in zip(size, counts)]
        lengths = [max(map(len, axis), default=0) for axis in per_axis]
        best = indices = None
        for place in product(*map(range, lengths)):
            value, at = x, F.zeros((), dtype=F.int64)
            for axis, i in enumerate(place):
                # a shorter window looks at its last element again, which changes nothing
                taken = [window[min(i, len(window) - 1)] for window in per_axis[axis]]
                along = F.asarray(taken, dtype=F.int64)
                value = F.take(value, along, axis=axis + 2)
                at = at * size[axis] + F.reshape(along, (-1, *(1,) * (ndim - axis - 1)))
            at = F.broadcast_to(at, value.shape)
            if best is None:
                best, indices = value, at
            else:
                better = (value > best) | (value != value)
                best, indices = F.where(better, value, best), F.where(better, at, indices)
        if indices is None:
            return F.zeros((*x.shape[:2], *counts), dtype=F.int64)
        return F.copy(indices)


class NothingPooled(Op):
    """The result without elements of pooling x; as in PyTorch its gradient is refused."""

    def forward(F, x, *, shape):
        return F.zeros(shape, dtype=x.dtype)

    def backward_x(F, g, *, shape):
        raise RuntimeError(
            "adaptive_pool_backward(): Expected grad_output to have non-zero size for non-batch "
            f"dimensions, but grad_output has sizes {list(shape)}"
        )


def _output_size(name: str, input: Tensor, output_size: Any, ndim: int) -> Ints:
    """The result's size; None keeps an axis. Raises RuntimeError for what does not fit."""
    shape = input._storage.physical.shape
    if ndim > 1 and len(shape) <= ndim and isinstance(output_size, (list, tuple)):
        raise ValueError(
            f"{name}(): Input dimension should be at least {ndim + 1}, but got {list(shape)}"
        )
    if len(shape) not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"{name}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got {list(shape)}"
        )
    if output_size is None:
        raise TypeError(f"{name}(): argument 'output_size' must be tuple of ints, not NoneType")
    is_sequence = isinstance(output_size, (list, tuple))
    values = list(output_size) if is_sequence else [output_size] * ndim
    if len(values) != ndim:
        raise RuntimeError(f"{name}: output_size must be {ndim}")
    kept = [n if value is None else value for n, value in zip(shape[-ndim:], values)]
    counts = int_tuple(kept, ndim, name, "output_size")
    assert counts is not None
    if min(counts) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{counts}"
        )
    # As in PyTorch, channels count for volumes in a batch alone.
    first = 1 if ndim == 3 and len(shape) == 5 else len(shape) - ndim
    for axis in range(first, len(shape)):
        if not shape[axis]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(shape)} with dimension {axis} being empty"
            )
    if input.dtype.kind not in "f":
        refuse(name, input.dtype)
    expect_storage((*shape[:-ndim], *counts), input.dtype.itemsize)
    return counts


def _adaptive_avg_pool(ndim: int) -> Any:
    name = f"adaptive_avg_pool{ndim}d"

    def adaptive_avg_pool(input: Tensor, output_size: Any) -> Tensor:
        ones = (1, (1,) * ndim, [1] * ndim)
        plain = type(output_size) in (int, tuple, list) and output_size in ones
        if plain and input.ndim in (ndim + 1, ndim + 2):
            return input.mean(tuple(range(-ndim, 0)), keepdim=True)
        counts = _output_size(name, input, output_size, ndim)
        shape = (*input.shape[:-ndim], *counts)
        if 0 in shape[1:]:
            return apply(NothingPooled, input, shape=shape)
        if input.ndim == ndim + 2:
            return adaptive_average(input, counts)
        return adaptive_average(input.unsqueeze(0), counts).squeeze(0)

    adaptive_avg_pool.__name__ = adaptive_avg_pool.__qualname__ = name
    adaptive_avg_pool.__doc__ = (
        f"Means over windows that cover the {ndim} last axes of (n, c, ...) or (c, ...), as many "
        "as `output_size` says; None keeps an axis."
    )
    places = ("functional", "torch") if ndim == 1 else ("functional",)
    return public(*places, names=(name,))(adaptive_avg_pool)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_pool, (1, 2, 3))


def _adaptive_max_pool(ndim: int) -> Any:
    name = f"adaptive_max_pool{ndim}d"
    plain = (pool.max_pool1d, pool.max_pool2d, pool.max_pool3d)[ndim - 1]

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        counts = _output_size(name, input, output_size, ndim)
        channels = input.shape[-ndim - 1]
        if not channels and input.ndim == ndim + 2:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(input.shape)} with dimension 1 being empty"
            )
        size = tuple(input.shape[-ndim:])
        if channels and all(count and not n % count for n, count in zip(size, counts)):
            kernel = tuple([n // count for n, count in zip(size, counts)])
            y, indices = plain(input, kernel, return_indices=True)
            if ndim == 3:
                y, indices = y.contiguous(), indices.contiguous()
            return (y, indices) if return_indices else y
        batched = input.ndim == ndim + 2
        x = stepwise(input) if batched else stepwise(input).unsqueeze(0)
        indices = apply(AdaptiveMaxIndices, x, counts=counts)
        shape = x.shape[:2]
        flat = indices.reshape(*shape, math.prod(counts))
        y = x.reshape(*shape, math.prod(size)).gather(2, flat).reshape(*shape, *counts)
        if ndim == 2:
            y, indices = in_format_of(y, x), in_format_of(indices, x)
        if 0 in y.shape[1 if batched else 2 :]:
            y = apply(NothingPooled, x, shape=y.shape)
        if not batched:
            y, indices = y.squeeze(0), indices.squeeze(0)
        return (y, indices) if return_indices else y

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> Any:
        return adaptive_max_pool(input, output_size, True)

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = name
    adaptive_max_pool.__doc__ = (
        f"Maxima over windows that cover the {ndim} last axes of (n, c, ...) or (c, ...), as many "
        "as `output_size` says.\n\nWith `return_indices` also where they lie in the flattened "
        "space, int64."
    )
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"`{name}` with ``return_indices=True``."
    with_indices = checked(with_indices)
    adaptive_max_pool = public("functional", names=(name,))(adaptive_max_pool)
    export(with_indices, "functional", name=with_indices.__name__)
    if ndim == 1:  # torch has it, under the short name
        export(with_indices, "torch", name=name)
    return adaptive_max_pool


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max_pool, (1, 2, 3))


def _per_axis(value: Any, ndim: int, name: str, argument: str) -> tuple[Any, ...]:
    """A setting of `max_unpool`: one number for each axis, which need not be whole."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    if not all([is_number(number) for number in values]):
        raise TypeError(f"{name}(): argument '{argument}' must be numbers, got {value!r}")
    if len(values) != ndim:
        raise IndexError(f"{name}(): argument '{argument}' must be {ndim} numbers, got {value!r}")
    return values


def _max_unpool(ndim: int) -> Any:
    name = f"max_unpool{ndim}d"

    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        kernel = _per_axis(kernel_size, ndim, name, "kernel_size")
        steps = kernel if stride is None else _per_axis(stride, ndim, name, "stride")
        pads = _per_axis(padding, ndim, name, "padding")
        if input.ndim not in (ndim + 1, ndim + 2):
            raise RuntimeError(
                f"Input to {name} should be a {ndim + 1}d or {ndim + 2}d Tensor, but got "
                f"{input.ndim}"
            )
        if indices.dtype.name != "int64":
            raise RuntimeError("elements in indices should be type int64")
        if indices.shape != input.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor "
                f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
            )
        fitting = [
            (n - 1) * s - 2 * p + k for n, s, p, k in zip(input.shape[-ndim:], steps, pads, kernel)
        ]
        size = int_tuple(
            fitting if output_size is None else list(output_size)[-ndim:], ndim, name, "output_size"
        )
        if size is None:
            raise ValueError(f"output_size should be a sequence of {ndim} or {ndim + 2} elements")
        for want, n, s in zip(size, fitting, steps):
            if not n - s < want < n + s:
                raise ValueError(
                    f'invalid output_size "{size}" (each element must be within a stride of '
                    f"{fitting})"
                )
        expect_any_order(f"max_unpooling{max(ndim, 2)}d_forward_out")
        leading = input.shape[:-ndim]
        room = math.prod(size)
        count = math.prod(input.shape[-ndim:])
        zeros = input.new_zeros((*leading, room))
        flat = zeros.scatter(-1, indices.reshape(*leading, count), input.reshape(*leading, count))
        result = flat.reshape(*leading, *size)
        return in_format_of(result, input) if ndim == 2 else result

    max_unpool.__name__ = max_unpool.__qualname__ = name
    max_unpool.__doc__ = (
        f"Zeros with the values of `input` at `indices`, as max_pool{ndim}d returned them."
    )
    return public("functional", names=(name,))(max_unpool)


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))
