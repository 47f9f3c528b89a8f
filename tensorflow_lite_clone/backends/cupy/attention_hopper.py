"""Attention of two-byte types on warpgroup products, for devices of compute capability 9.0."""

from __future__ import annotations

import math
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map
from tensorflow_lite_clone.backends.cupy.tuning import tuning

_FILE = "attention_sm90.cu"
_FORWARD = Kernel(
    _FILE, "attention_forward_sm90", params=("T", "D", "GROUPS", "N", "STAGES", "BLOCKS", "CAUSAL")
)
_BACKWARD = Kernel(
    _FILE,
    "attention_backward_sm90",
    params=("T", "D", "GROUPS", "N", "STAGES", "BLOCKS", "CAUSAL", "KEYS"),
)
_SHORT = 64  # rows and columns that the others do in one tile, sooner
_PANEL = 64  # columns that lie together in shared memory


def is_supported(call: Any, capability: int, scale: float) -> bool:
    """Whether these kernels serve the call: of those of the others what has no mask and is long."""
    return (
        capability == 90
        and call.q.itemsize == 2
        and not call.kind
        and scale > 0
        and max(call.q.shape[2], call.k.shape[2]) > _SHORT
    )


def forward(call: Any, groups: int, scale: float, causal: bool, out: Any, lse: Any) -> None:
    """Write the result and its log-sum-exp."""
    depth = depth_of(call)
    warpgroups, columns, stages, blocks = _forward_tiles(depth)
    rows = 64 * warpgroups
    q, k, v = _mappable(call.q, call.k, call.v)
    kernel = _FORWARD[call.q.dtype, depth, warpgroups, columns, stages, blocks, causal]
    kernel(
        math.prod(call.lead) * -(-call.q.shape[2] // rows), 128 * warpgroups, tile_map(q, rows),
        tile_map(k, columns), tile_map(v, columns), head_sizes(call, groups, out), _section(call),
        scale, out, lse, shared=2 * depth * (rows + 2 * stages * columns) + 8 * (2 * stages + 1),
    )  # fmt: skip


def row_numbers(call: Any) -> Any:
    """What the gradients need of each row of queries; the launch for queries fills it."""
    padded = -(-call.q.shape[2] // _PANEL) * _PANEL
    return cupy.empty((math.prod(call.lead), 2, padded), np.float32)


def backward(
    call: Any,
    groups: int,
    g: Any,
    out: Any,
    lse: Any,
    numbers: Any,
    scale: float,
    causal: bool,
    first: Any,
    second: Any,
) -> None:
    """Write the gradient of q, or, after that, those of k and v, where there is a `second`."""
    keys = second is not None
    depth = depth_of(call)
    warpgroups, columns, stages, blocks = _backward_tiles(depth, keys)
    rows = 64 * warpgroups
    kernel = _BACKWARD[call.q.dtype, depth, warpgroups, columns, stages, blocks, causal, keys]
    q, k, v, g = _mappable(call.q, call.k, call.v, g)
    key_rows, query_rows = (rows, columns) if keys else (columns, rows)
    heads, _, padded = numbers.shape
    number_map = tensor_map(
        numbers, (padded, 2, heads), (padded, 2 * padded), (columns, 2, 1), swizzle=0
    )
    batch, count, length = (call.k if keys else call.q).shape[:3]
    results = (first, second) if keys else (first, out)
    kernel(
        batch * count * -(-length // rows), 128 * warpgroups, tile_map(q, query_rows),
        tile_map(k, key_rows), tile_map(v, key_rows), tile_map(g, query_rows), number_map, out, lse,
        head_sizes(call, groups, *results), _section(call), scale, numbers, padded, first, second,
        shared=4 * depth * (rows + stages * columns) + 8 * stages * columns * keys
        + 8 * (2 * stages + 1),
    )  # fmt: skip


def _mappable(*arrays: Any) -> list[Any]:
    """The arrays, those with an axis that repeats or runs backwards copied."""
    return [
        cupy.ascontiguousarray(x)
        if any([step <= 0 and n > 1 for step, n in zip(x.strides, x.shape)])
        else x
        for x in arrays
    ]


def tile_map(x: Any, rows: int) -> Any:
    """The map of tiles of `rows` rows and a panel of columns of (batch, head, row, column)."""
    strides = [x.strides[i] // x.itemsize if x.shape[i] > 1 else _PANEL for i in (2, 1, 0)]
    return tensor_map(x, x.shape[::-1], tuple(strides), (_PANEL, rows, 1, 1))


def head_sizes(call: Any, groups: int, first: Any, second: Any = None) -> Any:
    """The kernels' struct `Heads`."""
    sizes = [call.q.shape[1], groups, call.q.shape[2], call.k.shape[2]]
    sizes += [call.q.shape[3], call.v.shape[3]]
    for x in (first, second):
        sizes += [0, 0, 0] if x is None else [stride // x.itemsize for stride in x.strides[:3]]
    return np.array(sizes, np.int64)


def depth_of(call: Any) -> int:
    """The template argument D: columns of a tile, in whole panels."""
    return -(-call.bucket // _PANEL) * _PANEL


def _section(call: Any) -> int:
    """How many heads blocks work at together: what passes by them stays in the cache."""
    longest = max(call.q.shape[2], call.k.shape[2])
    return max(1, tuning.attention_l2_bytes // (4 * depth_of(call) * longest))


def _forward_tiles(depth: int) -> tuple[int, int, int, int]:
    """The template arguments GROUPS, N, STAGES and BLOCKS."""
    return (2, 128, 2, 2) if depth == 64 else (2, 64, 2, 2)


def _backward_tiles(depth: int, keys: bool) -> tuple[int, int, int, int]:
    """The template arguments GROUPS, N, STAGES and BLOCKS."""
    if depth == 64:
        return (1, 64, 3, 3) if keys else (2, 64, 3, 2)
    return (2, 64, 2, 1) if keys else (3, 64, 2, 1)
