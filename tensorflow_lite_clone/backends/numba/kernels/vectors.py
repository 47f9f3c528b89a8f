"""Tiles of sums that stay in registers while a loop of a kernel adds products to them.

Numba leaves the choice of registers to LLVM, which keeps sums of a loop within a loop in memory. So
tiles are spelled out here in LLVM's vectors: a tile is a tuple of `ROWS` x `VECTORS` vectors of
`LANES` numbers (for `gradient`s `SLOPES` x `PLACES`), as many as a processor has registers for,
beside those that the factors need. Arrays are flat, and nothing looks whether places lie in them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_wide = binding.get_host_cpu_features().get("avx512f", False)
#: Numbers of a vector; there are 32 vectors of 16 numbers, or 16 of 8.
LANES = 16 if _wide else 8
#: A tile of products is of `ROWS` factors with `VECTORS` vectors, `TILE` numbers of a line.
ROWS, VECTORS = (8, 2) if _wide else (4, 2)
TILE = VECTORS * LANES
#: A tile of a gradient is of `SLOPES` lines with `PLACES` others.
SLOPES, PLACES = (4, 6) if _wide else (2, 4)


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(f"vector of {LANES} float32")


VECTOR = ir.VectorType(ir.FloatType(), LANES)
_vector = _Vector()
_tile = types.UniTuple(_vector, ROWS * VECTORS)
_gradient = types.UniTuple(_vector, SLOPES * PLACES)


@register_model(_Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Vector) -> None:
        super().__init__(manager, kind, VECTOR)


def integer(value: int) -> ir.Constant:
    return ir.Constant(ir.IntType(64), value)


def address(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, place: Any) -> Any:
    """A pointer to an array's element at `place`."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place])


def load(builder: ir.IRBuilder, pointer: Any, number: int = 0) -> Any:
    pointer = builder.gep(pointer, [integer(LANES * number)])
    vector = builder.load(builder.bitcast(pointer, VECTOR.as_pointer()))
    vector.align = 4
    return vector


def spread(builder: ir.IRBuilder, number: Any) -> Any:
    """A vector that has `number` everywhere."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(first, nothing, places)


def multiply_add(builder: ir.IRBuilder, a: Any, b: Any, total: Any) -> Any:
    joined = ["contract"]  # rounded once
    return builder.fadd(builder.fmul(a, b, flags=joined), total, flags=joined)


def total_of(builder: ir.IRBuilder, vector: Any) -> Any:
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


def masked(builder: ir.IRBuilder, pointer: Any, mask: Any, vector: Any = None) -> Any:
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


def lanes_below(builder: ir.IRBuilder, count: Any, first: int = 0) -> Any:
    """A mask of the lanes whose number is below `count`, the first one's being `first`."""
    numbers = ir.VectorType(ir.IntType(64), LANES)
    lanes = ir.Constant(numbers, [first + lane for lane in range(LANES)])
    limit = builder.insert_element(ir.Constant(numbers, ir.Undefined), count, integer(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.icmp_signed("<", lanes, builder.shuffle_vector(limit, limit, zeros))


def picked(builder: ir.IRBuilder, a: Any, b: Any, places: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), places))


def every_second(builder: ir.IRBuilder, start: Any, limit: Any, first: int) -> Any:
    """Numbers ``first``, ``first + 2`` ... of the first `limit` from `start` on, then zeros."""
    low, high = [
        masked(builder, builder.gep(start, [integer(half)]), lanes_below(builder, limit, half))
        for half in (0, LANES)
    ]
    return picked(builder, low, high, [first + 2 * lane for lane in range(LANES)])


