"""Bessel functions and the Airy function, as `torch.special` has them: without gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.ops.pointwise._elementwise import op_of_doubles, pointwise
from tensorflow_lite_clone.tensor import Tensor


def _function(name: str, forward: str | Callable[..., Any], document: str) -> Callable[..., Tensor]:
    """A row: an op, and the function `name` of `torch.special`."""
    op = op_of_doubles(name, forward)

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        return pointwise(op, input, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{document}

    Of float32 and float64; integers give the default dtype. It has no gradient, as in PyTorch: the
    result does not require one. Raises NotImplementedError for two-byte floats and complex numbers.
    """
    function = checked(function)
    export(function, "special", name=name)
    return function


airy_ai = _function(
    "airy_ai",
    "airy_ai",
    "The Airy function Ai (DLMF 9.2), which solves y'' = x y and decays.",
)
bessel_j0 = _function(
    "bessel_j0",
    "j0",
    "The Bessel function of the first kind, order 0 (DLMF 10.2).",
)
bessel_j1 = _function(
    "bessel_j1",
    "j1",
    "The Bessel function of the first kind, order 1 (DLMF 10.2).",
)
bessel_y0 = _function(
    "bessel_y0",
    "y0",
    "The Bessel function of the second kind, order 0: -inf at 0, NaN below (DLMF 10.2).",
)
bessel_y1 = _function(
    "bessel_y1",
    "y1",
    "The Bessel function of the second kind, order 1: -inf at 0, NaN below (DLMF 10.2).",
)
modified_bessel_i0 = _function(
    "modified_bessel_i0",
    "i0",
    "The modified Bessel function of the first kind, order 0 (DLMF 10.25); `i0` has a gradient.",
)
modified_bessel_i1 = _function(
    "modified_bessel_i1",
    "i1",
    "The modified Bessel function of the first kind, order 1 (DLMF 10.25); `i1` has a gradient.",
)
modified_bessel_k0 = _function(
    "modified_bessel_k0",
    "k0",
    "The modified Bessel function of the second kind, order 0: inf at 0, NaN below (DLMF 10.25).",
)
modified_bessel_k1 = _function(
    "modified_bessel_k1",
    "k1",
    "The modified Bessel function of the second kind, order 1: inf at 0, NaN below (DLMF 10.25).",
)
scaled_modified_bessel_k0 = _function(
    "scaled_modified_bessel_k0",
    "k0e",
    "``exp(input) * modified_bessel_k0(input)`` without underflow.",
)
scaled_modified_bessel_k1 = _function(
    "scaled_modified_bessel_k1",
    "k1e",
    "``exp(input) * modified_bessel_k1(input)`` without underflow.",
)
spherical_bessel_j0 = _function(
    "spherical_bessel_j0",
    lambda F, x: F.where(x == 0, 1, F.where(F.isinf(x), 0, F.sin(x) / x)),
    "``sin(input) / input``, the spherical Bessel function of order 0 (DLMF 10.49.3): 1 at 0.",
)
