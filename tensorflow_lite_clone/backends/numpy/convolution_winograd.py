"""Convolutions of 3 x 3 windows in a quarter of the products: F(4 x 4, 3 x 3) of Winograd.

A tile of 6 x 6 numbers of the input makes 4 x 4 results. So short a convolution is a product of
polynomials, which are known by their values at six points along an axis: the tile and the weight
are evaluated there, values multiplied and summed over channels, in one matrix product for each of
the 36 points, and results come from the sums. See Lavin and Gray, "Fast algorithms for
convolutional neural networks" (2015); the matrices are Toom's and Cook's, as Barabasz, Anderson,
Soodhalter and Gregg construct them in "Error analysis and improving the accuracy of Winograd
convolution for deep neural networks" (2018). What is rounded depends on the points: with those
here the largest error of normal data, beside the largest result, is 2e-6 with 64 channels and 4e-6
with 512, where sums of products have 0.5e-6. An infinity or NaN spreads over its tile and, without
compiled transforms, over those beside it.

The transforms are matrix products as well: up to four tiles side by side are a product of a line
with a matrix that holds that of a tile again and again, four places further each time. It leaves
out the padding. Nothing is copied but the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import blas_single_threaded, parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.backends.windows import Ints
from tensorflow_lite_clone.core.flags import flags

_f32 = np.dtype(np.float32)
_POINTS = 0, 3 / 4, -3 / 4, 3 / 2, -3 / 2  # the sixth one is infinity
_SEEN, _MADE = 6, 4  # numbers along an axis of a tile
_PAIRS_A_TILE = 1 << 10  # of a piece, for each of which the weight is read
_SMALL_PRODUCT = 10**6  # multiplications, up to which OpenBLAS takes matrices as they lie


class _Side(NamedTuple):
    """What is known of a piece along one axis: numbers at these places, or values at points."""

    places: slice
    matrix: np.ndarray  # (6 * tiles, places)


class Piece(NamedTuple):
    """A few tiles side by side, along one axis."""

    tiles: int
    corner: int  # where the first tile begins, before the input maybe
    seen: _Side  # of the input
    made: _Side  # of the result


Pieces = tuple[Piece, ...]


class Transforms:
    """How numbers get to the points and back: as matrix products."""

    least_products = 32  # of a tile, for each of its channels: from there on it is faster
    most_tiles = 4, 4  # of a piece, down and along

    def seen(
        self, x: np.ndarray, downs: Pieces, along: Piece, lines: np.ndarray, memory: np.ndarray
    ) -> Iterator[np.ndarray]:
        """For each piece `down`: x (m, c, h, w) at all points, (36, tiles of all samples, c)."""
        return _values(x, [down.seen for down in downs], along.seen, lines, memory)

    def made(
        self, g: np.ndarray, downs: Pieces, along: Piece, lines: np.ndarray, memory: np.ndarray
    ) -> Iterator[np.ndarray]:
        """`seen` for gradients g of results."""
        return _values(g, [down.made for down in downs], along.made, lines, memory)

    def results(
        self,
        y: np.ndarray,
        sums: np.ndarray,
        b: np.ndarray | None,
        down: Piece,
        along: Piece,
        columns: np.ndarray,
        memory: np.ndarray,
    ) -> None:
        """Write to y (m, o, h, w) what the sums (36, t, o) of a piece make, and b (o,).

        `memory` may be that of the sums.
        """
        target = y[..., down.made.places, along.made.places]
        m, o, h, w = target.shape
        columns = _shaped(columns, _SEEN, along.tiles, h, m * o)
        made = sums.reshape(_SEEN, _SEEN * down.tiles, along.tiles, m * o).swapaxes(1, 2)
        np.matmul(down.made.matrix.T, made, out=columns)
        results = _shaped(memory, h * m * o, w)
        np.matmul(columns.reshape(_SEEN * along.tiles, -1).T, along.made.matrix, out=results)
        results = results.reshape(h, m, o, w).transpose(1, 2, 0, 3)
        if b is None:
            np.copyto(target, results)
        else:
            np.add(results, b[:, None, None], out=target)


#: May be replaced by faster ones.
transforms = Transforms()


def is_winograd(
    dtype: np.dtype, shape: Ints, samples: int, count: Ints, before: Ints, steps: Ints, groups: int,
    of_gradient: bool = False,
) -> bool:  # fmt: skip
    """Whether a weight of `shape` (o, c, *kernel) is used so; `steps`: stride and dilation.

    Or whether its gradient is computed so.
    """
    windows = tuning.winograd_gradient_windows if of_gradient else tuning.winograd_windows
    computed = math.prod([_MADE * _tiles(size) for size in count])
    return (
        shape[2:] == (3, 3)
        and dtype == _f32
        and groups == 1
        and shape[0] * shape[1] >= transforms.least_products * sum(shape[:2])
        and max(steps) == 1
        and 0 <= min(before) <= max(before) <= 2
        and samples * math.prod(count) >= windows
        and computed <= tuning.winograd_waste * math.prod(count)
    )


@blas_single_threaded()
def winograd(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None,
    count: Ints,
    before: Ints,
    mirrored: bool = False,
) -> np.ndarray:
    """The convolution (n, o, *count) of x (n, c, *space) with w (c, o, 3, 3), and b (o,) added."""
    n, (c, o) = len(x), w.shape[:2]
    y = np.empty((n, o, *count), x.dtype)
    downs, alongs = _pieces(x.shape[2:], count, before, transforms.most_tiles)
    tiles = downs[0].tiles * alongs[0].tiles
    m = _images(n, tiles, c, o)
    sizes = (
        _SEEN * alongs[0].tiles * m * c * x.shape[2],
        tiles * m * max(_SEEN**2 * c, _SEEN * _MADE * o),
        tiles * m * _SEEN**2 * o,
    )
    with workspace(_SEEN**2 * c * o, x.dtype) as memory:
        weight = memory.reshape(_SEEN**2, c, o)
        _transform_weight(w, weight, mirrored)

        def work(start: int, stop: int) -> None:
            with workspace(sum(sizes), x.dtype) as memory:
                lines, values, sums = np.split(memory, np.cumsum(sizes)[:-1])
                for block, along in _units(start, stop, n, m, alongs):
                    every = transforms.seen(x[block], downs, along, lines, values)
                    for down, points in zip(downs, every):
                        products = _products(points, weight, sums)
                        transforms.results(y[block], products, b, down, along, values, sums)

        parallel_for(work, -(-n // m) * len(alongs), _least(m * tiles * len(downs), c, o))
    return y


@blas_single_threaded()
def winograd_weight(g: np.ndarray, x: np.ndarray, before: Ints) -> np.ndarray:
    """The gradient (o, c, 3, 3) of the weight, for that of y (n, o, *count)."""
    n, o, c = len(g), g.shape[1], x.shape[1]
    downs, alongs = _pieces(x.shape[2:], g.shape[2:], before, transforms.most_tiles)
    tiles = downs[0].tiles * alongs[0].tiles
    if len(downs) == len(alongs) == 1 and tiles * n * (c + o) <= tuning.winograd_single_piece:
        return _weight_at_once(g, x, downs, alongs[0])
    m = _images(n, tiles, c, o)
    lines = _SEEN * alongs[0].tiles * m
    sizes = (
        lines * c * x.shape[2], lines * o * g.shape[2], tiles * m * _SEEN**2 * c,
        tiles * m * _SEEN**2 * o, _SEEN**2 * o * c,
    )  # fmt: skip
    found: dict[int, np.ndarray] = {}  # by the first unit

    def work(start: int, stop: int) -> None:
        total = found[start] = np.zeros((_SEEN**2, o, c), g.dtype)
        with workspace(sum(sizes), g.dtype) as memory:
            *parts, values, slopes, product = np.split(memory, np.cumsum(sizes)[:-1])
            for block, along in _units(start, stop, n, m, alongs):
                every = transforms.seen(x[block], downs, along, parts[0], values)
                upstreams = transforms.made(g[block], downs, along, parts[1], slopes)
                for points, upstream in zip(every, upstreams):
                    np.matmul(upstream.swapaxes(1, 2), points, out=product.reshape(total.shape))
                    total += product.reshape(total.shape)

    parallel_for(work, -(-n // m) * len(alongs), _least(m * tiles * len(downs), c, o))
    first, *others = [found[start] for start in sorted(found)]
    for other in others:
        first += other
    return np.matmul(first.reshape(_SEEN**2, o * c).T, _weight_points()).reshape(o, c, 3, 3)


def _weight_at_once(g: np.ndarray, x: np.ndarray, downs: Pieces, along: Piece) -> np.ndarray:
    """`winograd_weight` of small planes: its gradient at the points is never there as a whole."""
    (n, c, h), o = x.shape[:3], g.shape[1]
    gw = np.empty((o, c, 9), g.dtype)
    tiles = downs[0].tiles * along.tiles * n
    lines = _SEEN * along.tiles * n
    sizes = lines * c * h, lines * o * g.shape[2], _SEEN**2 * tiles * c, _SEEN**2 * tiles * o
    with workspace(sum(sizes), g.dtype) as memory:
        first, second, seen, made = np.split(memory, np.cumsum(sizes)[:-1])

        def transform(start: int, stop: int) -> None:
            for number in range(start, stop):
                if number:
                    next(transforms.made(g, downs, along, second, made))
                else:
                    next(transforms.seen(x, downs, along, first, seen))

        parallel_for(transform, 2, 1 if tiles * (c + o) * 27 > tuning.winograd_thread_ns else 2)
        values = _shaped(seen, _SEEN**2, tiles, c)
        slopes = _shaped(made, _SEEN**2, tiles, o).swapaxes(1, 2)
        step = max(1, tuning.winograd_gradient_block // c)

        def multiply(start: int, stop: int) -> None:
            with workspace(_SEEN**2 * step * c, g.dtype) as memory:
                for first in range(start, stop, step):
                    block = slice(first, min(first + step, stop))
                    product = _shaped(memory, _SEEN**2, block.stop - first, c)
                    np.matmul(slopes[:, block], values, out=product)
                    flat = product.reshape(_SEEN**2, -1).T
                    np.matmul(flat, _weight_points(), out=gw[block].reshape(-1, 9))

        parallel_for(multiply, o, math.ceil(tuning.winograd_thread_ns / (0.4 * c * (tiles + 25))))
    return gw.reshape(o, c, 3, 3)


def _tiles(size: int) -> int:
    return -(-size // _MADE)


def _least(tiles: int, c: int, o: int) -> int:
    """How many units of so many tiles are worth a thread: 0.4 ns a pair, 27 ns a channel."""
    return math.ceil(tuning.winograd_thread_ns / (tiles * (0.4 * c * o + 27 * (c + o))))


def _images(n: int, tiles: int, c: int, o: int) -> int:
    """Of how many samples a piece is, where `tiles` are of one."""
    minimum = max(tuning.winograd_tile_elements // max(c, o), c * o // _PAIRS_A_TILE)
    return max(1, min(-(-minimum // tiles), -(-n // flags.threads)))


def _units(start: int, stop: int, n: int, m: int, alongs: Pieces) -> Iterator[tuple[slice, Piece]]:
    """Blocks of `m` of the n samples, each with every piece along the last axis."""
    for unit in range(start, stop):
        group, number = divmod(unit, len(alongs))
        yield slice(group * m, min(group * m + m, n)), alongs[number]


def _shaped(memory: np.ndarray, *shape: int) -> np.ndarray:
    return memory[: math.prod(shape)].reshape(shape)


def _values(
    x: np.ndarray, downs: list[_Side], along: _Side, lines: np.ndarray, memory: np.ndarray
) -> Iterator[np.ndarray]:
    m, c, h, w = x.shape
    points = _shaped(lines, len(along.matrix), m * c * h)
    np.matmul(along.matrix, x.reshape(-1, w)[:, along.places].T, out=points)
    grid = points.reshape(_SEEN, -1, m * c, h)
    for down in downs:
        values = _shaped(memory, _SEEN, len(down.matrix), grid.shape[1], m * c)
        np.matmul(down.matrix, grid[..., down.places].swapaxes(2, 3), out=values.swapaxes(1, 2))
        yield values.reshape(_SEEN**2, -1, c)


def _products(values: np.ndarray, weight: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """values (36, t, c) times weight (36, c, o): (36, t, o)."""
    points, tiles, c = values.shape
    o = weight.shape[2]
    most = max(_SMALL_PRODUCT // (c * o), 1)
    chunk = next((size for size in range(min(most, tiles), 15, -1) if tiles % size == 0), tiles)
    products = _shaped(memory, points, tiles // chunk, chunk, o)
    np.matmul(values.reshape(points, -1, chunk, c), weight[:, None], out=products)
    return products.reshape(points, tiles, o)


def _transform_weight(w: np.ndarray, values: np.ndarray, mirrored: bool) -> None:
    """Write w (c, o, 3, 3) at all points to values (36, c, o)."""
    c, o = w.shape[:2]
    points = _weight_points()[:, :: -1 if mirrored else 1]
    step = max(1, tuning.winograd_weight_block // (9 * o))

    def work(start: int, stop: int) -> None:
        with workspace(9 * step * o, w.dtype) as memory:
            for first in range(start, stop, step):
                block = slice(first, min(first + step, stop))
                part = _shaped(memory, block.stop - first, o, 3, 3)
                np.copyto(part, w[block])
                target = values[:, block].reshape(_SEEN**2, -1)
                np.matmul(points, part.reshape(-1, 9).T, out=target)

    parallel_for(work, c, math.ceil(tuning.winograd_thread_ns / (15 * o)))


@lru_cache(1024)
def _pieces(space: Ints, count: Ints, before: Ints, most: Ints) -> tuple[Pieces, ...]:
    return tuple([_axis_pieces(*axis) for axis in zip(space, count, before, most)])


def _axis_pieces(size: int, count: int, before: int, most: int) -> Pieces:
    """Pieces of as many tiles each as cover `count` results."""
    number = -(-_tiles(count) // most)
    tiles = -(-_tiles(count) // number)
    length = _MADE * tiles
    tile, result, _ = _matrices()
    seen = np.zeros((_SEEN, tiles, length + _SEEN - _MADE), _f32)
    made = np.zeros((_SEEN, tiles, length), _f32)
    for i in range(tiles):
        place = i * _MADE
        seen[:, i, place : place + _SEEN] = tile
        made[:, i, place : place + _MADE] = result
    rows, covered = _SEEN * tiles, seen.shape[2]
    pieces = []
    for start in range(0, count, length):
        first, stop = start - before, min(start - before + covered, size)
        inside = slice(max(first, 0), max(stop, 0))
        kept = slice(inside.start - first, max(inside.stop - first, 0))
        block = slice(start, min(start + length, count))
        pieces.append(
            Piece(
                tiles,
                first,
                _Side(inside, seen[..., kept].reshape(rows, -1)),
                _Side(block, made[..., : block.stop - start].reshape(rows, -1)),
            )
        )
    return tuple(pieces)


@cache
def _matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each point: what the tile (6,), the results (4,), the weight (3,) are multiplied with.

    The results of a tile are ``result.T @ ((weight @ w) * (tile @ x))`` along one axis. At a point
    p the weight's polynomial has the value w0 + w1 p + w2 p^2, divided by the product of p's
    distances from the other points; rows of the tile are the coefficients of the polynomial that is
    zero at all other points. Powers of two that go from the weight to the tile keep both near one.
    """
    points = np.array(_POINTS)
    infinity = [[0] * (length - 1) + [1] for length in (_MADE, 3)]
    result = np.vstack([np.vander(points, _MADE, increasing=True), infinity[0]])
    weight = np.vstack([np.vander(points, 3, increasing=True), infinity[1]])
    tile = np.zeros((_SEEN, _SEEN))
    tile[-1] = np.poly(points)[::-1]
    for i, point in enumerate(points):
        others = np.delete(points, i)
        tile[i, :-1] = np.poly(others)[::-1]
        weight[i] /= np.prod(point - others)
    scale = 2.0 ** np.round(np.log2(np.abs(weight).max(1, keepdims=True)))
    return tile * scale, result, weight / scale


@cache
def _weight_points() -> np.ndarray:
    """(36, 9): a window at the points along both axes, the last one's first as in `_values`."""
    one = _matrices()[2]
    both = np.einsum("ik,jl->jikl", one, one)
    return both.reshape(_SEEN**2, 9).astype(_f32)
