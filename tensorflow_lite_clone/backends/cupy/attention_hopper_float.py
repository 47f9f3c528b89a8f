"""Attention of single precision on products of half floats, for compute capability 9.0."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import attention_hopper as hopper
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map
from tensorflow_lite_clone.backends.cupy.tuning import tuning

_SPLIT = Kernel("attention_float_sm90.cu", "attention_split_sm90", params=("D", "WITH_DELTA"))
_FORWARD = Kernel(
    "attention_float_sm90.cu",
    "attention_forward_float_sm90",
    params=("D", "GROUPS", "STAGES", "BLOCKS", "CAUSAL"),
)
_QUERIES = Kernel(
    "attention_float_backward_sm90.cu",
    "attention_queries_float_sm90",
    params=("D", "GROUPS", "BLOCKS", "CAUSAL"),
)
_KEYS = Kernel(
    "attention_float_backward_sm90.cu",
    "attention_keys_float_sm90",
    params=("D", "GROUPS", "STAGES", "BLOCKS", "CAUSAL"),
)
_UNIT_ROWS = 64  # rows that share a unit, and pass at a time


class _Parts(NamedTuple):
    """Numbers as unit (high + low)."""

    values: Any  # (batch, heads, rows, 2 D) of float16: the high ones, then the low ones
    units: Any  # (batch, heads, tiles of 64 rows)


class Prepared(NamedTuple):
    """What both launches of the backward pass read."""

    q: _Parts
    k: _Parts
    v: _Parts
    g: _Parts
    numbers: Any  # (heads, 2, rows of whole tiles)


def is_supported(call: Any, capability: int, scale: float) -> bool:
    """Whether these kernels serve the call: single precision, no mask, queries beyond a tile.

    For fewer queries, as in decoding, parts of all keys would be written to be read once.
    """
    return (
        capability == 90
        and call.products == 3
        and not call.kind
        and scale > 0
        and call.q.shape[2] > _UNIT_ROWS
    )


def forward(call: Any, groups: int, scale: float, causal: bool, out: Any, lse: Any) -> None:
    """Write the result and its log-sum-exp."""
    depth = hopper.depth_of(call)
    warpgroups, stages, blocks = _forward_tiles(depth)
    rows = 64 * warpgroups
    k, v = _split(call.k, depth), _split(call.v, depth)
    _FORWARD[depth, warpgroups, stages, blocks, causal](
        math.prod(call.lead) * -(-call.q.shape[2] // rows), 128 * warpgroups,
        call.q, hopper.tile_map(k.values, _UNIT_ROWS), hopper.tile_map(v.values, _UNIT_ROWS),
        k.units, v.units, hopper.head_sizes(call, groups, out, call.q), _section(call, depth),
        scale, out, lse, shared=4 * depth * (rows + 2 * stages * _UNIT_ROWS) + 16 * stages,
    )  # fmt: skip


def prepared(call: Any, groups: int, g: Any, out: Any, lse: Any) -> Prepared:
    """The operands in parts, and the numbers of the rows of queries."""
    depth = hopper.depth_of(call)
    q, k, v = (_split(x, depth) for x in (call.q, call.k, call.v))
    padded = -(-g.shape[2] // _UNIT_ROWS) * _UNIT_ROWS
    numbers = cupy.empty((g.shape[0] * g.shape[1], 2, padded), np.float32)
    split = _split(g, depth, (out, lse, v.units, numbers), groups, call.v.shape[2])
    return Prepared(q, k, v, split, numbers)


def backward(
    call: Any, groups: int, given: Prepared, scale: float, causal: bool, first: Any, second: Any
) -> None:
    """Write the gradient of q, or, where there is a `second`, those of k and v."""
    q, k, v, g, numbers = given
    depth = hopper.depth_of(call)
    units = [x.units for x in (q, k, v, g)]
    sizes = hopper.head_sizes(call, groups, first, second)
    section = _section(call, depth)
    if second is None:
        warpgroups, rows = 2, 128
        _QUERIES[depth, warpgroups, 2 if depth == 64 else 1, causal](
            math.prod(call.lead) * -(-call.q.shape[2] // rows), 128 * warpgroups,
            hopper.tile_map(q.values, rows), hopper.tile_map(k.values, _UNIT_ROWS),
            hopper.tile_map(v.values, _UNIT_ROWS), hopper.tile_map(g.values, rows), *units, numbers,
            sizes, section, scale, first, shared=8 * depth * (rows + 96) + 56,
        )  # fmt: skip
        return
    warpgroups, stages, blocks = _keys_tiles(depth)
    rows = 64 * warpgroups
    heads, _, padded = numbers.shape
    number_map = tensor_map(
        numbers, (padded, 2, heads), (padded, 2 * padded), (_UNIT_ROWS, 2, 1), swizzle=0
    )
    batch, count, length = call.k.shape[:3]
    _KEYS[depth, warpgroups, stages, blocks, causal](
        batch * count * -(-length // rows), 128 * warpgroups, hopper.tile_map(q.values, _UNIT_ROWS),
        hopper.tile_map(k.values, rows), hopper.tile_map(v.values, rows),
        hopper.tile_map(g.values, _UNIT_ROWS), number_map, *units, sizes, section, scale, first,
        second,
        shared=8 * depth * (rows + _UNIT_ROWS * stages) + 512 * stages + 8 * (2 * stages + 1),
    )  # fmt: skip


def _forward_tiles(depth: int) -> tuple[int, int, int]:
    """The template arguments GROUPS, STAGES and BLOCKS."""
    return (2, 2, 2) if depth == 64 else (2, 2, 1)


def _keys_tiles(depth: int) -> tuple[int, int, int]:
    """The template arguments GROUPS, STAGES and BLOCKS."""
    return (1, 2, 2) if depth == 64 else (1, 2, 1)


def _split(x: Any, depth: int, delta: tuple = (), groups: int = 1, size: int = 0) -> _Parts:
    """x (batch, head, row, column) in parts; `delta`: out, lse, units of v, and the numbers."""
    batch, count, rows, width = x.shape
    tiles = -(-rows // _UNIT_ROWS)
    parts = _Parts(
        cupy.empty((batch, count, rows, 2 * depth), np.float16),
        cupy.empty((batch, count, tiles), np.float32),
    )
    out, lse, v_units, numbers = delta or (None, None, None, None)
    sizes = [count, groups, rows, size, width, width]
    for y in (x, out):
        sizes += [0, 0, 0] if y is None else [stride // y.itemsize for stride in y.strides[:3]]
    _SPLIT[depth, bool(delta)](
        batch * count * tiles, 256, x, out, lse, v_units, np.array(sizes, np.int64), *parts, numbers
    )
    return parts


def _section(call: Any, depth: int) -> int:
    """How many heads blocks work at together: what passes by them stays in the cache."""
    longest = max(call.q.shape[2], call.k.shape[2])
    return max(1, tuning.attention_l2_bytes // (8 * depth * longest))
