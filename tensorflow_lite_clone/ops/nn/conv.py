"""Convolutions of one to three spatial axes, transposed ones, and their gradients.

One op serves every number of axes. Its gradients are convolutions again, so that three ops (the
convolution, its transpose, and its weight's gradient) are closed under differentiation. A device
overrides them by name: "conv", "conv_backward_input", "conv_backward_weight".
"""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import Any

from tensorflow_lite_clone.backends.windows import Ints, extent, int_tuple, windows_size
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import windows_with_weight
from tensorflow_lite_clone.ops._formulas import conj, wide
from tensorflow_lite_clone.ops.linalg._products import product
from tensorflow_lite_clone.ops.nn._windows import folded, unfolded
from tensorflow_lite_clone.ops.nn.pad import pad
from tensorflow_lite_clone.tensor import Tensor


def _columns(F: Any, x: Any, count: tuple, kernel: tuple, groups: int, geometry: tuple) -> Any:
    """x (n, c, *space) as (n, groups, c / groups * kernel, count): a column per window."""
    windows = unfolded(F, x, count, kernel, *geometry)
    rows = x.shape[1] // groups * math.prod(kernel)
    return F.reshape(windows, (x.shape[0], groups, rows, math.prod(count)))


class Conv(Op):
    """x (n, c, *space), w (o, c / groups, *kernel), b (o,) or None: (n, o, *count)."""

    cost = costs.product(costs.conv_flops, 0, 1)
    layout = windows_with_weight
    layout_agnostic = True
    label = "Convolution"
    joined = ("x", "w")

    def forward(F, x, w, b, *, stride, padding, dilation, groups):
        kernel = w.shape[2:]
        count = windows_size(x.shape[2:], kernel, stride, padding, dilation)
        columns = _columns(F, x, count, kernel, groups, (stride, padding, dilation))
        weight = F.reshape(w, (groups, w.shape[0] // groups, columns.shape[2]))
        y = F.reshape(F.matmul(weight, columns), (x.shape[0], w.shape[0], *count))
        if b is not None:
            y += F.reshape(b, (-1, *(1,) * len(count)))
        return y

    def backward_x(F, g, x, w, *, stride, padding, dilation, groups):
        return F.conv_backward_input(
            g, conj(F, w), size=x.shape[2:], stride=stride, padding=padding, dilation=dilation,
            groups=groups,
        )  # fmt: skip

    def backward_w(F, g, x, w, *, stride, padding, dilation, groups):
        return F.conv_backward_weight(
            g, conj(F, x), kernel=w.shape[2:], stride=stride, padding=padding, dilation=dilation,
            groups=groups,
        )  # fmt: skip

    def backward_b(F, g):
        return F.sum(g, axis=(0, *range(2, g.ndim)))


class ConvBackwardInput(Op):
    """The gradient of `Conv` for an input whose space has this `size`: its transpose."""

    cost = costs.product(costs.conv_transpose_flops, 0, 1)
    layout_agnostic = True
    label = "ConvolutionBackward"

    def forward(F, g, w, *, size, stride, padding, dilation, groups):
        (n, o, *count), kernel = g.shape, w.shape[2:]
        weight = F.reshape(w, (groups, o // groups, w.shape[1] * math.prod(kernel)))
        g = F.reshape(g, (n, groups, o // groups, math.prod(count)))
        columns = F.matmul(F.matrix_transpose(weight), g)
        windows = F.reshape(columns, (n, w.shape[1] * groups, *kernel, *count))
        gx = folded(F, wide(F, windows), size, kernel, stride, padding, dilation)
        return F.astype(gx, g.dtype)

    def backward_g(F, h, w, *, stride, padding, dilation, groups):
        return F.conv(
            h, conj(F, w), None, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def backward_w(F, h, g, w, *, stride, padding, dilation, groups):
        return F.conv_backward_weight(
            conj(F, g), h, kernel=w.shape[2:], stride=stride, padding=padding, dilation=dilation,
            groups=groups,
        )  # fmt: skip


class ConvBackwardWeight(Op):
    """The gradient of `Conv` for a weight whose windows are `kernel`."""

    cost = costs.product(costs.conv_weight_flops, 0, 1)
    layout_agnostic = True
    label = "ConvolutionBackward"

    def forward(F, g, x, *, kernel, stride, padding, dilation, groups):
        n, o, *count = g.shape
        columns = _columns(F, x, tuple(count), kernel, groups, (stride, padding, dilation))
        g = F.reshape(g, (n, groups, o // groups, math.prod(count)))
        gw = F.sum(F.matmul(g, F.matrix_transpose(columns)), axis=0)
        return F.reshape(gw, (o, x.shape[1] // groups, *kernel))

    def backward_g(F, h, x, *, stride, padding, dilation, groups):
        return F.conv(
            conj(F, x), h, None, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def backward_x(F, h, g, x, *, stride, padding, dilation, groups):
        return F.conv_backward_input(
            conj(F, g), h, size=x.shape[2:], stride=stride, padding=padding, dilation=dilation,
            groups=groups,
        )  # fmt: skip


class ConvTranspose(Op):
    """x (n, o, *count), w (o, c / groups, *kernel), b (c,) or None: (n, c, *size)."""

    cost = costs.product(costs.conv_transpose_flops, 0, 1)
    layout = windows_with_weight
    layout_agnostic = True
    label = "Convolution"
    joined = ("x", "w")

    def forward(F, x, w, b, *, size, stride, padding, dilation, groups):
        y = F.conv_backward_input(
            x, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
        if b is not None:
            y += F.reshape(b, (-1, *(1,) * len(size)))
        return y

    def backward_x(F, g, w, *, stride, padding, dilation, groups):
        return F.conv(
            g, conj(F, w), None, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def backward_w(F, g, x, w, *, stride, padding, dilation, groups):
        return F.conv_backward_weight(
            conj(F, x), g, kernel=w.shape[2:], stride=stride, padding=padding, dilation=dilation,
            groups=groups,
        )  # fmt: skip

    backward_b = Conv.backward_b


def _setting(value: Any, ndim: int, name: str, argument: str, least: int) -> Ints:
    """One of stride, padding, ... as a tuple of ints that are at least `least`."""
    values = int_tuple(value, ndim, name, argument)
    if values is None:
        raise RuntimeError(
            f"expected {argument} to be a single integer value or a list of {ndim} values to "
            f"match the convolution dimensions, but got {argument}={list(value)}"
        )
    if min(values) < least:
        raise RuntimeError(f"{'non-positive' if least else 'negative'} {argument} is not supported")
    return values


def _check_dims(name: str, input: Tensor, weight: Tensor, ndim: int) -> bool:
    """Whether the input comes in batches; RuntimeError for a wrong number of axes."""
    if input.ndim not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {name}, but got "
            f"input of size: {list(input.shape)}"
        )
    if weight.ndim != ndim + 2:
        raise RuntimeError(
            f"Expected {ndim + 2}-dimensional weight for {name}, but got weight of size "
            f"{list(weight.shape)}"
        )
    return input.ndim == ndim + 2


def _shape_of(bias: Tensor | None) -> tuple | None:
    return None if bias is None else bias._storage.physical.shape


@lru_cache(4096)
def _check_sizes(shape: tuple, w: tuple, bias: tuple | None, groups: int, transposed: bool) -> None:
    """torch's RuntimeErrors for channels that do not fit."""
    if groups < 1:
        raise RuntimeError("non-positive groups is not supported")
    given = f"Given transposed={int(transposed)}" if transposed else f"Given groups={groups}"
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {list(w)} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{list(w)}] instead"
        )
    channels = w[0] if transposed else w[1] * groups
    if shape[1] != channels:
        raise RuntimeError(
            f"{given}, weight of size {list(w)}, expected input{list(shape)} to have {channels} "
            f"channels, but got {shape[1]} channels instead"
        )
    outputs = w[1] * groups if transposed else w[0]
    if bias not in (None, (outputs,)):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(w)}, expected "
            f"bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(bias)} instead"
        )
    if 0 in shape[2:] or 0 in w[2:]:
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, but got input shape: "
            f"{list(shape)}"
        )


@lru_cache(4096)
def _check_windows(shape: tuple, w: tuple, padding: Ints, dilation: Ints) -> None:
    """torch's RuntimeError for a window that does not fit."""
    spans = [extent(k, d) for k, d in zip(w[2:], dilation)]
    padded = [n + 2 * p for n, p in zip(shape[2:], padding)]
    if any([n < span for n, span in zip(padded, spans)]):
        raise RuntimeError(
            f"Calculated padded input size per channel: {_by_sizes(padded)}. Kernel size: "
            f"{_by_sizes(spans)}. Kernel size can't be greater than actual input size"
        )


@lru_cache(4096, typed=True)  # a stride of 1.0 is not one of 1
def _usual(
    name: str, ndim: int, shape: tuple, w: tuple, bias: tuple | None, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> tuple[Ints, Ints, Ints] | None:  # fmt: skip
    """Stride, padding and dilation of a convolution as tuples, all checked, where the input comes
    in batches and the padding in numbers; None otherwise."""
    if isinstance(padding, str) or len(shape) != ndim + 2 or len(w) != ndim + 2:
        return None
    stride = _setting(stride, ndim, name, "stride", 1)
    dilation = _setting(dilation, ndim, name, "dilation", 1)
    _check_sizes(shape, w, bias, groups, False)
    padding = _setting(padding, ndim, name, "padding", 0)
    _check_windows(shape, w, padding, dilation)
    return stride, padding, dilation


def _by_sizes(values: Any) -> str:
    return "(" + " x ".join(map(str, values)) + ")"


def _same_padding(input: Tensor, w: tuple, stride: Ints, dilation: Ints) -> tuple[Tensor, Ints]:
    """Padding that keeps the size; where it is uneven the input is padded at its end first."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [extent(k, d) - 1 for k, d in zip(w[2:], dilation)]
    if any(t % 2 for t in total):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a "
            "zero-padded copy of the input be created",
            stacklevel=level_outside(),
        )
        input = pad(input, [end for t in reversed(total) for end in (0, t % 2)])
    return input, tuple([t // 2 for t in total])


def _convolution(ndim: int) -> Any:
    name = f"conv{ndim}d"

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        try:
            settings = _usual(
                name, ndim, input._storage.physical.shape, weight._storage.physical.shape,
                _shape_of(bias), stride, padding, dilation, groups,
            )  # fmt: skip
        except (AttributeError, TypeError):  # no tensors, or settings in lists
            settings = None
        if settings is not None:
            stride, padding, dilation = settings
            return product(
                name, Conv, input, weight, bias, stride=stride, padding=padding,
                dilation=dilation, groups=groups,
            )  # fmt: skip
        stride = _setting(stride, ndim, name, "stride", 1)
        dilation = _setting(dilation, ndim, name, "dilation", 1)
        batched = _check_dims(name, input, weight, ndim)
        if not batched:
            input = input.unsqueeze(0)
        w = weight._storage.physical.shape
        _check_sizes(input._storage.physical.shape, w, _shape_of(bias), groups, False)
        if padding == "same":
            input, padding = _same_padding(input, w, stride, dilation)
        elif padding == "valid":
            padding = (0,) * ndim
        elif isinstance(padding, str):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        else:
            padding = _setting(padding, ndim, name, "padding", 0)
        _check_windows(input._storage.physical.shape, w, padding, dilation)
        result = product(
            name, Conv, input, weight, bias, stride=stride, padding=padding, dilation=dilation,
            groups=groups,
        )  # fmt: skip
        return result if batched else result.squeeze(0)

    conv.__name__ = conv.__qualname__ = name
    axes = ", ".join("dhw"[3 - ndim :])
    conv.__doc__ = (
        f"Cross-correlation: (n, c, {axes}) with weight (out, c / groups, *kernel) and bias (out,) "
        "gives (n, out, ...).\n\n"
        "`padding` is a number, one per axis, 'valid' or 'same'; an input without n is one sample. "
        "Raises RuntimeError\nwhen sizes or dtypes do not fit."
    )
    return public("torch", "functional", names=(name,))(conv)


def _transposed_convolution(ndim: int) -> Any:
    name = f"conv_transpose{ndim}d"

    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        stride = _setting(stride, ndim, name, "stride", 1)
        padding = _setting(padding, ndim, name, "padding", 0)
        dilation = _setting(dilation, ndim, name, "dilation", 1)
        output_padding = _setting(output_padding, ndim, name, "output_padding", 0)
        batched = _check_dims(name, input, weight, ndim)
        if not batched:
            input = input.unsqueeze(0)
        shape, w = input._storage.physical.shape, weight._storage.physical.shape
        _check_sizes(shape, w, _shape_of(bias), groups, True)
        # PyTorch looks at neither where there are no samples.
        if shape[0] and any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding={output_padding}, stride={stride}, dilation={dilation}"
            )
        size = tuple(
            [
                (n - 1) * s - 2 * p + extent(k, d) + o
                for n, s, p, k, d, o in zip(
                    shape[2:], stride, padding, w[2:], dilation, output_padding
                )
            ]
        )
        if min(size) < (1 if shape[0] else 0):
            raise RuntimeError(
                f"Given input size per channel: {_by_sizes(shape[2:])}. Calculated output size per "
                f"channel: {_by_sizes(size)}. Output size is too small"
            )
        # An output padding of a stride or more (allowed below the dilation) makes room for windows
        # that the convolution has and its transpose lacks: it is added afterwards then.
        late = any(o >= s for o, s in zip(output_padding, stride))
        result = product(
            name, ConvTranspose, input, weight, None if late else bias, stride=stride,
            size=tuple([n + 2 * p - o for n, p, o in zip(size, padding, output_padding)])
            if late else size,
            padding=(0,) * ndim if late else padding, dilation=dilation, groups=groups,
        )  # fmt: skip
        if late:
            result = pad(result, [end for o in reversed(output_padding) for end in (0, o)])
            result = result[(..., *[slice(p, p + n) for p, n in zip(padding, size)])].contiguous()
            if bias is not None:
                result = result + bias.reshape(-1, *(1,) * ndim)
        return result if batched else result.squeeze(0)

    conv_transpose.__name__ = conv_transpose.__qualname__ = name
    conv_transpose.__doc__ = (
        f"The transpose of conv{ndim}d, which upsamples where that has a stride: (n, c, ...) with "
        "weight (c, out / groups, *kernel)\nand bias (out,) gives (n, out, ...). "
        "`output_padding` picks one of the sizes that the stride merges."
    )
    return public("torch", "functional", names=(name,))(conv_transpose)


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_convolution, (1, 2, 3))
