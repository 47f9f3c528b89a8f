"""Multi-head attention: projections around scaled dot-product attention."""

from __future__ import annotations

from math import inf, sqrt

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.attention import scaled_dot_product_attention
from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.dropout import dropout
from tensorflow_lite_clone.ops.join import cat
from tensorflow_lite_clone.ops.matmul import linear
from tensorflow_lite_clone.ops.softmax import softmax
from tensorflow_lite_clone.tensor import Tensor


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value through the three blocks of one stacked weight."""
    size = query.shape[-1]
    if key is value and query is key:
        projected = linear(query, weight, bias)
        return projected[..., :size], projected[..., size : 2 * size], projected[..., 2 * size :]
    weights = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    q, k, v = [
        linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]
    return q, k, v


def _merged_mask(mask: Tensor | None, padding: Tensor | None, query: Tensor) -> Tensor | None:
    """The two masks of multi-head attention (True: ignore) as one additive mask."""
    merged = None
    for entry in (mask, padding):
        if entry is None:
            continue
        if entry.dtype is dtypes.bool_:
            entry = zeros_like(entry, dtype=query.dtype).masked_fill(entry, -inf)
        merged = entry if merged is None else merged + entry
    return merged


@public("functional")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention of (L, N, E) query over (S, N, E) key and value (or without N).

    Returns the output and, with `need_weights`, the attention weights (N, L, S), averaged over
    heads unless told otherwise. Masks: True (or -inf) keeps a position from being attended to.
    """
    batched = query.ndim == 3
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query "
            "tensor"
        )
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, size = query.shape
    if size != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}"
        )
    head = size // num_heads
    if head * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if use_separate_proj_weight:
        assert q_proj_weight is not None and k_proj_weight is not None
        assert v_proj_weight is not None
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q = linear(query, q_proj_weight, biases[0])
        k = linear(key, k_proj_weight, biases[1])
        v = linear(value, v_proj_weight, biases[2])
    else:
        assert in_proj_weight is not None
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None and attn_mask.ndim == 2:
        expected: tuple = (length, key.shape[0])
        if attn_mask.shape != expected:
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
        attn_mask = attn_mask.unsqueeze(0)
    elif attn_mask is not None:
        expected = (batch * num_heads, length, key.shape[0])
        if attn_mask.shape != expected:
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
    if bias_k is not None and bias_v is not None:
        k = cat([k, bias_k.repeat(1, batch, 1)])
        v = cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _pad(attn_mask), _pad(key_padding_mask)

    def heads(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], batch * num_heads, head).transpose(0, 1)

    q = heads(q)
    k = heads(k) if static_k is None else static_k
    v = heads(v) if static_v is None else static_v
    if add_zero_attn:
        zeros = k.new_zeros(batch * num_heads, 1, head)
        k, v = cat([k, zeros], 1), cat([v, zeros], 1)
        attn_mask, key_padding_mask = _pad(attn_mask), _pad(key_padding_mask)
    sources = k.shape[1]
    if key_padding_mask is not None:
        if key_padding_mask.shape != (batch, sources):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, sources)}, but got "
                f"{key_padding_mask.shape}"
            )
        key_padding_mask = (
            key_padding_mask.reshape(batch, 1, 1, sources)
            .expand(-1, num_heads, -1, -1)
            .reshape(batch * num_heads, 1, sources)
        )
    mask = _merged_mask(attn_mask, key_padding_mask, q)
    dropped = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q * sqrt(1.0 / head)).bmm(k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        weights = dropout(softmax(scores, -1), dropped, dropped > 0.0)
        output = weights.bmm(v)
    else:
        if mask is not None:
            mask = mask.expand(batch * num_heads, length, sources).reshape(
                batch, num_heads, length, sources
            )
        four = (batch, num_heads, -1, head)
        output = scaled_dot_product_attention(
            q.reshape(four), k.reshape(four), v.reshape(four), mask, dropped
        ).reshape(batch * num_heads, length, head)
    output = output.transpose(0, 1).reshape(length * batch, size)
    output = linear(output, out_proj_weight, out_proj_bias).reshape(
        length, batch, out_proj_weight.shape[0]
    )
    if weights is not None:
        weights = weights.reshape(batch, num_heads, length, sources)
        if average_attn_weights:
            weights = weights.mean(1)
    if not batched:
        output = output.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return output, weights


def _pad(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key at the end that may be attended to."""
    if mask is None:
        return None
    return cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)
