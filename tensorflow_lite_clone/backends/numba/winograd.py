"""The transforms of `convolution_winograd` as compiled loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import Compilation, Kernels, row_major
from tensorflow_lite_clone.backends.numpy import convolution_winograd
from tensorflow_lite_clone.backends.numpy.convolution_winograd import Piece, Pieces, Transforms

_winograd = Kernels("winograd")
compilation = Compilation()  # of all convolutions, which count their calls


class CompiledTransforms(Transforms):
    """What they cost is what memory costs."""

    least_products = 20
    most_tiles = 4, 8  # long lines, that memory is read in order

    def seen(
        self, x: np.ndarray, downs: Pieces, along: Piece, lines: np.ndarray, memory: np.ndarray
    ) -> Iterator[np.ndarray]:
        if not _is_supported(x):
            return super().seen(x, downs, along, lines, memory)
        corners = [(down.corner, along.corner) for down in downs]
        return _values(x, corners, (downs[0].tiles, along.tiles), memory, False)

    def made(
        self, g: np.ndarray, downs: Pieces, along: Piece, lines: np.ndarray, memory: np.ndarray
    ) -> Iterator[np.ndarray]:
        if not _is_supported(g):
            return super().made(g, downs, along, lines, memory)
        corners = [(down.made.places.start, along.made.places.start) for down in downs]
        return _values(g, corners, (downs[0].tiles, along.tiles), memory, True)

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
        if not _is_supported(y):
            super().results(y, sums, b, down, along, columns, memory)
            return
        bias = np.zeros(y.shape[1], y.dtype) if b is None else np.ascontiguousarray(b)
        corner = down.made.places.start, along.made.places.start
        _winograd.results(0, len(y), sums.reshape(-1), bias, y, corner, (down.tiles, along.tiles))


def _is_supported(x: np.ndarray) -> bool:
    return compilation.pays() and row_major(x)


def _values(
    x: np.ndarray, corners: list[tuple], tiles: tuple, memory: np.ndarray, of_results: bool
) -> Iterator[Any]:
    size = 36 * tiles[0] * tiles[1] * len(x) * x.shape[1]
    for corner in corners:
        _winograd.values(0, len(x), x, memory[:size], corner, tiles, of_results)
        yield memory[:size].reshape(36, -1, x.shape[1])


convolution_winograd.transforms = CompiledTransforms()
