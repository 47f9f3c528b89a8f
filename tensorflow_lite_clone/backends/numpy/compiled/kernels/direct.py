"""Convolutions with windows of any kind, a tile of outputs and pixels at a time.

The padded channels of an image are lines, each row behind the other. Of each of them a place of the
window sees a part, so that a convolution is a product of a matrix with lines that begin at
`places`: one loop does all pixels of an image, or of a few. The padding after a row is that before
the next one, and so it is with images. What is computed there is left out. With a stride, the
rows and columns of each remainder by it are lines of their own, whose neighbours are neighbours
again.

The tiles are what Goto and van de Geijn, "Anatomy of high-performance matrix multiplication"
(2008), multiply matrices with.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.kernels.jit import kernel, loop
from tensorflow_lite_clone.backends.numpy.compiled.kernels.vectors import (
    LANES,
    PLACES,
    ROWS,
    SLOPES,
    TILE,
    add_pairs,
    add_products,
    add_totals,
    gradient_of_zeros,
    put_tile,
    tile_of,
)

_ZERO = np.float32(0)


@loop
def _whole(size, part):
    """`size` rounded up to a multiple of `part`."""
    return (size + part - 1) // part * part


@loop
def _begin(place, stride):
    """The first number that is `place` or more after multiplication with the stride."""
    return max(0, -(-place // stride))


@kernel
def pack(start, stop, w, steps, taps, first, packed):
    """Write the weights of places from `first` to blocks of `ROWS` outputs, which lie together.

    w is flat; `steps` are those from output to output and from channel to channel, `taps` the
    places within a kernel. `packed` is (blocks, channels and taps, ROWS).
    """
    outputs, channels, output_step, channel_step = steps
    for block in range(start, stop):
        for channel in range(channels):
            for tap in range(taps.size):
                line = packed[block, first + channel * taps.size + tap]
                place = channel * channel_step + taps[tap]
                for row in range(ROWS):
                    output = block * ROWS + row
                    line[row] = w[output * output_step + place] if output < outputs else _ZERO


@loop
def _fill(lines, x, at, top, remainders, geometry):
    """Write an image's channels into lines (remainders, channels, numbers), from `at` on.

    Row number `top` of the padded image is the first; columns of padding stay zero.
    """
    sh, sw, ph, pw, tall, wide = geometry
    height, width = x.shape[1:]
    for number in range(len(remainders)):
        before_row, before = remainders[number, 0] - ph, remainders[number, 1] - pw
        first, stop = _begin(-before, sw), min(_begin(width - before, sw), wide)
        if stop <= first:
            continue
        for channel in range(x.shape[0]):
            for row in range(tall):
                place = at + row * wide
                target = lines[number, channel, place + first : place + stop]
                seen = (top + row) * sh + before_row
                if not 0 <= seen < height:
                    target[:] = _ZERO
                    continue
                source = x[channel, seen, first * sw + before :]
                if sw == 1:
                    for j in range(target.size):
                        target[j] = source[j]
                else:
                    for j in range(target.size):
                        target[j] = source[j * sw]


@kernel
def conv(start, stop, x, packed, bias, y, places, remainders, parts, split, geometry):
    """Of the items from `start` to `stop`; x and y (images, channels, height, width).

    An item is `group` images, or a band of rows of one. `parts` say which of the results y are
    written, each with its own places of the window: rows (first place, places, first row, first
    column, rows, columns).
    """
    group, bands, band_rows, most, row_step, column_step = split
    tall, wide = geometry[4:]
    plane, outputs = tall * wide, y.shape[1]
    channels, blocks = x.shape[1], len(packed)
    lines = np.zeros((len(remainders), channels, most), np.float32)
    flat = lines.reshape(lines.size)
    room = _whole((group - 1) * plane + band_rows * wide, TILE)
    sums = np.empty((blocks * ROWS, room), np.float32)
    flat_sums = sums.reshape(sums.size)
    weights = packed.reshape(packed.size)
    numbers = packed.shape[1]
    for item in range(start, stop):
        image, band = item // bands * group, item % bands
        images, top = min(group, len(x) - image), band * band_rows
        for i in range(images):
            _fill(lines, x[image + i], i * plane, top, remainders, geometry)
        for part in range(len(parts)):
            first, count, first_row, first_column, rows, columns = parts[part]
            rows = min(rows - top, band_rows)
            length = (images - 1) * plane + (rows - 1) * wide + columns
            for place in range(0, length if rows > 0 else 0, TILE):
                for block in range(blocks):
                    tile = tile_of(bias, block * ROWS)
                    at = (block * numbers + first) * ROWS
                    for k in range(count):
                        tile = add_products(
                            tile, weights, at + k * ROWS, flat, places[first + k] + place
                        )
                    put_tile(tile, flat_sums, block * ROWS * room + place, room)
            for i in range(images):
                for output in range(outputs):
                    for row in range(rows):
                        place = i * plane + row * wide
                        source = sums[output, place : place + columns]
                        into = first_row + (top + row) * row_step
                        target = y[image + i, output, into, first_column:]
                        if column_step == 1:
                            for j in range(source.size):
                                target[j] = source[j]
                        else:
                            for j in range(source.size):
                                target[j * column_step] = source[j]


@kernel
def conv_backward_weight(start, stop, g, x, gw, places, remainders, shares, split, geometry):
    """Sums over images in parts, of blocks of outputs; gw (parts, outputs, channels and taps).

    Rows and columns of gw are rounded up to whole tiles. An item is one of the parts and one of
    `shares` of the outputs' blocks.
    """
    group, bands, band_rows, most = split
    parts, outputs, numbers = gw.shape
    tall, wide = geometry[4:]
    plane, channels = tall * wide, x.shape[1]
    columns = g.shape[3]
    lines = np.zeros((len(remainders), channels, most), np.float32)
    flat = lines.reshape(lines.size)
    room = _whole((group - 1) * plane + band_rows * wide, LANES)
    slopes = np.zeros((SLOPES, room), np.float32)  # zero between rows and images
    flat_slopes = slopes.reshape(slopes.size)
    flat_gw = gw.reshape(gw.size)
    blocks = outputs // SLOPES
    for item in range(start, stop):
        part, share = item // shares, item % shares
        last = len(x) * (part + 1) // parts
        for image in range(len(x) * part // parts, last, group):
            images = min(group, last - image)
            for band in range(bands):
                top = band * band_rows
                rows = min(g.shape[2] - top, band_rows)
                length = (images - 1) * plane + (rows - 1) * wide + columns
                for i in range(images):
                    _fill(lines, x[image + i], i * plane, top, remainders, geometry)
                for block in range(blocks * share // shares, blocks * (share + 1) // shares):
                    output = block * SLOPES
                    for number in range(min(SLOPES, g.shape[1] - output)):
                        slopes[number, length:] = _ZERO
                        for i in range(images):
                            for row in range(rows):
                                source = g[image + i, output + number, top + row]
                                place = i * plane + row * wide
                                target = slopes[number, place : place + columns]
                                for j in range(target.size):
                                    target[j] = source[j]
                    for k in range(0, numbers, PLACES):
                        tile = gradient_of_zeros()
                        for j in range(0, length, LANES):
                            tile = add_pairs(tile, flat_slopes, j, room, flat, places, k, j)
                        at = (part * outputs + output) * numbers + k
                        add_totals(tile, flat_gw, at, numbers)
