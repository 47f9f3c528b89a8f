"""Attention in blocks of rows that stay in the cache, and no more memory than they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.table import override

_BLOCK = 1 << 17  # scores at a time
_SMALL = 1 << 11  # of a matrix, below which all matrices at once are faster


def _declined(q: Any, k: Any, v: Any, groups: int) -> bool:
    heads = (*k.shape[:-3], k.shape[-3] * groups) if groups > 1 else k.shape[:-2]
    return (
        q.dtype.kind != "f"
        or q.itemsize == 2
        or q.shape[-2] * k.shape[-2] < _SMALL
        or not q.size
        or heads != q.shape[:-2]
        or v.shape[:-1] != k.shape[:-1]
    )


def _blocks(q: Any, k: Any, mask: Any, scale: float, causal: bool, groups: int) -> Iterator:
    """Per block of rows: where it is, where its keys are, how many of them count, its scores.

    The next block overwrites the scores.
    """
    length, size = q.shape[-2], k.shape[-2]
    step = min(length, max(32, _BLOCK // size))
    if causal:
        step = min(step, 64)
    memory = np.empty(step * size, q.dtype)
    if mask is not None:
        mask = np.broadcast_to(mask, (*q.shape[:-1], size))
    for head in np.ndindex(q.shape[:-2]):
        shared = head if groups == 1 else (*head[:-1], head[-1] // groups)
        keys = k[shared].T
        for start in range(0, length, step):
            rows = slice(start, min(start + step, length))
            count = min(size, rows.stop) if causal else size
            shape = rows.stop - start, count
            scores = np.matmul(q[head][rows] * scale, keys[:, :count], out=_view(memory, shape))
            if causal:
                if start < size:
                    corner = scores[:, start:]
                    corner[np.tri(*corner.shape) == 0] = -np.inf
            elif mask is None:
                pass
            elif mask.dtype.kind == "b":
                np.copyto(scores, -np.inf, where=~mask[head][rows])
            else:
                scores += mask[head][rows]
            yield (*head, rows), shared, count, scores


def _view(memory: Any, shape: tuple[int, int]) -> Any:
    return memory[: shape[0] * shape[1]].reshape(shape)


def _forward(
    q: Any, k: Any, v: Any, mask: Any, noise: Any, scale: float, causal: bool, groups: int
) -> tuple[Any, Any]:
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    lse = np.empty(q.shape[:-1], q.dtype)
    for rows, shared, count, p in _blocks(q, k, mask, scale, causal, groups):
        top = p.max(1, keepdims=True)
        top[top == -np.inf] = 0
        p -= top
        np.exp(p, p)
        total = p.sum(1, keepdims=True)
        closed = total == 0
        total[closed] = 1
        if noise is not None:
            p *= noise[rows][:, :count]
        np.divide(np.matmul(p, v[shared][:count]), total, out[rows])
        top += np.log(total)
        top[closed] = np.inf
        lse[rows] = top[:, 0]
    return out, lse


def _backward(
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
) -> tuple:
    gq = np.empty(q.shape, q.dtype)
    gk, gv = np.zeros(k.shape, k.dtype), np.zeros(v.shape, v.dtype)
    delta = np.vecdot(g, out)[..., None]
    memory: Any = None
    for rows, shared, count, p in _blocks(q, k, mask, scale, causal, groups):
        p -= lse[rows][:, None]
        np.exp(p, p)
        factors = None if noise is None else noise[rows][:, :count]
        if needs[2]:
            gv[shared][:count] += np.matmul((p if factors is None else p * factors).T, g[rows])
        if not (needs[0] or needs[1]):
            continue
        if memory is None:
            memory = np.empty_like(p.base)
        ds = np.matmul(g[rows], v[shared][:count].T, out=_view(memory, p.shape))
        if factors is not None:
            ds *= factors
        ds -= delta[rows]
        ds *= p
        np.matmul(ds, k[shared][:count], out=gq[rows])
        gk[shared][:count] += np.matmul(ds.T, q[rows])
    gq *= scale
    gk *= scale
    return (*[x if need else None for x, need in zip((gq, gk, gv), needs)], None)


@override("attention", backend="numpy")
def attention(
    F: Any, q: Any, k: Any, v: Any, mask: Any, *, scale: float, causal: bool, groups: int
) -> Any:
    if _declined(q, k, v, groups):
        return NotImplemented
    return _forward(q, k, v, mask, None, scale, causal, groups)


@override("attention_backward", backend="numpy")
def attention_backward(
    F: Any,
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    *,
    scale: float,
    causal: bool,
    groups: int,
    needs: tuple[bool, ...],
) -> Any:
    if _declined(q, k, v, groups) or needs[3]:
        return NotImplemented
    return _backward(g, q, k, v, mask, out, lse, None, scale, causal, groups, needs)


@override("attention_dropout", backend="numpy")
def attention_dropout(
    F: Any, q: Any, k: Any, v: Any, mask: Any, *, scale: float, causal: bool, groups: int, p: float
) -> Any:
    if _declined(q, k, v, groups) or p == 1:
        return NotImplemented
    noise = F.backend.generator.dropout_mask(p, (*q.shape[:-1], k.shape[-2]), q.dtype)
    noise /= 1 - p
    out, lse = _forward(q, k, v, mask, noise, scale, causal, groups)
    if groups > 1:  # as the generic form has it
        noise = noise.reshape(*k.shape[:-2], groups, *noise.shape[-2:])
    return out, lse, noise


@override("attention_dropout_backward", backend="numpy")
def attention_dropout_backward(
    F: Any,
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    noise: Any,
    *,
    scale: float,
    causal: bool,
    groups: int,
    p: float,
    needs: tuple[bool, ...],
) -> Any:
    if _declined(q, k, v, groups) or needs[3]:
        return NotImplemented
    noise = noise.reshape(*q.shape[:-1], k.shape[-2])
    return _backward(g, q, k, v, mask, out, lse, noise, scale, causal, groups, needs)
