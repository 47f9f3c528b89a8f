"""Attention of several heads, in the operations that PyTorch composes it of."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.export._capture import Capture
from tensorflow_lite_clone.export._queries import handler
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.create.constructors import zeros, zeros_like
from tensorflow_lite_clone.ops.linalg.matmul import baddbmm, bmm
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


def _split_heads(projected: Tensor, count: int, width: int) -> tuple[Tensor, ...]:
    """The parts of several projections that were one product."""
    parts = projected.unflatten(-1, (count, width)).unsqueeze(0).transpose(0, -2).squeeze(-2)
    parts = parts.contiguous()
    return tuple([parts[number] for number in range(count)])


def _packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Any) -> tuple[Tensor, ...]:
    """The projections of queries, keys and values by one weight."""
    width = q.shape[-1]
    if k is v:
        if q is k:
            return _split_heads(F.linear(q, w, b), 3, width)
        w_q, w_kv = w.split([width, width * 2])
        b_q, b_kv = (None, None) if b is None else b.split([width, width * 2])
        q = F.linear(q, w_q, b_q)
        return q, *_split_heads(F.linear(k, w_kv, b_kv), 2, width)
    weights = w.chunk(3)
    biases = (None,) * 3 if b is None else b.chunk(3)
    return tuple([F.linear(x, wx, bx) for x, wx, bx in zip((q, k, v), weights, biases)])


def _additive(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask that is added: of a mask of flags, -inf where they are set."""
    if mask is None or mask.dtype.kind != "b":
        return mask
    return zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


@handler("multi_head_attention_forward")
def _forward(capture: Capture, *args: Any, **kwargs: Any) -> Any:
    with capture:
        return _composed(*args, **kwargs)


def _composed(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    is_batched = query.dim() == 3
    if not is_batched:
        same = key is value, query is key
        query = query.unsqueeze(1)
        key = query if all(same) else key.unsqueeze(1)
        value = key if same[0] else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, width = query.shape
    key_padding_mask = _additive(key_padding_mask, query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask, is_causal = _additive(attn_mask, query.dtype), False
    head = width // num_heads
    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = [
            F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)
        ]  # fmt: skip
    else:
        q, k, v = _packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None and attn_mask.dim() == 2:
        attn_mask = attn_mask.unsqueeze(0)
    if bias_k is not None:
        k, v = cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _widened(attn_mask, key_padding_mask)
    heads = batch * num_heads
    q = q.view(target, heads, head).transpose(0, 1)
    k = k.view(k.shape[0], heads, head).transpose(0, 1) if static_k is None else static_k
    v = v.view(v.shape[0], heads, head).transpose(0, 1) if static_v is None else static_v
    if add_zero_attn:
        more = zeros((heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = cat([k, more], dim=1), cat([v, more], dim=1)
        attn_mask, key_padding_mask = _widened(attn_mask, key_padding_mask)
    source = k.size(1)
    if key_padding_mask is not None:
        mask = key_padding_mask.view(batch, 1, 1, source)
        mask = mask.expand(-1, num_heads, -1, -1).reshape(heads, 1, source)
        attn_mask = mask if attn_mask is None else attn_mask + mask
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scaled = q * math.sqrt(1.0 / float(head))
        transposed = k.transpose(-2, -1)
        scores = (
            bmm(scaled, transposed) if attn_mask is None else baddbmm(attn_mask, scaled, transposed)
        )
        weights = F.softmax(scores, dim=-1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, p=dropout_p)
        result = bmm(weights, v).transpose(0, 1).reshape(target * batch, width)
        result = F.linear(result, out_proj_weight, out_proj_bias)
        result = result.view(target, batch, result.size(1))
        weights = weights.view(batch, num_heads, target, source)
        weights = weights.mean(dim=1) if average_attn_weights else weights
        return (result, weights) if is_batched else (result.squeeze(1), weights.squeeze(0))
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, source)
    q = q.view(batch, num_heads, target, head)
    k = k.view(batch, num_heads, source, head)
    v = v.view(batch, num_heads, source, head)
    result = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    result = result.permute(2, 0, 1, 3).reshape(batch * target, width)
    result = F.linear(result, out_proj_weight, out_proj_bias)
    result = result.view(target, batch, result.size(1))
    return (result if is_batched else result.squeeze(1)), None


def _widened(*masks: Tensor | None) -> list[Tensor | None]:
    """Masks for one key more, which is not masked."""
    return [None if mask is None else F.pad(mask, (0, 1)) for mask in masks]
