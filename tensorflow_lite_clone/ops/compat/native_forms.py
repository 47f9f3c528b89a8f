"""Functions of `torch` that PyTorch's layers are made of, under their own signatures.

They take numbers for modes. The normalisations are in `native_norms`, the losses in
`native_losses`.
"""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.ops._samples import per_sample
from tensorflow_lite_clone.ops.create.constructors import full, tensor
from tensorflow_lite_clone.ops.decorators.autocast import uncast
from tensorflow_lite_clone.ops.linalg.norms import norm
from tensorflow_lite_clone.ops.nn import conv
from tensorflow_lite_clone.ops.nn import embedding_bag as bags
from tensorflow_lite_clone.ops.nn.embedding import _renormalize
from tensorflow_lite_clone.ops.nn.grid import grid_sampler
from tensorflow_lite_clone.ops.nn.interpolate import interpolate
from tensorflow_lite_clone.ops.nn.pixels import channel_shuffle
from tensorflow_lite_clone.tensor import Tensor

export(channel_shuffle, "torch", "functional", name="native_channel_shuffle")


_MODES = ("sum", "mean", "max")


@public("torch")
@per_sample("offsets")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag`, to which bag each index went, how many each bag has, and with
    mode 2 the indices of the largest. `mode` is 0 for sums, 1 for means, 2 for maxima.

    Raises RuntimeError for another mode.
    """
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if per_sample_weights is not None and mode:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    flat, device = indices.reshape(-1), weight.device
    try:
        out = bags.embedding_bag(
            flat,
            weight,
            offsets,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=_MODES[mode],
            sparse=sparse,
            per_sample_weights=per_sample_weights,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
    except IndexError as error:  # PyTorch's is another one here
        raise RuntimeError(str(error)) from None
    count = len(out)
    bag_of = _bag_of(offsets, flat.shape[0], count).to(device)
    if mode == 0:
        return out, bag_of, offsets.new_zeros(offsets.shape), offsets.new_zeros(offsets.shape)
    counted = bag_of.new_ones(bag_of.shape)
    if padding_idx is not None:
        counted = (flat != padding_idx % weight.shape[0]).to(int64)
    sizes = bag_of.new_zeros(count).index_add(0, bag_of, counted)
    if mode == 1:
        return out, bag_of, sizes, sizes.clone()
    with no_grad():
        rows = weight.detach()[flat.long()]
        best = (rows == out.detach()[bag_of]) & (counted == 1).unsqueeze(1)
        candidates = flat.long().unsqueeze(1).expand(rows.shape)
        # of equal rows the first counts
        place = full(out.shape, flat.shape[0], dtype=int64, device=device)
        every = tensor(range(flat.shape[0]), dtype=int64, device=device).unsqueeze(1)
        ranks = every.expand(rows.shape).masked_fill(~best, flat.shape[0])
        target = bag_of.unsqueeze(1).expand(rows.shape)
        place = place.scatter_reduce(0, target, ranks, "amin")
        found = candidates.gather(0, place.clamp(0, max(flat.shape[0] - 1, 0)))
        largest = found.masked_fill(place == flat.shape[0], 0)
    return out, bag_of, sizes, largest


def _bag_of(offsets: Tensor, length: int, count: int) -> Tensor:
    """The bag of each of `length` indices, on the CPU."""
    starts = bags.starts_of(offsets, length, count < len(offsets))
    ends = [*starts[1:], length][:count]
    numbers = [bag for bag, (a, b) in enumerate(zip(starts, ends)) for _ in range(a, b)]
    return tensor(numbers, dtype=int64, device="cpu")


@public("torch")
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shorten the rows at `indices` that are longer than `max_norm`, in place.

    Raises RuntimeError for other than two dimensions, or indices that are no integers.
    """
    if input.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {input.ndim}-dimensional tensor for argument "
            "#1 'self' (while checking arguments for embedding_renorm_)"
        )
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{indices.dtype.short_name}Tensor instead (while checking "
            "arguments for embedding_renorm_)"
        )
    if input.requires_grad and input.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    _renormalize(input, indices, max_norm, norm_type)
    return input


@public("torch")
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The p-norm over all dimensions but one, which stays; of all with ``dim=-1``."""
    if dim == -1:
        return norm(v, pow)
    sizes = [1] * v.ndim
    place = normalize_dim(dim, v.ndim)
    sizes[place] = v.shape[place]
    rows = v.transpose(0, place).reshape(v.shape[place], -1)
    return norm(rows, pow, 1).reshape(sizes)


@public("torch", "functional")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution over time: (steps, n, in), (kernel, in, out) and (out,) give (steps, n, out).

    `pad` zeros stand before the first and after the last step. Raises RuntimeError when the sizes
    do not fit.
    """
    if bias is None:
        raise TypeError("conv_tbc(): argument 'bias' (position 3) must be Tensor, not NoneType")
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    steps = input.shape[0] + 2 * pad - weight.shape[0] + 1
    if steps <= 0:
        if steps < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {steps}")
        return input[:0].matmul(weight[0]) + bias
    turned = conv.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return turned.permute(2, 0, 1).contiguous()


@public("torch")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution, or its transpose, of as many dimensions as `weight` has behind the first two.

    Raises RuntimeError when the sizes do not fit; the input has a batch.
    """
    ndim = weight.ndim - 2
    if not 1 <= ndim <= 3 or input.ndim != weight.ndim:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight "
            f"{list(weight.shape)}, but got {input.ndim}-dimensional input of size "
            f"{list(input.shape)} instead"
        )
    if transposed:
        function = uncast(getattr(conv, f"conv_transpose{ndim}d"))
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    function = uncast(getattr(conv, f"conv{ndim}d"))
    return function(input, weight, bias, stride, padding, dilation, groups)


def _grid_sampler(ndim: int) -> None:
    def sampler(
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
    ) -> Tensor:
        if input.ndim != ndim + 2 or grid.ndim != ndim + 2:
            raise RuntimeError(
                f"grid_sampler(): expected {ndim + 2}D input and grid with same number of "
                f"dimensions, but got input with sizes {list(input.shape)} and grid with sizes "
                f"{list(grid.shape)}"
            )
        return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    sampler.__name__ = sampler.__qualname__ = f"grid_sampler_{ndim}d"
    sampler.__doc__ = f"`grid_sampler` of {'images' if ndim == 2 else 'volumes'}."
    public("torch")(sampler)


_grid_sampler(2)
_grid_sampler(3)


@public("functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "nearest"; deprecated."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@public("functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "bilinear" and aligned corners; deprecated."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=level_outside(),
    )
