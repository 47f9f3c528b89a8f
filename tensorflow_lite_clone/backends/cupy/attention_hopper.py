"""Attention of two-byte types on warpgroup products, for devices of compute capability 9.0."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.backends.cupy.kernel import Kernel

_FILE = "attention_sm90.cu"
_FORWARD = Kernel(
    _FILE, "attention_forward_sm90", params=("T", "D", "GROUPS", "N", "BLOCKS", "CAUSAL")
)
_BACKWARD = Kernel(
    _FILE,
    "attention_backward_sm90",
    params=("T", "D", "GROUPS", "N", "STAGES", "BLOCKS", "CAUSAL", "KEYS"),
)
_ALIGNMENT = 1024  # bytes that a block may lose before its first tile


def serves(call: Any, capability: int, scale: float) -> bool:
    """Whether these kernels serve what the others do: no mask, heads of 33-64 or 97-128 columns."""
    return (
        capability == 90
        and call.q.itemsize == 2
        and not call.kind
        and call.bucket in (64, 128)
        and scale > 0
    )


def forward(call: Any, problem: Any, scale: float, causal: bool, out: Any, lse: Any) -> None:
    """Write the result and its log-sum-exp, with the struct `Problem` as the kernels read it."""
    groups, columns, blocks = _forward_tiles(call)
    rows = 64 * groups
    kernel = _FORWARD[call.q.dtype, call.bucket, groups, columns, blocks, causal]
    kernel(
        math.prod(call.lead) * -(-call.q.shape[2] // rows), 128 * groups, call.q, call.k, call.v,
        problem, scale, out, lse,
        shared=_ALIGNMENT + (rows + 4 * columns) * 2 * call.bucket,
    )  # fmt: skip


def backward(
    call: Any, g: Any, lse: Any, delta: Any, problem: Any, scale: float, causal: bool,
    first: Any, second: Any,
) -> None:  # fmt: skip
    """Write the gradients of k and v, or that of q where `second` is None."""
    keys = second is not None
    groups, columns, stages, blocks = _backward_tiles(call, keys)
    rows = 64 * groups
    kernel = _BACKWARD[call.q.dtype, call.bucket, groups, columns, stages, blocks, causal, keys]
    owner = call.k if keys else call.q
    kernel(
        math.prod(owner.shape[:2]) * -(-owner.shape[2] // rows), 128 * groups, call.q, call.k,
        call.v, g, lse, delta, problem, scale, first, second,
        shared=_ALIGNMENT + (rows + stages * columns) * 4 * call.bucket + 8 * stages * columns,
    )  # fmt: skip


def _forward_tiles(call: Any) -> tuple[int, int, int]:
    """The template arguments GROUPS, N and BLOCKS."""
    return (2, 64, 2)


def _backward_tiles(call: Any, keys: bool) -> tuple[int, int, int, int]:
    """The template arguments GROUPS, N, STAGES and BLOCKS."""
    return (2, 64, 2, 1)
