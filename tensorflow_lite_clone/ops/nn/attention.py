"""Scaled dot-product attention, without keeping the matrix of weights."""

from __future__ import annotations

from math import inf, prod, sqrt
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes, contiguous_strides
from tensorflow_lite_clone.core.strides import dense_strides
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._formulas import wide
from tensorflow_lite_clone.ops.random.generators import drawing
from tensorflow_lite_clone.tensor import Tensor


class Attention(Op):
    """out = softmax(q k^T scale + mask) v, and lse, the logarithm of the softmax's denominator.

    q is (..., H, L, E), k (..., H / groups, S, E), v (..., H / groups, S, Ev). A boolean mask says
    what to keep, a floating one is added, `causal` keeps column <= row. Rows that keep nothing
    are 0 and have lse = inf. lse is (..., H, L), in float32 for half precision. Source: Dao et
    al., "FlashAttention" (2022).
    """

    cost = costs.attention
    name = "attention"
    label = "ScaledDotProductAttention"
    nondifferentiable = (1,)
    auxiliary_outputs = (1,)

    def layout(shape, operands, parameters):
        q, k, v, *_ = operands
        fused = len(shape) == 4 and shape == q[0] and k[0][:2] == q[0][:2]
        if fused and all([own[-1] == 1 or strides[-1] == 1 for own, strides in (q, k, v)]):
            return dense_strides(*q)  # as PyTorch's fused form leaves it
        return contiguous_strides(shape)

    def forward(F, q, k, v, mask, *, scale, causal, groups):
        return _forward(F, q, k, v, mask, scale, causal, groups, None)[:2]

    def backward(F, g, q, k, v, mask, out0, out1, *, scale, causal, groups, needs):
        return F.attention_backward(
            g, q, k, v, mask, out0, out1, scale=scale, causal=causal, groups=groups, needs=needs
        )


@composite
def attention_backward(F, g, q, k, v, mask, out, lse, *, scale, causal, groups, needs):
    """ds = p (g v^T - sum(g out)) with p = exp(scores - lse) computed again.

    gq = ds k scale, gk = ds^T q scale, gv = p^T g, gmask = ds.
    """
    return _backward(F, g, q, k, v, mask, out, lse, None, scale, causal, groups, needs, 0.0)


class AttentionDropout(Op):
    """`Attention` whose weights are zeroed with probability p, the others divided by 1 - p.

    The third output says which; a device may return anything from which `attention_noise` makes
    the factors.
    """

    cost = costs.attention
    name = "attention_dropout"
    label = "ScaledDotProductAttention"
    nondifferentiable = (1, 2)
    auxiliary_outputs = (1,)

    def forward(F, q, k, v, mask, *, scale, causal, groups, p):
        return _forward(F, q, k, v, mask, scale, causal, groups, p)

    def backward(F, g, q, k, v, mask, out0, out1, out2, *, scale, causal, groups, p, needs):
        return F.attention_dropout_backward(
            g, q, k, v, mask, out0, out1, out2,
            scale=scale, causal=causal, groups=groups, p=p, needs=needs,
        )  # fmt: skip


@composite
def attention_dropout_backward(
    F, g, q, k, v, mask, out, lse, noise, *, scale, causal, groups, p, needs
):
    """`attention_backward` with factors n: ds = p (n g v^T - sum(g out)), gv = (p n)^T g."""
    return _backward(F, g, q, k, v, mask, out, lse, noise, scale, causal, groups, needs, p)


class AttentionNoise(Op):
    """The factors of the weights, of `shape`, from what `AttentionDropout` returned."""

    name = "attention_noise"

    def forward(F, noise, *, shape, p):
        return noise


