"""Pools over sliding windows: maxima, averages, and lp norms.

One op serves every number of spatial axes. The maximum saves its input and result, and finds the
winners again in its gradient: on a host that is cheaper than keeping their indices, and costs
nothing where no gradient is wanted. A backend that would rather keep them returns them as a hint
in its own form, which comes back to its `max_pool_backward`; the generic hint is empty. Of equal
values the first wins, of NaNs the last, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.backends.windows import (
    Ints,
    int_tuple,
    padded_size,
    pooled_size,
    window_slices,
)
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.result_layout import windows
from tensorflow_lite_clone.ops._formulas import widened
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import calls_cast_operands, cast_operands
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.nn._windows import padded
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.tensor import Tensor


def _reach(size: Any, count: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Ints:
    """The size of the space, padding included, that all windows lie in."""
    covered = padded_size(count, kernel, stride, dilation)
    return tuple([max(c, n + p) for c, n, p in zip(covered, size, padding)])


def _lowest(F: Any, dtype: Any) -> Any:
    return F.iinfo(dtype).min if dtype.kind in "iu" else -math.inf


def _along(axis: int, part: slice) -> tuple:
    return (slice(None),) * axis + (part,)


def _by_axes(F: Any, combine: Any, x: Any, count: Any, kernel: Any, stride: Any, dilation: Any):
    """Windows combined one axis after the other."""
    for axis, (c, k, s, d) in enumerate(zip(count, kernel, stride, dilation), 2):
        result = None
        for i in range(k):
            part = x[_along(axis, slice(i * d, i * d + (c - 1) * s + 1, s))]
            result = part if result is None else combine(result, part)
        x = result
    return x


class MaxPool(Op):
    """The largest value of every window of x (n, c, *space); and a hint at who won, or nothing."""

    cost = costs.pool
    layout = windows
    layout_agnostic = True
    label = "MaxPool2DWithIndices"
    constant_in = ("x",)
    nondifferentiable = (1,)
    auxiliary_outputs = (1,)
    recomputable = True  # PyTorch keeps places, not values: ``relu_(max_pool2d(x))`` is common

    def forward(F, x, *, kernel, stride, padding, dilation, ceil_mode):
        count = pooled_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
        total = _reach(x.shape[2:], count, kernel, stride, padding, dilation)
        y = padded(F, x, padding, total, _lowest(F, x.dtype))
        y = _by_axes(F, F.maximum, y, count, kernel, stride, dilation)
        y = F.copy(y) if y is x or max(kernel) == 1 else y
        return y, F.zeros((0,), dtype=F.uint8)

    def backward_x(F, g, x, out0, out1, *, kernel, stride, padding, dilation):
        return F.max_pool_backward(
            g, x, out0, out1, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )


@composite
def max_pool_winners(F, x, y, *, kernel, stride, padding, dilation):
    """The number of the place, counted row by row, that each window's maximum y has in it."""
    size, count = x.shape[2:], y.shape[2:]
    total = _reach(size, count, kernel, stride, padding, dilation)
    x = padded(F, x, padding, total, _lowest(F, x.dtype))
    inside = padded(F, F.ones((1, 1, *size), dtype=F.bool), padding, total, False)
    winners = F.full(y.shape, -1, dtype=F.int32)
    for number, (_, slices) in enumerate(window_slices(kernel, count, stride, dilation)):
        part = x[(..., *slices)]
        wins = (part == y) & (winners < 0)
        if any(padding) or total != size:
            wins = wins & inside[(..., *slices)]
        if x.dtype.kind not in "iu":
            wins = wins | (part != part)
        winners = F.where(wins, F.asarray(number, dtype=F.int32), winners)
    return winners


class MaxPoolBackward(Op):
    """Each window's g at the place of its maximum, zeros elsewhere, added up.

    `hint` is the second output of `MaxPool`, or None.
    """

    layout_agnostic = True
    label = "MaxPool2DWithIndicesBackward"

    def forward(F, g, x, y, hint, *, kernel, stride, padding, dilation):
        winners = F.max_pool_winners(
            x, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )
        size, count = x.shape[2:], y.shape[2:]
        total = _reach(size, count, kernel, stride, padding, dilation)
        dtype = F.float32 if x.dtype.itemsize == 2 else x.dtype  # sums need more than two bytes
        g = F.astype(g, dtype)
        gx = F.zeros((*x.shape[:2], *total), dtype=dtype)
        for number, (_, slices) in enumerate(window_slices(kernel, count, stride, dilation)):
            gx[(..., *slices)] += g * F.astype(winners == number, dtype)
        return F.astype(_cropped(F, gx, size, padding), x.dtype)

    def backward_g(F, h, x, y, *, kernel, stride, padding, dilation):
        return F.max_pool_pick(
            h, x, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )


