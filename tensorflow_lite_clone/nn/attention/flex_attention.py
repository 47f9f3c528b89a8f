"""Attention whose scores a function changes, as ``torch.nn.attention.flex_attention``.

Dong et al., 2024, https://arxiv.org/abs/2412.05496. Here the scores are calculated in full, and
the functions are mapped over them: what a mask leaves out costs time and memory, too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from tensorflow_lite_clone.core.dtypes import float32, float64
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.attention._block_mask import (
    _DEFAULT_BLOCK,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    over_positions,
)
from tensorflow_lite_clone.tensor import Tensor

#: The sides of blocks where none are given, which packages import.
_DEFAULT_SPARSE_BLOCK_SIZE = _DEFAULT_BLOCK

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]


class AuxRequest(NamedTuple):
    """Which results `flex_attention` is to give beside the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logarithms of the sums of exp(score), and the largest scores, each (B, H, L) or None."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels, which have no effect here."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """``softmax(score_mod(scale * query @ key.T)) @ value``: (B, Hq, L, Ev).

    `query` is (B, Hq, L, E), `key` (B, Hkv, S, E), `value` (B, Hkv, S, Ev); with `enable_gqa` each
    head of keys serves Hq / Hkv heads of queries. ``score_mod(score, batch, head, q_idx, kv_idx)``
    sees scalars. The function of `block_mask` leaves scores out; where it leaves out all of a
    row, the output is 0. `scale` is 1 / sqrt(E) by default. With `return_aux` the result is a pair
    of output and `AuxOutput`; with `return_lse` (deprecated) of output and `lse`. ValueError or
    NotImplementedError for shapes that do not fit.
    """
    _expect_fitting(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        warnings.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
            stacklevel=level_outside(),
        )
    scores = _scores(query, key, score_mod, block_mask, scale)
    left_out = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(left_out, 0).softmax(-1).masked_fill(left_out, 0)
    output = weights.to(query.dtype) @ _heads(value, query)
    if return_aux is None and not return_lse:
        return output
    lse = None
    if return_lse or (return_aux is not None and return_aux.lse):
        finite = scores.masked_fill(left_out, 0).logsumexp(-1)
        lse = finite.masked_fill(left_out.squeeze(-1), -math.inf)
    if return_aux is None:
        return output, lse
    return output, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)


def _scores(
    query: Tensor,
    key: Tensor,
    score_mod: Callable[..., Tensor] | None,
    block_mask: BlockMask | None,
    scale: float | None,
) -> Tensor:
    """The scores as the softmax sees them: (B, Hq, L, S), float32 or float64."""
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = (query @ _heads(key, query).mT).to(float64 if query.dtype == float64 else float32)
    scores = scores * scale
    sizes, device = scores.shape, scores.device
    if score_mod is not None:
        scores = over_positions(score_mod, sizes, device, scores)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        mask = over_positions(block_mask.mask_mod, sizes, device)
        scores = scores.masked_fill(~mask, -math.inf)
    return scores


def _heads(x: Tensor, query: Tensor) -> Tensor:
    """Keys or values with a head for each of the queries', and an entry for each in the batch."""
    x = x.expand(query.size(0), *x.shape[1:])
    return x.repeat_interleave(query.size(1) // x.size(1), 1) if x.size(1) else x


def _expect_fitting(
    query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool
) -> None:
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    (batch, heads, q_len, _), (kv_batch, kv_heads, kv_len, _) = query.shape, key.shape
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % kv_heads:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={kv_heads}."
        )
    if block_mask is not None:
        _expect_length(block_mask, q_len, kv_len)
    if batch != kv_batch:
        text = "Expect query and key/value to have the same batch size, or "
        if block_mask is None:
            raise ValueError(
                f"{text}non-none block_mask, but got block_mask=None, Bq={batch}, and "
                f"Bkv={kv_batch}."
            )
        mask_batch = block_mask.kv_num_blocks.size(0)
        if kv_batch != 1 or mask_batch != batch:
            raise ValueError(
                f"{text}block_mask and query to have the same batch size, but got Bq={batch}, "
                f"Bkv={kv_batch}, B_block_mask={mask_batch}."
            )


def _expect_length(block_mask: BlockMask, q_len: int, kv_len: int) -> None:
    mask_q, mask_kv = block_mask.shape[-2:]
    made = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and "
        f"kv_len={kv_len}. As the block mask was created for a "
    )
    if mask_q < q_len or mask_kv < kv_len:
        raise ValueError(
            made + "smaller length than you're using it for, you likely need to create a new block "
            "mask."
        )
    if mask_q > q_len or mask_kv > kv_len:
        raise ValueError(
            made + "larger length than you're using it for, you can either 1. create a new block "
            "mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
            "length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the "
            "block mask to the upper left corner, which does not work for all mask_mods!"
        )