def _put_apart(builder: ir.IRBuilder, start: Any, count: Any, vector: Any) -> None:
    """Write `count` numbers to every second place from `start` on."""
    even = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1 - lane % 2 for lane in range(LANES)])
    for half in (0, LANES // 2):
        doubled = picked(builder, vector, vector, [half + lane // 2 for lane in range(LANES)])
        mask = lanes_below(builder, builder.mul(count, integer(2)), 2 * half)
        pointer = builder.gep(start, [integer(2 * half)])
        masked(builder, pointer, builder.and_(mask, even), doubled)


def _mover(take: int, put: int) -> Any:
    """An intrinsic that copies `LANES` numbers, or `count` if that is less.

    Of the source it takes each `take`, of the target it writes each `put`: 1 or 2.
    """

    @intrinsic
    def move(typing: Any, target: Any, i: Any, source: Any, j: Any, count: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, i, source, j, count = arguments
            start = address(context, builder, signature.args[2], source, j)
            into = address(context, builder, signature.args[0], target, i)
            mask = lanes_below(builder, count)
            if take == 2:
                limit = builder.sub(builder.mul(count, integer(2)), integer(1))
                vector = every_second(builder, start, limit, 0)
            else:
                vector = masked(builder, start, mask)
            if put == 2:
                _put_apart(builder, into, count, vector)
            else:
                masked(builder, into, mask, vector)
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, types.intp), build

    return move


move = _mover(1, 1)
move_every_second = _mover(2, 1)
move_to_every_second = _mover(1, 2)


@intrinsic
def tile_of(typing: Any, numbers: Any, first: Any) -> Any:
    """A tile whose rows have ``numbers[first]`` and those behind it everywhere."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = address(context, builder, signature.args[0], *arguments)
        rows = [
            spread(builder, builder.load(builder.gep(start, [integer(i)]))) for i in range(ROWS)
        ]
        return context.make_tuple(builder, _tile, [row for row in rows for _ in range(VECTORS)])

    return _tile(numbers, types.intp), build


@intrinsic
def add_products(typing: Any, tile: Any, factors: Any, i: Any, step: Any, line: Any, j: Any) -> Any:
    """The tile; to row number r is added ``factors[i + r * step] * line[j : j + TILE]``."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, factors, i, step, line, j = arguments
        sums = cgutils.unpack_tuple(builder, tile, ROWS * VECTORS)
        first = address(context, builder, signature.args[1], factors, i)
        start = address(context, builder, signature.args[4], line, j)
        seen = [load(builder, start, number) for number in range(VECTORS)]
        for row in range(ROWS):
            factor = builder.load(builder.gep(first, [builder.mul(step, integer(row))]))
            one = spread(builder, factor)
            for number, vector in enumerate(seen):
                place = row * VECTORS + number
                sums[place] = multiply_add(builder, one, vector, sums[place])
        return context.make_tuple(builder, _tile, sums)

    return _tile(_tile, factors, types.intp, types.intp, line, types.intp), build


@intrinsic
def put_tile(typing: Any, tile: Any, target: Any, i: Any, step: Any) -> Any:
    """Write row number r of a tile to ``target[i + r * step :]``."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, target, i, step = arguments
        sums = cgutils.unpack_tuple(builder, tile, ROWS * VECTORS)
        start = address(context, builder, signature.args[1], target, i)
        for place, vector in enumerate(sums):
            row, number = divmod(place, VECTORS)
            pointer = builder.gep(start, [builder.mul(step, integer(row))])
            pointer = builder.gep(pointer, [integer(LANES * number)])
            builder.store(vector, builder.bitcast(pointer, VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(_tile, target, types.intp, types.intp), build


@intrinsic
def gradient_of_zeros(typing: Any) -> Any:
    """A gradient's tile, of zeros."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        return context.make_tuple(builder, _gradient, [zero] * (SLOPES * PLACES))

    return _gradient(), build


@intrinsic
def add_pairs(
    typing: Any, tile: Any, slopes: Any, i: Any, step: Any, lines: Any, places: Any, k: Any, j: Any
) -> Any:
    """The tile, to which products of `LANES` numbers of each pair of lines are added.

    The first begin at ``slopes[i + s * step]``, the others at ``lines[places[k + p] + j]``.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, slopes, i, step, lines, places, k, j = arguments
        sums = cgutils.unpack_tuple(builder, tile, SLOPES * PLACES)
        first = address(context, builder, signature.args[1], slopes, i)
        offset = address(context, builder, signature.args[5], places, k)
        left = [
            load(builder, builder.gep(first, [builder.mul(step, integer(s))]))
            for s in range(SLOPES)
        ]
        for p in range(PLACES):
            place = builder.add(builder.load(builder.gep(offset, [integer(p)])), j)
            right = load(builder, address(context, builder, signature.args[4], lines, place))
            for s in range(SLOPES):
                number = s * PLACES + p
                sums[number] = multiply_add(builder, left[s], right, sums[number])
        return context.make_tuple(builder, _gradient, sums)

    return (
        _gradient(_gradient, slopes, types.intp, types.intp, lines, places, types.intp, types.intp),
        build,
    )


@intrinsic
def add_totals(typing: Any, tile: Any, target: Any, i: Any, step: Any) -> Any:
    """Add the sums of a gradient's vectors to ``target[i + s * step + p]``."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, target, i, step = arguments
        sums = cgutils.unpack_tuple(builder, tile, SLOPES * PLACES)
        start = address(context, builder, signature.args[1], target, i)
        for number, vector in enumerate(sums):
            s, p = divmod(number, PLACES)
            pointer = builder.gep(start, [builder.add(builder.mul(step, integer(s)), integer(p))])
            builder.store(builder.fadd(builder.load(pointer), total_of(builder, vector)), pointer)
        return context.get_dummy_value()

    return types.void(_gradient, target, types.intp, types.intp), build