class MaxPoolPick(Op):
    """The values of h where the windows of x have their maxima y."""

    layout_agnostic = True
    label = "Gather"

    def forward(F, h, x, y, *, kernel, stride, padding, dilation):
        winners = F.max_pool_winners(
            x, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )
        count = y.shape[2:]
        h = padded(F, h, padding, _reach(x.shape[2:], count, kernel, stride, padding, dilation))
        result = F.zeros(y.shape, dtype=h.dtype)
        for number, (_, slices) in enumerate(window_slices(kernel, count, stride, dilation)):
            result = F.where(winners == number, h[(..., *slices)], result)
        return result

    def backward_h(F, g, x, y, *, kernel, stride, padding, dilation):
        return F.max_pool_backward(
            g, x, y, None, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )


class MaxPoolIndices(Op):
    """Where each window's maximum lies, as an index into the flattened space of x; int64."""

    layout = windows
    layout_agnostic = True

    def forward(F, x, y, *, kernel, stride, padding, dilation):
        winners = F.max_pool_winners(
            x, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )
        size, count = x.shape[2:], y.shape[2:]
        places = [place for place, _ in window_slices(kernel, count, stride, dilation)]
        indices = F.asarray(0, dtype=F.int64)
        for axis, (n, c, s, p, d) in enumerate(zip(size, count, stride, padding, dilation)):
            offsets = F.asarray([place[axis] * d for place in places], dtype=F.int64)
            starts = F.asarray([i * s - p for i in range(c)], dtype=F.int64)
            starts = F.reshape(starts, (c, *(1,) * (len(count) - axis - 1)))
            indices = indices * n + F.take(offsets, winners) + starts
        return indices


def _cropped(F: Any, x: Any, size: tuple, padding: tuple) -> Any:
    if x.shape[2:] == size:
        return x
    return F.copy(x[(..., *[slice(p, p + n) for p, n in zip(padding, size)])])


def _lengths(n: int, c: int, k: int, s: int, p: int, include: bool) -> list[int]:
    """How many elements each window along an axis counts."""
    spans = [(i * s - p, min(i * s - p + k, n + p)) for i in range(c)]
    return [end - start if include else min(end, n) - max(start, 0) for start, end in spans]


def _averaged(
    F: Any, x: Any, size: Any, count: Any, kernel: Any, stride: Any, padding: Any, include: bool,
    divisor: int | None,
) -> Any:  # fmt: skip
    """The sums of windows divided by how many elements these have."""
    if divisor is None:
        lengths = [
            _lengths(*setting, include) for setting in zip(size, count, kernel, stride, padding)
        ]
        if all(len(set(axis)) == 1 for axis in lengths):
            divisor = math.prod(axis[0] for axis in lengths)
        else:
            divisors: Any = F.asarray([1], dtype=x.dtype)
            for axis in lengths:
                divisors = divisors[..., None] * F.asarray(axis, dtype=x.dtype)
            return x / divisors[0]
    return x / divisor


class AvgPool(Op):
    """The mean of every window of x (n, c, *space)."""

    cost = costs.pool

    def layout(shape, operands, parameters):
        return windows(shape, operands, parameters) if len(shape) < 5 else contiguous_strides(shape)

    layout_agnostic = True
    label = "AvgPool2D"
    constant_in = ("x",)

    @widened
    def forward(F, x, *, size, kernel, stride, padding, ceil_mode, include, divisor):
        ones = (1,) * len(kernel)
        count = pooled_size(size, kernel, stride, padding, ones, ceil_mode)
        dtype = x.dtype
        if math.prod(count) == 1 and kernel == size and not any(padding):
            total = F.sum(x, axis=tuple(range(2, x.ndim)), keepdims=True)
        else:
            x = padded(F, x, padding, _reach(size, count, kernel, stride, padding, ones))
            total = _by_axes(F, F.add, x, count, kernel, stride, ones)
        y = _averaged(F, total, size, count, kernel, stride, padding, include, divisor)
        return F.astype(F.trunc(y), dtype) if dtype.kind in "iu" else y

    def backward_x(F, g, *, size, kernel, stride, padding, ceil_mode, include, divisor):
        return F.avg_pool_backward(
            g, size=size, kernel=kernel, stride=stride, padding=padding,
            ceil_mode=ceil_mode, include=include, divisor=divisor,
        )  # fmt: skip


