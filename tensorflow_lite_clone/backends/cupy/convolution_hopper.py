"""Launcher of the convolutions on Hopper's tensor cores, for arrays by pixels.

The copy engine brings boxes of pixels, with zeros around the image. A strided convolution's
gradient is a convolution for each residue of the stride, up to four in a launch.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.convolution_layout import Pixels
from tensorflow_lite_clone.backends.cupy.convolution_plan import (
    CHUNK,
    RESULTS,
    Axis,
    Shape,
    by,
    choose,
    summed,
    written,
)
from tensorflow_lite_clone.backends.cupy.fusion.deferred import Product, chain
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map

_PARAMS = ("T", "BN", "PIECES", "RESIDENT", "SPLIT", "ACROSS", "PIECE", "MOMENTS")
_kernel = Kernel("conv2d_sm90.cu", "conv2d_hopper", params=_PARAMS)

_MOST_PARTS = 4  # convolutions of a launch
_RECORD = np.dtype(
    [(name, "i4", 3) for name in ("tiles", "tile", "piece", "box", "patch")]
    + [(name, "i4", 3) for name in ("slope", "step", "period", "shift", "size")]
    + [("part", [("first", "i4", 3), ("taps", "i4", 3), ("tap", "i4")], _MOST_PARTS)]
    + [("tap_step", "i4", 3)]
    + [(name, "i4") for name in ("items", "parts", "chunks", "columns", "outputs", "group_stride")]
    + [(name, "i4") for name in ("patch_stages", "weight_stages")],
    align=True,
)
_THREADS = 384
_LEAST_CHANNELS = 64  # bytes; with fewer most of a chunk is zeros
_LEAST_OUTPUTS = 16
_LARGEST_STRIDE = 8  # of the copy engine


def is_supported(
    x: Pixels, outputs: int, itemsize: int, groups: int, stride: tuple, transposed: bool
) -> bool:
    """Whether the kernel fits: 16-byte strides, enough channels, one group."""
    return (
        groups == 1
        and min(x.image, x.pitch) > 0
        and x.packs * 16 >= _LEAST_CHANNELS
        and outputs >= _LEAST_OUTPUTS
        and outputs * itemsize % 16 == 0
        and (transposed or max(stride) <= _LARGEST_STRIDE)
    )


def reads_across(x: Pixels, w: Any) -> bool:
    """Whether `w` (channels of x, outputs, ...) may have its outputs next to each other."""
    return w.itemsize == 2 and x.packs * 8 == w.shape[0]


def gather(
    x: Pixels, w: Any, b: Any, y: Any, space: tuple, kernel: tuple, geometry: tuple,
    transposed: bool, across: bool, processors: int, waits: bool,
) -> None:  # fmt: skip
    """The convolution of `x` with `w` into `y` (channels_last), or its transpose.

    w: an output's rows of (tap, channel), or if `across` a channel's rows of (tap, output). If it
    `waits`, that is while a graph is captured, it can compute the moments of `y` as well.
    """
    item = y.itemsize
    channels, outputs, taps = x.packs * 16 // item, y.shape[1], prod(kernel)
    launches = prepare(y.shape, space, channels, kernel, geometry, transposed, item, processors)
    pitches = (x.pitch, space[1] * x.pitch, x.image)
    inner, outer = (outputs, channels) if across else (channels, outputs)
    rounded = item == 4  # float32 to tf32
    steps = geometry[0] if transposed else (1, 1)

    def launch(ready: _Launch, asked: bool) -> Any:
        order = ready.order
        parts = [y]
        if steps != (1, 1):
            parts = [y[:, :, i :: steps[0], j :: steps[1]] for i, j in ready.residues]
        out_pitches = by(tuple([parts[0].strides[i] // item for i in (3, 2, 0)]), order)
        maps = [
            tensor_map(part, shape, out_pitches, ready.out_box, written=True)
            for part, shape in zip(parts, ready.out_shapes)
        ]
        maps += maps[:1] * (_MOST_PARTS - len(maps))
        moments = cupy.empty((3, ready.rows, outputs), np.float32) if asked else None
        _kernel[(y.dtype, *ready.shape[:4], across, ready.shape.piece, asked)](
            ready.grid, _THREADS,
            tensor_map(
                x.array, ready.in_shape, by(pitches, order), ready.in_box, steps=ready.steps,
                rounded=rounded,
            ),
            tensor_map(
                w, (inner, taps, outer), (inner, taps * inner),
                (ready.out_box[0], 1, ready.out_box[0] if across else ready.shape.outputs),
                rounded=rounded,
            ),
            np.concatenate(maps), b, ready.record, moments, shared=ready.shared,
        )  # fmt: skip
        return moments

    if waits and chain.on and launches[0].rows:
        chain.put_off(Product(y, partial(launch, launches[0])))
    else:
        for ready in launches:
            launch(ready, False)


class _Launch(NamedTuple):
    """All of a launch that does not depend on where the arrays lie."""

    residues: tuple
    shape: Shape
    grid: int
    shared: int
    record: Any
    order: tuple  # of the maps' axes
    in_shape: tuple
    in_box: tuple
    steps: tuple
    out_shapes: tuple
    out_box: tuple
    rows: int  # of moments; 0: there are none


@lru_cache(4096)
def prepare(
    shape: tuple, space: tuple, channels: int, kernel: tuple, geometry: tuple, transposed: bool,
    itemsize: int, processors: int,
) -> list[_Launch]:  # fmt: skip
    """The launches that give an array of `shape` (n, o, h, w) from pixels (n, *space, channels)."""
    batch, outputs, *size = shape
    strides = geometry[0] if transposed else (1, 1)
    found = []
    for residue in product(*[range(min(s, n)) for s, n in zip(strides, size)]):
        high, wide = [
            _axis(-(-(n - r) // s), k, r, transposed, *[setting[i] for setting in geometry])
            for i, (n, r, s, k) in enumerate(zip(size, residue, strides, kernel))
        ]
        high = high._replace(tap=high.tap * kernel[1], tap_step=high.tap_step * kernel[1])
        found.append((residue, (wide, high, Axis(batch))))
    sizes = (space[1], space[0], batch)
    return [
        _launch(found[i : i + _MOST_PARTS], sizes, channels, outputs, itemsize, processors)
        for i in range(0, len(found), _MOST_PARTS)
    ]


def _axis(
    count: int, kernel: int, residue: int, transposed: bool, stride: int, padding: int,
    dilation: int,
) -> Axis:  # fmt: skip
    if not transposed:
        return Axis(count, kernel, -padding, stride, dilation, 0, 1)
    # Taps k with residue + padding - k dilation a multiple of the stride, the last one first.
    taps = [k for k in range(kernel) if (residue + padding - k * dilation) % stride == 0]
    period = stride // gcd(stride, dilation)
    last = taps[-1] if taps else 0
    first = (residue + padding - last * dilation) // stride
    return Axis(count, len(taps), first, 1, period * dilation // stride, last, -period)


def _launch(
    found: list, sizes: tuple, channels: int, outputs: int, itemsize: int, processors: int
) -> _Launch:
    residues, triples = zip(*found)
    lanes = CHUNK // itemsize
    chunks = -(-channels // lanes)
    plan = choose(triples, sizes, outputs, chunks, itemsize, processors)
    box, shape = plan.box, plan.shape
    out_box = written(shape, box.piece, itemsize)
    parts = [by(axes, plan.order) for axes in triples]
    sizes = by(sizes, plan.order)
    counts = [max([axis.size for axis in along]) for along in zip(*parts)]
    slopes, steps, tap_steps = zip(*[(a.slope, a.step, a.tap_step) for a in parts[0]])
    encoded = [
        ([a.first for a in axes], [a.taps for a in axes], sum([a.tap for a in axes]))
        for axes in parts
    ]
    encoded += encoded[:1] * (_MOST_PARTS - len(parts))
    blocks = -(-outputs // shape.outputs)
    items = box.tiles * blocks * len(parts)
    record = np.array(
        (
            [-(-n // t) for n, t in zip(counts, box.tile)], box.tile, box.piece, out_box, box.patch,
            slopes, steps, plan.period, plan.shift, sizes, encoded, tap_steps, items, len(parts),
            chunks, blocks, outputs, box.group_stride, plan.patch_stages, plan.weight_stages,
        ),
        _RECORD,
    )  # fmt: skip
    shared, grid = plan.shared, items * shape.split
    if shape.split > 1:
        shared = max(shared, summed(shape, itemsize))
    elif items > processors * shape.resident:
        shared += RESULTS
        grid = processors * shape.resident
        while gcd(grid, len(parts)) > 1:
            grid -= 1  # so that each block has a share of all parts
    return _Launch(
        residues,
        shape,
        grid,
        shared,
        record,
        plan.order,
        (channels, *sizes),
        (lanes, *[(p - 1) * s + 1 for p, s in zip(box.patch, slopes)]),
        (1, *slopes),
        tuple([(outputs, *[axis.size for axis in axes]) for axes in parts]),
        (lanes, *out_box),
        _rows(counts, box.tile, shape, grid, blocks) if len(parts) == 1 else 0,
    )


def _rows(counts: list, tile: tuple, shape: Shape, grid: int, blocks: int) -> int:
    """In how many parts a launch can give the moments of each of its outputs.

    A block's are of the same outputs, and of whole tiles; `blocks`: of outputs.
    """
    if shape.split > 1 or grid % blocks or any([n % t for n, t in zip(counts, tile)]):
        return 0
    return grid // blocks * (8 if shape.piece == 64 else 2)
