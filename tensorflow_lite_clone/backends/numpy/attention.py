"""Attention in blocks of rows or heads that stay in the cache, and no more memory than they take.

Of scores that are small in any case, by the norms of queries and keys, the largest of a row need
not be found. In the backward pass the two differences, of scores and the logarithms of the sums
and of products and their means, are made by the matrix products: each has a column more.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.dispatch.table import override

_BOUND = 40.0  # of scores s and t neither exp(s) nor exp(s - t) overflows


class _Tile(NamedTuple):
    """Some rows of one head or several."""

    where: tuple  # the heads, in the leading axes
    shared: tuple  # those of keys and values
    rows: slice
    keys: int  # how many of them the rows may look at


def _declined(q: Any, k: Any, v: Any, groups: int) -> bool:
    heads = (*k.shape[:-3], k.shape[-3] * groups) if groups > 1 else k.shape[:-2]
    return (
        q.dtype.kind != "f"
        or q.itemsize == 2
        or q.shape[-2] * k.shape[-2] < tuning.attention_small
        or not q.size
        or heads != q.shape[:-2]
        or v.shape[:-1] != k.shape[:-1]
    )


def _tiles(q: Any, k: Any, causal: bool, groups: int) -> list[_Tile]:
    """All tiles; those of the same keys come one after the other."""
    heads, length, size = q.shape[:-2], q.shape[-2], k.shape[-2]
    step = min(length, max(32, tuning.attention_block // size))
    if causal:
        step = min(step, 64)
    if groups > 1:
        places = [(head, (*head[:-1], head[-1] // groups)) for head in np.ndindex(heads)]
    else:
        places = [
            (place, place) for place in _together(heads, tuning.attention_block // (step * size))
        ]
    tiles = []
    for where, shared in places:
        for start in range(0, length, step):
            rows = slice(start, min(start + step, length))
            tiles.append(_Tile(where, shared, rows, min(size, rows.stop) if causal else size))
    return tiles


def _together(heads: tuple[int, ...], count: int) -> list[tuple]:
    """Places of about `count` heads each, or one."""
    if not heads:
        return [()]
    axis = len(heads) - 1
    while axis and heads[axis] <= count:
        count //= heads[axis]
        axis -= 1
    step = max(count, 1)
    return [
        (*outer, slice(start, start + step))
        for outer in np.ndindex(heads[:axis])
        for start in range(0, heads[axis], step)
    ]


def _for_each(tiles: list[_Tile], q: Any, k: Any, rooms: int, work: Callable[..., object]) -> None:
    """Call ``work(tile, *rooms)`` for all tiles, with memory for the scores of one in each room.

    Tiles of the same keys are one thread's.
    """
    chains = [list(chain) for _, chain in groupby(tiles, lambda tile: tile.shared)]
    length, size = q.shape[-2], k.shape[-2]
    largest = max([prod(q[tile.where].shape[:-2]) * _rows(tile) * tile.keys for tile in tiles])
    least = max(
        tuning.attention_per_thread * len(chains) // (prod(q.shape[:-2]) * length * size), 1
    )

    def part(start: int, stop: int) -> None:
        with workspace(rooms * largest, q.dtype) as memory:
            parts = [memory[i * largest : (i + 1) * largest] for i in range(rooms)]
            for chain in chains[start:stop]:
                for tile in chain:
                    work(tile, *parts)

    parallel_for(part, len(chains), least, products=True)


def _rows(tile: _Tile) -> int:
    stop: int = tile.rows.stop
    return stop - tile.rows.start


def _at(x: Any, tile: _Tile) -> Any:
    """The tile's rows of queries or of what is shaped as they are."""
    return x[tile.where][..., tile.rows, :]


def _product(x: Any, y: Any, room: Any) -> Any:
    """x y^T, written to `room`."""
    shape = (*x.shape[:-1], y.shape[-2])
    out = room[: prod(shape)].reshape(shape)
    return np.matmul(x, y.swapaxes(-1, -2), out=out)


