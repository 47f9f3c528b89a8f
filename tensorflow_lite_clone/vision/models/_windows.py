"""Attention within windows: Liu et al., Swin Transformer, 2021."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.rearrange import roll
from tensorflow_lite_clone.tensor import Tensor


def _windows(x: Tensor, window: Sequence[int]) -> Tensor:
    """x (N, H, W, C) cut into windows (N * windows, positions, C)."""
    count, height, width, channels = x.shape
    x = x.view(count, height // window[0], window[0], width // window[1], window[1], channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window[0] * window[1], channels)


def _unwindowed(x: Tensor, window: Sequence[int], height: int, width: int) -> Tensor:
    """The inverse of `_windows`."""
    rows, columns = height // window[0], width // window[1]
    x = x.view(-1, rows, columns, window[0], window[1], x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, height, width, x.shape[-1])


def _regions(size: int, window: int, shift: int) -> Tensor:
    """Which positions were neighbours before they were rolled: the same number."""
    positions = arange(size)
    return (positions >= size - window).long() + (positions >= size - shift).long()


def _shift_mask(size: Sequence[int], window: Sequence[int], shift: Sequence[int]) -> Tensor:
    """-100 for each pair of positions of a window (windows, positions, positions) not to meet."""
    rows, columns = (_regions(*values) for values in zip(size, window, shift))
    numbers = (3 * rows[:, None] + columns).view(1, *size, 1)
    parts = _windows(numbers, window)
    return (parts != parts.transpose(1, 2)) * -100.0


def shifted_window_attention(
    input: Tensor,
    qkv_weight: Tensor,
    proj_weight: Tensor,
    relative_position_bias: Tensor,
    window_size: Sequence[int],
    num_heads: int,
    shift_size: Sequence[int],
    attention_dropout: float = 0.0,
    dropout: float = 0.0,
    qkv_bias: Tensor | None = None,
    proj_bias: Tensor | None = None,
    logit_scale: Tensor | None = None,
    training: bool = True,
) -> Tensor:
    """Self-attention within windows of x (N, H, W, C), which may be shifted around its edges.

    With a `logit_scale` (heads, 1, 1) the attention is V2's, of the cosines of queries and keys.
    """
    height, width, channels = input.shape[1:]
    pad_width, pad_height = -width % window_size[1], -height % window_size[0]
    x = F.pad(input, (0, 0, 0, pad_width, 0, pad_height))
    size = x.shape[1:3]
    # A window as large as the picture has nowhere to go.
    shift = [0 if w >= s else by for w, s, by in zip(window_size, size, shift_size)]
    if any(shift):
        x = roll(x, shifts=(-shift[0], -shift[1]), dims=(1, 2))
    windows = _windows(x, window_size)
    if logit_scale is not None and qkv_bias is not None:
        # V2's keys have no bias.
        third = qkv_bias.numel() // 3
        qkv_bias = qkv_bias.clone()
        qkv_bias[third : 2 * third].zero_()
    count, length, _ = windows.shape
    qkv = F.linear(windows, qkv_weight, qkv_bias)
    q, k, v = qkv.reshape(count, length, 3, num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    if logit_scale is None:
        scores = (q * (channels // num_heads) ** -0.5) @ k.transpose(-2, -1)
    else:
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * logit_scale.clamp(max=math.log(100.0)).exp()
    scores = scores + relative_position_bias
    if any(shift):
        mask = _shift_mask(size, window_size, shift).to(device=x.device, dtype=x.dtype)
        scores = scores.view(-1, mask.shape[0], num_heads, length, length)
        scores = (scores + mask[:, None]).view(count, num_heads, length, length)
    weights = F.dropout(F.softmax(scores, dim=-1), p=attention_dropout, training=training)
    x = (weights @ v).transpose(1, 2).reshape(count, length, channels)
    x = F.dropout(F.linear(x, proj_weight, proj_bias), p=dropout, training=training)
    x = _unwindowed(x, window_size, *size)
    if any(shift):
        x = roll(x, shifts=(shift[0], shift[1]), dims=(1, 2))
    return x[:, :height, :width, :].contiguous()
