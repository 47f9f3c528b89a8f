"""Fourier transforms: NumPy's, in single precision where the numbers are.

Where a transform has no factor, NumPy (2.4) computes single-precision numbers in double precision
and rounds the result, for four to six times the time (64 lines of 1024: 1.0 ms, here 0.22 ms; one
core of a server, 2026-11). So it is asked for the factor, which is taken out again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.fft import (  # noqa: F401
    fftfreq,
    fftshift,
    hfft,
    ifftshift,
    ihfft,
    irfftn,
    rfftfreq,
    rfftn,
)

_SMALL = 8192  # elements, below which few calls count for more than fast ones
_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))


def _line(function: Callable[..., Any], plain: str, other: str) -> Callable[..., Any]:
    """`function`, which has no factor if `norm` is `plain`, and 1 / n if it is `other`."""

    def word(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        if norm != plain or x.size < _SMALL or x.dtype not in _SINGLE:
            return function(x, n, axis, norm)
        y = function(x, n, axis, other)
        length = n or (y if y.dtype.kind == "f" else x).shape[axis]
        if y.dtype.kind == "f":
            y *= length
        else:  # by parts: complex products make NaNs of infinities
            y.real *= length
            y.imag *= length
        return y

    return word


fft = _line(np.fft.fft, "backward", "forward")
ifft = _line(np.fft.ifft, "forward", "backward")
rfft = _line(np.fft.rfft, "backward", "forward")
irfft = _line(np.fft.irfft, "forward", "backward")


def _grid(word: Callable[..., Any]) -> Callable[..., Any]:
    def over_axes(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        if axes is None:
            axes = range(-(x.ndim if s is None else len(s)), 0)
        sizes = [None] * len(axes) if s is None else s
        for axis, n in zip(reversed(axes), reversed(sizes), strict=True):
            x = word(x, n=n, axis=axis, norm=norm)
        return x

    return over_axes


fftn = _grid(fft)
ifftn = _grid(ifft)
