"""Windows of 2 x 2 side by side, a vector of them at a time."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tensorflow_lite_clone.backends.numba.kernels.simd import (
    LANES,
    VECTOR,
    element_pointer,
    int64,
    lane_mask,
    load_stride_2,
    masked_access,
    shuffle,
)


def _compare(builder: ir.IRBuilder, values: list[Any]) -> tuple[Any, list[Any]]:
    """The largest of each window; for all values but the first, where they beat those before.

    Of equal values the first wins, of NaNs the last.
    """
    largest, beaten = values[0], []
    for value in values[1:]:
        more = builder.fcmp_ordered(">", value, largest)
        beaten.append(builder.or_(more, builder.fcmp_unordered("uno", value, value)))
        largest = builder.select(beaten[-1], value, largest)
    return largest, beaten


def _load_windows(
    context: Any, builder: ir.IRBuilder, kind: Any, x: Any, lines: Any, count: Any
) -> Any:
    starts = [element_pointer(context, builder, kind, x, line) for line in lines]
    limit = builder.mul(count, int64(2))
    return [load_stride_2(builder, start, limit, first) for start in starts for first in (0, 1)]


@intrinsic
def store_max(typing: Any, y: Any, k: Any, x: Any, top: Any, low: Any, count: Any) -> Any:
    """Write to ``y[k:]`` the largest of `LANES` windows, or of `count` if that is less.

    Their lines begin at ``x[top]`` and ``x[low]``.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        y, k, x, top, low, count = arguments
        values = _load_windows(context, builder, signature.args[2], x, (top, low), count)
        target = element_pointer(context, builder, signature.args[0], y, k)
        masked_access(builder, target, lane_mask(builder, count), _compare(builder, values)[0])
        return context.get_dummy_value()

    return types.void(y, types.intp, x, types.intp, types.intp, types.intp), build


@intrinsic
def store_gradient(
    typing: Any, gx: Any, g: Any, k: Any, x: Any, top: Any, low: Any, count: Any
) -> Any:
    """Write to gx, at the windows' two lines, ``g[k:]`` where the largest is, else zeros."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gx, g, k, x, top, low, count = arguments
        values = _load_windows(context, builder, signature.args[3], x, (top, low), count)
        start = element_pointer(context, builder, signature.args[1], g, k)
        slope = masked_access(builder, start, lane_mask(builder, count))
        zero, parts = ir.Constant(VECTOR, [0.0] * LANES), []
        for beats in reversed(_compare(builder, values)[1]):
            parts.append(builder.select(beats, slope, zero))
            slope = builder.select(beats, zero, slope)
        parts.append(slope)
        for line, (right, left) in zip((low, top), (parts[:2], parts[2:])):
            into = element_pointer(context, builder, signature.args[0], gx, line)
            for half in (0, LANES // 2):
                places = [half + lane // 2 + lane % 2 * LANES for lane in range(LANES)]
                mask = lane_mask(builder, builder.mul(count, int64(2)), 2 * half)
                pointer = builder.gep(into, [int64(2 * half)])
                masked_access(builder, pointer, mask, shuffle(builder, left, right, places))
        return context.get_dummy_value()

    place = types.intp
    return types.void(gx, g, place, x, place, place, place), build
