"""Tiles of sums that stay in registers while a loop of a kernel adds products to them.

Numba leaves the choice of registers to LLVM, which keeps sums of a loop within a loop in memory. So
tiles are spelled out here in LLVM's vectors: a tile is a tuple of `ROWS` x `VECTORS` vectors of
`LANES` numbers (of a gradient `GRADIENT_ROWS` x `GRADIENT_COLUMNS`), as many as a processor has
registers for, beside those that the factors need. Arrays are flat, and nothing looks whether places
lie in them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_has_avx512 = binding.get_host_cpu_features().get("avx512f", False)
#: Numbers of a vector; there are 32 vectors of 16 numbers, or 16 of 8.
LANES = 16 if _has_avx512 else 8
#: A tile of products is of `ROWS` factors with `VECTORS` vectors, `TILE` numbers of a line.
ROWS, VECTORS = (8, 2) if _has_avx512 else (4, 2)
TILE = VECTORS * LANES
#: A tile of a gradient is of `GRADIENT_ROWS` lines with `GRADIENT_COLUMNS` others.
GRADIENT_ROWS, GRADIENT_COLUMNS = (4, 6) if _has_avx512 else (2, 4)


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(f"vector of {LANES} float32")


VECTOR = ir.VectorType(ir.FloatType(), LANES)
_vector = _Vector()
_tile = types.UniTuple(_vector, ROWS * VECTORS)
_gradient_tile = types.UniTuple(_vector, GRADIENT_ROWS * GRADIENT_COLUMNS)


@register_model(_Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Vector) -> None:
        super().__init__(manager, kind, VECTOR)


def int64(value: int) -> ir.Constant:
    return ir.Constant(ir.IntType(64), value)


def element_pointer(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, place: Any) -> Any:
    """A pointer to an array's element at `place`."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place])


def load(builder: ir.IRBuilder, pointer: Any, number: int = 0) -> Any:
    pointer = builder.gep(pointer, [int64(LANES * number)])
    vector = builder.load(builder.bitcast(pointer, VECTOR.as_pointer()))
    vector.align = 4
    return vector


def broadcast(builder: ir.IRBuilder, number: Any) -> Any:
    """A vector that has `number` everywhere."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(first, nothing, places)


def multiply_add(builder: ir.IRBuilder, a: Any, b: Any, total: Any) -> Any:
    joined = ["contract"]  # rounded once
    return builder.fadd(builder.fmul(a, b, flags=joined), total, flags=joined)


def horizontal_sum(builder: ir.IRBuilder, vector: Any) -> Any:
    """The sum of a vector's numbers: of its halves, of their halves ..."""
    length = LANES
    while length > 1:
        length //= 2
        halves = [
            builder.shuffle_vector(
                vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), length), [*places])
            )
            for places in (range(length), range(length, 2 * length))
        ]
        vector = builder.fadd(*halves)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def masked_access(builder: ir.IRBuilder, pointer: Any, mask: Any, vector: Any = None) -> Any:
    """Read a vector where `mask` says so, zeros elsewhere; with `vector` write it."""
    pointer = builder.bitcast(pointer, VECTOR.as_pointer())
    align = ir.Constant(ir.IntType(32), 4)
    word, result = ("load", VECTOR) if vector is None else ("store", ir.VoidType())
    arguments = [pointer, align, mask, ir.Constant(VECTOR, [0.0] * LANES)]
    if vector is not None:
        arguments = [vector, pointer, align, mask]
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    name = f"llvm.masked.{word}.v{LANES}f32.p0"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def lane_mask(builder: ir.IRBuilder, count: Any, first: int = 0) -> Any:
    """A mask of the lanes whose number is below `count`, the first one's being `first`."""
    numbers = ir.VectorType(ir.IntType(64), LANES)
    lanes = ir.Constant(numbers, [first + lane for lane in range(LANES)])
    limit = builder.insert_element(ir.Constant(numbers, ir.Undefined), count, int64(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.icmp_signed("<", lanes, builder.shuffle_vector(limit, limit, zeros))


def shuffle(builder: ir.IRBuilder, a: Any, b: Any, places: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), places))


def load_stride_2(builder: ir.IRBuilder, start: Any, limit: Any, first: int) -> Any:
    """Numbers ``first``, ``first + 2`` ... of the first `limit` from `start` on, then zeros."""
    low, high = [
        masked_access(builder, builder.gep(start, [int64(half)]), lane_mask(builder, limit, half))
        for half in (0, LANES)
    ]
    return shuffle(builder, low, high, [first + 2 * lane for lane in range(LANES)])


