"""Multi-head attention: projections around scaled dot-product attention."""

from __future__ import annotations

import warnings
from math import inf, sqrt

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.ops.nn.attention import scaled_dot_product_attention
from tensorflow_lite_clone.ops.nn.dropout import dropout
from tensorflow_lite_clone.ops.nn.linear import linear
from tensorflow_lite_clone.ops.nn.softmax import softmax
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor

# The functions with PyTorch's private names are called by attentions in the wild, too.


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value through the three blocks of one stacked weight."""
    size = q.shape[-1]
    if k is v and q is k:
        projected = linear(q, w, b)
        return projected[..., :size], projected[..., size : 2 * size], projected[..., 2 * size :]
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return _in_projection(q, k, v, w_q, w_k, w_v, b_q, b_k, b_v)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value through a weight each."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _none_or_dtype(input: Tensor | None) -> DType | None:
    """The dtype of what is there."""
    if input is None:
        return None
    if not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """A mask (True: ignore) as an additive one in `target_type`; a floating one as it is.

    Warns about another mask of another dtype; AssertionError for masks of integers.
    """
    if mask is None:
        return None
    if mask.dtype is not dtypes.bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None:
        _expect_one_kind(mask, mask_name, other_type, other_name)
    if mask.dtype is dtypes.bool_:
        return zeros_like(mask, dtype=target_type).masked_fill(mask, -inf)
    return mask


def _expect_one_kind(mask: Tensor, mask_name: str, other_type: DType, other_name: str) -> None:
    """Warn of a mask of another dtype than the other one."""
    if other_type is not mask.dtype:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type "
            "for both instead.",
            stacklevel=level_outside(),
        )


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
        weights_of = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _in_projection(query, key, value, *weights_of, *biases)
    else:
        assert in_proj_weight is not None
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
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
    if attn_mask is not None and key_padding_mask is not None:
        _expect_one_kind(key_padding_mask, "key_padding_mask", attn_mask.dtype, "attn_mask")
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
