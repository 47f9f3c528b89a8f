"""Windows of 2 x 2 side by side, a vector of them at a time."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tensorflow_lite_clone.backends.numba.kernels.vectors import (
    LANES,
    VECTOR,
    address,
    every_second,
    integer,
    lanes_below,
    masked,
    picked,
)


def _compared(builder: ir.IRBuilder, values: list[Any]) -> tuple[Any, list[Any]]:
    """The largest of each window; for all values but the first, where they beat those before.

    Of equal values the first wins, of NaNs the last.
    """
    largest, beaten = values[0], []
    for value in values[1:]:
        more = builder.fcmp_ordered(">", value, largest)
        beaten.append(builder.or_(more, builder.fcmp_unordered("uno", value, value)))
        largest = builder.select(beaten[-1], value, largest)
    return largest, beaten


def _four(context: Any, builder: ir.IRBuilder, kind: Any, x: Any, lines: Any, count: Any) -> Any:
    starts = [address(context, builder, kind, x, line) for line in lines]
    limit = builder.mul(count, integer(2))
    return [every_second(builder, start, limit, first) for start in starts for first in (0, 1)]


@intrinsic
def put_largest(typing: Any, y: Any, k: Any, x: Any, top: Any, low: Any, count: Any) -> Any:
    """Write to ``y[k:]`` the largest of `LANES` windows, or of `count` if that is less.

    Their lines begin at ``x[top]`` and ``x[low]``.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        y, k, x, top, low, count = arguments
        values = _four(context, builder, signature.args[2], x, (top, low), count)
        target = address(context, builder, signature.args[0], y, k)
        masked(builder, target, lanes_below(builder, count), _compared(builder, values)[0])
        return context.get_dummy_value()

    return types.void(y, types.intp, x, types.intp, types.intp, types.intp), build


@intrinsic
def put_gradient(
    typing: Any, gx: Any, g: Any, k: Any, x: Any, top: Any, low: Any, count: Any
) -> Any:
    """Write to gx, at the windows' two lines, ``g[k:]`` where the largest is, else zeros."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gx, g, k, x, top, low, count = arguments
        values = _four(context, builder, signature.args[3], x, (top, low), count)
        start = address(context, builder, signature.args[1], g, k)
        slope = masked(builder, start, lanes_below(builder, count))
        zero, parts = ir.Constant(VECTOR, [0.0] * LANES), []
        for beats in reversed(_compared(builder, values)[1]):
            parts.append(builder.select(beats, slope, zero))
            slope = builder.select(beats, zero, slope)
        parts.append(slope)
        for line, (right, left) in zip((low, top), (parts[:2], parts[2:])):
            into = address(context, builder, signature.args[0], gx, line)
            for half in (0, LANES // 2):
                places = [half + lane // 2 + lane % 2 * LANES for lane in range(LANES)]
                mask = lanes_below(builder, builder.mul(count, integer(2)), 2 * half)
                pointer = builder.gep(into, [integer(2 * half)])
                masked(builder, pointer, mask, picked(builder, left, right, places))
        return context.get_dummy_value()

    place = types.intp
    return types.void(gx, g, place, x, place, place, place), build