def _store_stride_2(builder: ir.IRBuilder, start: Any, count: Any, vector: Any) -> None:
    """Write `count` numbers to every second place from `start` on."""
    even = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1 - lane % 2 for lane in range(LANES)])
    for half in (0, LANES // 2):
        doubled = shuffle(builder, vector, vector, [half + lane // 2 for lane in range(LANES)])
        mask = lane_mask(builder, builder.mul(count, int64(2)), 2 * half)
        pointer = builder.gep(start, [int64(2 * half)])
        masked_access(builder, pointer, builder.and_(mask, even), doubled)


def _copy_intrinsic(take: int, put: int) -> Any:
    """An intrinsic that copies `LANES` numbers, or `count` if that is less.

    Of the source it takes each `take`, of the target it writes each `put`: 1 or 2.
    """

    @intrinsic
    def copy(typing: Any, target: Any, i: Any, source: Any, j: Any, count: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, i, source, j, count = arguments
            start = element_pointer(context, builder, signature.args[2], source, j)
            into = element_pointer(context, builder, signature.args[0], target, i)
            mask = lane_mask(builder, count)
            if take == 2:
                limit = builder.sub(builder.mul(count, int64(2)), int64(1))
                vector = load_stride_2(builder, start, limit, 0)
            else:
                vector = masked_access(builder, start, mask)
            if put == 2:
                _store_stride_2(builder, into, count, vector)
            else:
                masked_access(builder, into, mask, vector)
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, types.intp), build

    return copy


copy = _copy_intrinsic(1, 1)
copy_from_stride_2 = _copy_intrinsic(2, 1)
copy_to_stride_2 = _copy_intrinsic(1, 2)


@intrinsic
def broadcast_tile(typing: Any, numbers: Any, first: Any) -> Any:
    """A tile whose rows have ``numbers[first]`` and those behind it everywhere."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = element_pointer(context, builder, signature.args[0], *arguments)
        rows = [
            broadcast(builder, builder.load(builder.gep(start, [int64(i)]))) for i in range(ROWS)
        ]
        return context.make_tuple(builder, _tile, [row for row in rows for _ in range(VECTORS)])

    return _tile(numbers, types.intp), build


@intrinsic
def add_products(typing: Any, tile: Any, factors: Any, i: Any, step: Any, line: Any, j: Any) -> Any:
    """The tile; to row number r is added ``factors[i + r * step] * line[j : j + TILE]``."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, factors, i, step, line, j = arguments
        sums = cgutils.unpack_tuple(builder, tile, ROWS * VECTORS)
        first = element_pointer(context, builder, signature.args[1], factors, i)
        start = element_pointer(context, builder, signature.args[4], line, j)
        seen = [load(builder, start, number) for number in range(VECTORS)]
        for row in range(ROWS):
            factor = builder.load(builder.gep(first, [builder.mul(step, int64(row))]))
            one = broadcast(builder, factor)
            for number, vector in enumerate(seen):
                place = row * VECTORS + number
                sums[place] = multiply_add(builder, one, vector, sums[place])
        return context.make_tuple(builder, _tile, sums)

    return _tile(_tile, factors, types.intp, types.intp, line, types.intp), build


@intrinsic
def store_tile(typing: Any, tile: Any, target: Any, i: Any, step: Any) -> Any:
    """Write row number r of a tile to ``target[i + r * step :]``."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, target, i, step = arguments
        sums = cgutils.unpack_tuple(builder, tile, ROWS * VECTORS)
        start = element_pointer(context, builder, signature.args[1], target, i)
        for place, vector in enumerate(sums):
            row, number = divmod(place, VECTORS)
            pointer = builder.gep(start, [builder.mul(step, int64(row))])
            pointer = builder.gep(pointer, [int64(LANES * number)])
            builder.store(vector, builder.bitcast(pointer, VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(_tile, target, types.intp, types.intp), build


@intrinsic
def zero_gradient(typing: Any) -> Any:
    """A gradient's tile, of zeros."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        return context.make_tuple(
            builder, _gradient_tile, [zero] * (GRADIENT_ROWS * GRADIENT_COLUMNS)
        )

    return _gradient_tile(), build


@intrinsic
def add_outer_products(
    typing: Any, tile: Any, slopes: Any, i: Any, step: Any, lines: Any, places: Any, k: Any, j: Any
) -> Any:
    """The tile, to which products of `LANES` numbers of each pair of lines are added.

    The first begin at ``slopes[i + s * step]``, the others at ``lines[places[k + p] + j]``.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, slopes, i, step, lines, places, k, j = arguments
        sums = cgutils.unpack_tuple(builder, tile, GRADIENT_ROWS * GRADIENT_COLUMNS)
        first = element_pointer(context, builder, signature.args[1], slopes, i)
        offset = element_pointer(context, builder, signature.args[5], places, k)
        left = [
            load(builder, builder.gep(first, [builder.mul(step, int64(s))]))
            for s in range(GRADIENT_ROWS)
        ]
        for p in range(GRADIENT_COLUMNS):
            place = builder.add(builder.load(builder.gep(offset, [int64(p)])), j)
            right = load(
                builder, element_pointer(context, builder, signature.args[4], lines, place)
            )
            for s in range(GRADIENT_ROWS):
                number = s * GRADIENT_COLUMNS + p
                sums[number] = multiply_add(builder, left[s], right, sums[number])
        return context.make_tuple(builder, _gradient_tile, sums)

    return (
        _gradient_tile(
            _gradient_tile, slopes, types.intp, types.intp, lines, places, types.intp, types.intp
        ),
        build,
    )


@intrinsic
def accumulate_sums(typing: Any, tile: Any, target: Any, i: Any, step: Any) -> Any:
    """Add the sums of a gradient's vectors to ``target[i + s * step + p]``."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, target, i, step = arguments
        sums = cgutils.unpack_tuple(builder, tile, GRADIENT_ROWS * GRADIENT_COLUMNS)
        start = element_pointer(context, builder, signature.args[1], target, i)
        for number, vector in enumerate(sums):
            s, p = divmod(number, GRADIENT_COLUMNS)
            pointer = builder.gep(start, [builder.add(builder.mul(step, int64(s)), int64(p))])
            builder.store(
                builder.fadd(builder.load(pointer), horizontal_sum(builder, vector)), pointer
            )
        return context.get_dummy_value()

    return types.void(_gradient_tile, target, types.intp, types.intp), build