def _with_column(x: Any, column: Any) -> Any:
    out = np.empty((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    out[..., :-1] = x
    out[..., -1] = column
    return out


def _bounded(q: Any, k: Any, mask: Any, scale: float) -> bool:
    """Whether no score can be larger than `_BOUND`, nor smaller than its negative if not hidden."""
    if mask is not None and mask.dtype.kind != "b":
        return False
    largest = sqrt(float(np.vecdot(q, q).max()) * float(np.vecdot(k, k).max())) * abs(scale)
    return largest <= _BOUND  # not if there is a NaN


def _hiding(
    tiles: list[_Tile], q: Any, k: Any, mask: Any, causal: bool
) -> Callable[[Any, _Tile], None]:
    """A function of a tile's scores and the tile that sets what is not looked at to -inf."""
    size = k.shape[-2]
    if mask is not None:
        mask = np.broadcast_to(mask, (*q.shape[:-1], size))
    if causal:
        rows = max(map(_rows, tiles))
        later = np.where(np.tri(rows, size) == 0, -np.inf, 0).astype(q.dtype)

    def hide(scores: Any, tile: _Tile) -> None:
        if causal:
            corner = scores[..., tile.rows.start :]
            corner += later[: corner.shape[-2], : corner.shape[-1]]
        if mask is not None:
            if mask.dtype.kind == "b":
                np.copyto(scores, -np.inf, where=~_at(mask, tile)[..., : tile.keys])
            else:
                scores += _at(mask, tile)[..., : tile.keys]

    return hide


def _forward(
    q: Any, k: Any, v: Any, mask: Any, noise: Any, scale: float, causal: bool, groups: int
) -> tuple[Any, Any]:
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    lse = np.empty((*q.shape[:-1], 1), q.dtype)
    tiles = _tiles(q, k, causal, groups)
    hide = _hiding(tiles, q, k, mask, causal)
    bounded = _bounded(q, k, mask, scale)
    ones = np.ones(k.shape[-2], q.dtype)

    def work(tile: _Tile, room: Any) -> None:
        count = tile.keys
        p = _product(_at(q, tile) * scale, k[tile.shared][..., :count, :], room)
        hide(p, tile)
        if not bounded:
            top = p.max(-1, keepdims=True)
            top[top == -np.inf] = 0
            p -= top
        np.exp(p, p)
        total = (p.reshape(-1, count) @ ones[:count]).reshape(*p.shape[:-1], 1)
        closed = total == 0
        total[closed] = 1
        if noise is not None:
            p *= _at(noise, tile)[..., :count]
        values = np.matmul(p, v[tile.shared][..., :count, :])
        np.divide(values, total, out=_at(out, tile))
        np.log(total, total)
        if not bounded:
            total += top
        total[closed] = np.inf
        _at(lse, tile)[...] = total

    _for_each(tiles, q, k, 1, work)
    return out, lse[..., 0]


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
    tiles = _tiles(q, k, causal, groups)
    hide = _hiding(tiles, q, k, mask, causal)
    queries = _with_column(q * scale, -lse)
    delta = -np.vecdot(g, out)
    given = g if noise is not None else _with_column(g, delta)
    keys = _with_column(k, 1)
    values = v if noise is not None else _with_column(v, 1)

    def work(tile: _Tile, room: Any, other: Any) -> None:
        shared, count = tile.shared, tile.keys
        rows = _at(queries, tile)
        p = _product(rows, keys[shared][..., :count, :], room)
        hide(p, tile)
        np.exp(p, p)
        factors = None if noise is None else _at(noise, tile)[..., :count]
        if needs[2]:
            weights = p if factors is None else p * factors
            gv[shared][..., :count, :] += np.matmul(weights.swapaxes(-1, -2), _at(g, tile))
        if not (needs[0] or needs[1]):
            return
        ds = _product(_at(given, tile), values[shared][..., :count, :], other)
        if factors is not None:
            ds *= factors
            ds += _at(delta[..., None], tile)
        ds *= p
        np.multiply(np.matmul(ds, k[shared][..., :count, :]), scale, out=_at(gq, tile))
        gk[shared][..., :count, :] += np.matmul(ds.swapaxes(-1, -2), rows[..., :-1])

    _for_each(tiles, q, k, 2, work)
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