class AvgPoolBackward(Op):
    """Each window's gradient x, divided, at all of its places, added up."""

    layout_agnostic = True
    label = "AvgPool2DBackward"

    @widened
    def forward(F, x, *, size, kernel, stride, padding, ceil_mode, include, divisor):
        ones, count = (1,) * len(kernel), x.shape[2:]
        gx = _averaged(F, x, size, count, kernel, stride, padding, include, divisor)
        total = _reach(size, count, kernel, stride, padding, ones)
        for axis in reversed(range(2, x.ndim)):
            c, k, s, t = count[axis - 2], kernel[axis - 2], stride[axis - 2], total[axis - 2]
            if c == 1 and k == t:
                gx = F.broadcast_to(gx, (*gx.shape[:axis], t, *gx.shape[axis + 1 :]))
                continue
            wide = F.zeros((*gx.shape[:axis], t, *gx.shape[axis + 1 :]), dtype=gx.dtype)
            for i in range(k):
                part = _along(axis, slice(i, i + (c - 1) * s + 1, s))
                if s >= k:
                    wide[part] = gx
                else:
                    wide[part] += gx
            gx = wide
        gx = _cropped(F, gx, size, padding)
        # Where a window is the whole picture its places share memory, and could not be written to.
        return F.copy(gx) if 1 in count else gx

    def backward_x(F, h, *, size, kernel, stride, padding, ceil_mode, include, divisor):
        return F.avg_pool(
            h, size=size, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
            include=include, divisor=divisor,
        )  # fmt: skip


_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


def _setting(value: Any, ndim: int, name: str, argument: str) -> Ints:
    values = int_tuple(value, ndim, name, argument)
    if values is None:
        omitted = "be omitted, a single int" if argument == "stride" else "either be a single int"
        raise RuntimeError(f"{name}: {argument} must {omitted}, or a tuple of {_COUNTS[ndim]}")
    return values


def _geometry(
    name: str,
    input: Tensor,
    ndim: int,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Kernel, stride, padding and dilation as tuples; torch's RuntimeErrors when they cannot be."""
    kernel = _setting(kernel_size, ndim, name, "kernel_size")
    if stride is None or (not hasattr(stride, "__index__") and len(stride) == 0):
        steps = kernel
    else:
        steps = _setting(stride, ndim, name, "stride")
    pads = _setting(padding, ndim, name, "padding")
    spread = _setting(dilation, ndim, name, "dilation")
    if min(kernel) < 1:
        raise RuntimeError(f"{name}: kernel size must be greater than zero, but got {kernel}")
    if min(steps) < 1:
        raise RuntimeError(f"{name}: stride must be greater than zero, but got {steps}")
    if min(spread) < 1:
        raise RuntimeError(f"{name}: dilation must be greater than zero, but got {spread}")
    if min(pads) < 0:
        raise RuntimeError(f"{name}: pad must be non-negative, but got pad: {min(pads)}")
    for p, k in zip(pads, kernel):
        if p > k // 2:
            raise RuntimeError(
                f"pad should be at most half of kernel size, but got pad={p} and kernel_size={k}"
            )
    shape = input._storage.physical.shape
    if len(shape) not in (ndim + 1, ndim + 2) or 0 in shape[-ndim - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with optional 0 dim "
            f"batch size for input, but got:{list(shape)}"
        )
    count = pooled_size(shape[-ndim:], kernel, steps, pads, spread, ceil_mode)
    if min(count) < 1:
        given, computed = ("x".join(map(str, s)) for s in (shape[-ndim:], count))
        planes = shape[-ndim - 1]
        raise RuntimeError(
            f"Given input size: ({planes}x{given}). Calculated output size: ({planes}x{computed}). "
            "Output size is too small"
        )
    return kernel, steps, pads, spread


def _expect_ordered(name: str, input: Tensor) -> None:
    if input.dtype.kind in "bc":
        refuse(name, input.dtype)


def _max_pool(ndim: int) -> Any:
    name = f"max_pool{ndim}d"

    @calls_cast_operands(name)
    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if autocast and not return_indices:  # PyTorch's form with indices is on no list
            (input,) = cast_operands(max_pool, input)
        kernel, stride, padding, dilation = _geometry(
            name, input, ndim, kernel_size, stride, padding, dilation, ceil_mode
        )
        _expect_ordered(name, input)
        batched = input.ndim == ndim + 2
        x = input if batched else input.unsqueeze(0)
        y = apply(
            MaxPool, x, kernel=kernel, stride=stride, padding=padding, dilation=dilation,
            ceil_mode=bool(ceil_mode),
        )[0]  # fmt: skip
        if not return_indices:
            if ndim == 1 and not y.requires_grad:
                y = y.contiguous()  # PyTorch has another function for it
            return y if batched else y.squeeze(0)
        indices = apply(
            MaxPoolIndices, x, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )
        return (y, indices) if batched else (y.squeeze(0), indices.squeeze(0))

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> Any:
        return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = (
        f"The largest value of every window over {ndim} last axes of (n, c, ...) or (c, ...).\n\n"
        "`stride` is the kernel size unless given. With `return_indices` also where it lies in "
        "the flattened space, int64."
    )
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"`{name}` with ``return_indices=True``."
    max_pool = public("torch", "functional", names=(name,))(max_pool)
    places = ("torch", "functional") if ndim == 1 else ("functional",)
    export(checked(with_indices), *places, name=with_indices.__name__)
    return max_pool


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))


