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

from tensorflow_lite_clone.backends.numba.kernels.jit import kernel, loop
from tensorflow_lite_clone.backends.numba.kernels.simd import (
    GRADIENT_COLUMNS,
    GRADIENT_ROWS,
    LANES,
    ROWS,
    TILE,
    accumulate_sums,
    add_outer_products,
    add_products,
    broadcast_tile,
    copy,
    copy_from_stride_2,
    copy_to_stride_2,
    store_tile,
    zero_gradient,
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


@loop
def _copy(target, i, put, source, j, take, count):
    """``target[i + n * put] = source[j + n * take]`` for `count` of them."""
    if put == take == 1:
        for n in range(0, count, LANES):
            copy(target, i + n, source, j + n, count - n)
    elif put == 1 and take == 2:
        for n in range(0, count, LANES):
            copy_from_stride_2(target, i + n, source, j + 2 * n, count - n)
    elif put == 2 and take == 1:
        for n in range(0, count, LANES):
            copy_to_stride_2(target, i + 2 * n, source, j + n, count - n)
    else:
        for n in range(count):
            target[i + n * put] = source[j + n * take]


@loop
def _fill(lines, most, x, image, size, at, top, remainders, geometry):
    """Write an image's channels into lines (remainders, channels, most), from `at` on.

    Row number `top` of the padded image is the first; columns of padding stay zero.
    """
    sh, sw, ph, pw, tall, wide = geometry
    channels, height, width = size
    for number in range(len(remainders)):
        before_row, before = remainders[number, 0] - ph, remainders[number, 1] - pw
        first = _begin(-before, sw)
        count = min(_begin(width - before, sw), wide) - first
        for channel in range(channels):
            line = (number * channels + channel) * most + at + first
            seen = (image * channels + channel) * height * width + first * sw + before
            for row in range(tall):
                place = (top + row) * sh + before_row
                if 0 <= place < height:
                    _copy(lines, line + row * wide, 1, x, seen + place * width, sw, count)
                else:
                    for j in range(count):
                        lines[line + row * wide + j] = _ZERO


@kernel
def conv(start, stop, x, w, bias, y, weights, places, remainders, parts, split, geometry):
    """Of the items from `start` to `stop`; x and y (images, channels, height, width).

    An item is one of `groups` of images, or a band of rows of one. `parts` say which of the results
    are written, each with its own places of the window: rows (first place, places, first row, first
    column, rows, columns). A weight of place k and output o is ``w[weights[k] + o * step]``; there
    are outputs, and numbers of `bias`, for whole tiles.
    """
    groups, bands, band_rows, most, row_step, column_step, step = split
    tall, wide = geometry[4:]
    plane, outputs = tall * wide, y.shape[1]
    channels, height, width = x.shape[1], y.shape[2], y.shape[3]
    group = -(-len(x) // groups)
    room = _whole((group - 1) * plane + band_rows * wide, TILE)
    lines = np.zeros(len(remainders) * channels * most, np.float32)
    sums = np.empty(bias.size * room, np.float32)
    images_in, images_out = x.reshape(x.size), y.reshape(y.size)
    for item in range(start, stop):
        number, top = item // bands, item % bands * band_rows
        image = len(x) * number // groups
        images = len(x) * (number + 1) // groups - image
        for i in range(images):
            _fill(lines, most, images_in, image + i, x.shape[1:], i * plane, top, remainders,
                  geometry)  # fmt: skip
        for part in range(len(parts)):
            first, count, first_row, first_column, rows, columns = parts[part]
            rows = min(rows - top, band_rows)
            if rows <= 0:
                continue
            length = (images - 1) * plane + (rows - 1) * wide + columns
            for block in range(0, bias.size, ROWS):
                for place in range(0, length, TILE):
                    tile = broadcast_tile(bias, block)
                    for k in range(first, first + count):
                        weight = weights[k] + block * step
                        tile = add_products(tile, w, weight, step, lines, places[k] + place)
                    store_tile(tile, sums, block * room + place, room)
            for i in range(images):
                for output in range(outputs):
                    into = ((image + i) * outputs + output) * height * width + first_column
                    for row in range(rows):
                        place = into + (first_row + (top + row) * row_step) * width
                        _copy(images_out, place, column_step,
                              sums, output * room + i * plane + row * wide, 1, columns)  # fmt: skip


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
    lines = np.zeros(len(remainders) * channels * most, np.float32)
    room = _whole((group - 1) * plane + band_rows * wide, LANES)
    slopes = np.zeros(GRADIENT_ROWS * room, np.float32)  # zero between rows and images
    images_in, slopes_in = x.reshape(x.size), g.reshape(g.size)
    flat_gw = gw.reshape(gw.size)
    blocks = outputs // GRADIENT_ROWS
    for item in range(start, stop):
        part, share = item // shares, item % shares
        last = len(x) * (part + 1) // parts
        for image in range(len(x) * part // parts, last, group):
            images = min(group, last - image)
            for band in range(bands):
                top = band * band_rows
                rows = min(g.shape[2] - top, band_rows)
                length = (images - 1) * plane + (rows - 1) * wide + columns
                size = x.shape[1:]
                for i in range(images):
                    at = i * plane
                    _fill(lines, most, images_in, image + i, size, at, top, remainders, geometry)
                for block in range(blocks * share // shares, blocks * (share + 1) // shares):
                    output = block * GRADIENT_ROWS
                    for number in range(min(GRADIENT_ROWS, g.shape[1] - output)):
                        slopes[number * room + length : (number + 1) * room] = _ZERO
                        for i in range(images):
                            seen = ((image + i) * g.shape[1] + output + number) * g.shape[2] + top
                            for row in range(rows):
                                place, source = i * plane + row * wide, (seen + row) * columns
                                _copy(
                                    slopes, number * room + place, 1, slopes_in, source, 1, columns
                                )
                    for k in range(0, numbers, GRADIENT_COLUMNS):
                        tile = zero_gradient()
                        for j in range(0, length, LANES):
                            tile = add_outer_products(tile, slopes, j, room, lines, places, k, j)
                        at = (part * outputs + output) * numbers + k
                        accumulate_sums(tile, flat_gw, at, numbers)