def _forward(
    F: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    scale: float,
    causal: bool,
    groups: int,
    p: float | None,
) -> tuple:
    dtype, heads = q.dtype, q.shape[:-2]
    q, k, v, mask = _parts(F, q, k, v, mask, groups)
    scores = _scores(F, q, k, mask, scale, causal)
    noise = None if p is None else _noise(F, scores.shape, dtype, p)
    if 0 in scores.shape:
        out, lse = F.matmul(F.astype(scores, dtype), v), F.sum(scores, axis=-1) + inf
    else:
        top = F.max(scores, axis=-1, keepdims=True)
        top = F.where(top == -inf, 0.0, top)
        weights = F.exp(scores - top)
        total = F.sum(weights, axis=-1, keepdims=True)
        closed = total == 0
        if noise is not None:
            weights = weights * wide(F, noise)
        out = wide(F, F.matmul(F.astype(weights, dtype), v)) / F.where(closed, 1.0, total)
        lse = F.where(closed, inf, top + F.log(total))[..., 0]
    if groups > 1:
        out = F.reshape(out, (*out.shape[:-4], heads[-1], *out.shape[-2:]))
        lse = F.reshape(lse, out.shape[:-1])
    return F.astype(out, dtype), lse, noise


def _noise(F: Any, shape: tuple, dtype: Any, p: float) -> Any:
    """1 / (1 - p) to keep and 0 to drop."""
    if p == 1 or 0 in shape:
        return F.zeros(shape, dtype=dtype)
    mask = F.backend.generator.dropout_mask(p, shape, dtype)
    return F.astype(mask / (1 - p), dtype)


def _backward(
    F: Any,
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    noise: Any,
    scale: float,
    causal: bool,
    groups: int,
    needs: tuple[bool, ...],
    p: float,
) -> tuple:
    dtype = q.dtype
    kinds = [x.dtype for x in (q, k, v)] + [None if mask is None else mask.dtype]
    heads = q.shape[-3:-2]
    q, k, v, mask = _parts(F, q, k, v, mask, groups)
    g = _by_group(F, g, groups)
    weights = _weights(F, _scores(F, q, k, mask, scale, causal), lse, groups)
    if noise is not None:
        noise = wide(F, F.attention_noise(noise, shape=tuple(weights.shape), p=p))
    gq = gk = gv = gmask = None
    if needs[2]:
        dropped = F.astype(weights if noise is None else weights * noise, dtype)
        gv = F.matmul(F.matrix_transpose(dropped), g)
    if needs[0] or needs[1] or needs[3]:
        gw = wide(F, F.matmul(g, F.matrix_transpose(v)))
        if noise is not None:
            gw = gw * noise
        if lse is None:
            delta = F.sum(gw * weights, axis=-1, keepdims=True)
        else:
            out = _by_group(F, wide(F, out), groups)
            delta = F.sum(wide(F, g) * out, axis=-1, keepdims=True)
        ds = weights * (gw - delta)
        narrow = F.astype(ds, dtype)
        if needs[0]:
            gq = F.matmul(narrow, k) * scale
        if needs[1]:
            gk = F.matmul(F.matrix_transpose(narrow), q) * scale
        if needs[3]:
            gmask = ds
    if groups > 1:
        gq, gmask = [
            x if x is None else F.reshape(x, (*x.shape[:-4], *heads, *x.shape[-2:]))
            for x in (gq, gmask)
        ]
        gk, gv = [x if x is None else F.sum(x, axis=-3) for x in (gk, gv)]
    return tuple(
        [
            x if x is None else F.astype(x, kind)
            for x, kind in zip((gq, gk, gv, gmask), kinds, strict=True)
        ]
    )