def _average(
    name: str, input: Tensor, ndim: int, kernel_size: Any, stride: Any, padding: Any,
    ceil_mode: bool, include: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    kernel, stride, padding, _ = _geometry(
        name, input, ndim, kernel_size, stride, padding, 1, ceil_mode
    )
    if input.dtype.kind in "bc":
        refuse(name, input.dtype)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    batched = input.ndim == ndim + 2
    size = input._storage.physical.shape[-ndim:]
    if ndim == 3 and any([n < k for n, k in zip(size, kernel)]):
        given, window = (" ".join(map("{}: {}".format, names, s)) for names, s in (
            ("THW", size), (("kT", "kH", "kW"), kernel)))  # fmt: skip
        raise RuntimeError(f"input image ({given}) smaller than kernel size ({window})")
    y = apply(
        AvgPool, input if batched else input.unsqueeze(0), size=size,
        kernel=kernel, stride=stride, padding=padding, ceil_mode=bool(ceil_mode),
        include=bool(include), divisor=divisor,
    )  # fmt: skip
    return y if batched else y.squeeze(0)


@public("torch", "functional")
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window over the last axis of (n, c, w) or (c, w)."""
    return _average(
        "avg_pool1d", input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


def _avg_pool(ndim: int) -> Any:
    name = f"avg_pool{ndim}d"

    def avg_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        return _average(
            name, input, ndim, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override,
        )  # fmt: skip

    avg_pool.__name__ = avg_pool.__qualname__ = name
    avg_pool.__doc__ = (
        f"The mean of every window over {ndim} last axes of (n, c, ...) or (c, ...).\n\n"
        "Padding counts as zeros unless `count_include_pad` is false; `divisor_override` replaces "
        "the count."
    )
    return public("functional", names=(name,))(with_out(avg_pool))


avg_pool2d, avg_pool3d = map(_avg_pool, (2, 3))


def _lp_pool(ndim: int) -> Any:
    name = f"lp_pool{ndim}d"

    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        kernel = _setting(kernel_size, ndim, name, "kernel_size")
        powers = input.pow(norm_type)
        mean = _average(name, powers, ndim, kernel, stride, 0, ceil_mode, True, None)
        positive = mean.sign() * mean.abs().relu()
        return (positive * math.prod(kernel)).pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = name
    lp_pool.__doc__ = (
        f"(sum of x ** p) ** (1 / p) over windows of {ndim} last axes, p being `norm_type`."
    )
    export(checked(lp_pool), "functional", name=name)
    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))