def _by_group(F: Any, x: Any, groups: int) -> Any:
    """(..., H, L, E) as (..., H / groups, groups, L, E); one head stands for all."""
    if groups == 1 or x is None or x.ndim < 3:
        return x
    *batch, heads, rows, columns = x.shape
    split = (1, 1) if heads == 1 else (heads // groups, groups)
    return F.reshape(x, (*batch, *split, rows, columns))


def _parts(F: Any, q: Any, k: Any, v: Any, mask: Any, groups: int) -> tuple:
    """The inputs with query heads beside the key head that they share; the mask in float32."""
    mask = wide(F, mask)
    if groups > 1:
        q, mask = _by_group(F, q, groups), _by_group(F, mask, groups)
        k, v = k[..., None, :, :], v[..., None, :, :]
    return q, k, v, mask


def _scores(F: Any, q: Any, k: Any, mask: Any, scale: float, causal: bool) -> Any:
    """q k^T scale, masked, in float32 or wider."""
    scores = wide(F, F.matmul(F.astype(q * scale, q.dtype), F.matrix_transpose(k)))
    if causal:
        length, size = scores.shape[-2:]
        mask = F.arange(length)[:, None] >= F.arange(size)
    if mask is None:
        return scores
    return F.where(mask, scores, -inf) if mask.dtype.kind == "b" else scores + mask


def _weights(F: Any, scores: Any, lse: Any, groups: int) -> Any:
    """The softmax of the scores, 0 in rows that keep nothing; with derivatives if lse is None."""
    if 0 in scores.shape:
        return scores
    if lse is not None:
        weights = F.exp(scores - _by_group(F, lse[..., None], groups))
        total = F.sum(weights, axis=-1, keepdims=True)  # 1, but for the rounding of a large lse
        return weights / F.where(total == 0, 1, total)
    closed = F.max(scores, axis=-1, keepdims=True) == -inf
    return F.where(closed, 0.0, F.softmax(F.where(closed, 0.0, scores), axis=-1))


@public("functional")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q k^T scale + mask) v for (..., L, E), (..., S, E) and (..., S, Ev).

    A boolean mask keeps what is True, a floating one is added; `scale` defaults to 1 / sqrt(E).
    With `enable_gqa` groups of query heads share a key and value head. Raises RuntimeError when
    shapes or dtypes do not fit. Source: Vaswani et al., "Attention is all you need" (2017).
    """
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if attn_mask is not None and attn_mask.dtype not in (dtypes.bool_, query.dtype):
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {attn_mask.dtype} and query.dtype: {query.dtype} instead."
        )
    size = query.shape[-1]
    if scale is None:
        scale = 1 / sqrt(size) if size else inf
    groups = 1
    if enable_gqa:
        key, value, groups = _shared_heads(query, key, value)
    _check(query, key.shape, value.shape, attn_mask, groups)
    if dropout_p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    op: type[Op] = Attention
    parameters: dict[str, Any] = {"scale": scale, "causal": is_causal, "groups": groups}
    if dropout_p > 0:
        op = AttentionDropout
        parameters["p"] = dropout_p
        query = drawing(query)
    return apply(op, query, key, value, attn_mask, **parameters)[0]


def _shared_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, int]:
    """Key and value with as many heads each, and how many query heads share one."""
    heads, keys, values = query.size(-3), key.size(-3), value.size(-3)
    if not keys or not values or heads % keys or heads % values:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, but got "
            f"{keys} and {values} for {heads}"
        )
    if keys == values:
        return key, value, heads // keys
    key = key.repeat_interleave(heads // keys, -3)
    return key, value.repeat_interleave(heads // values, -3), 1


def _check(query: Tensor, k: tuple, v: tuple, mask: Tensor | None, groups: int) -> None:
    """Raise what the products, the mask's addition and the softmax would."""
    if not query.dtype.is_floating_point:
        kind = query.dtype.short_name
        if query.dtype.is_complex:
            what = '"softmax_lastdim_kernel_impl"'
            raise NotImplementedError(f"{what} not implemented for '{kind}'")
        raise RuntimeError(f"expected scalar type Float but found {kind}")
    q = query.shape
    if groups > 1:
        k, v = [(*x[:-3], x[-3] * groups, *x[-2:]) for x in (k, v)]
    batch = _fitting(q, (*k[:-2], k[-1], k[-2]))
    scores = (*batch, q[-2], k[-2])
    _fitting(scores, v)
    if mask is not None and mask.shape != scores:
        together = broadcast_shapes(scores, mask.shape)
        if together != scores:
            raise RuntimeError(
                f"output with shape {list(scores)} doesn't match the broadcast shape "
                f"{list(together)}"
            )


def _fitting(x: tuple, y: tuple) -> tuple:
    """The leading axes of the product of arrays of two shapes; RuntimeError if there is none."""
    if x[-1] != y[-2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{prod(y[:-2])}, {x[-1]}] but got: [{prod(y[:-2])}, {y[-2]}]."
        )
    return x[:-2] if x[:-2] == y[:-2] else broadcast_shapes(x[:-2], y[:-2])
