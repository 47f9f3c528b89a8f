"""Orthogonal polynomials, as `torch.special` has them: without gradients."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.ops.pointwise._elementwise import op_of_doubles, pointwise
from tensorflow_lite_clone.tensor import Tensor


def _polynomial(family: str, letter: str, document: str) -> Any:
    """A row: an op, and a function of `torch.special`."""
    name, kind = f"{family}_polynomial_{letter}", f"{family}_{letter}"
    op = op_of_doubles(name, lambda F, x, n: F.polynomial(x, n, kind=kind))

    def function(x: Tensor | float, n: Tensor | float, *, out: Tensor | None = None) -> Tensor:
        return pointwise(op, x, n, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{document}

    One of `x` and `n` may be a number; they broadcast and are promoted like operands of a sum,
    integers to the default dtype. Orders are truncated; those below 0 give 0. It has no gradient,
    as in PyTorch: the result does not require one. Raises NotImplementedError for two-byte floats
    and complex numbers.
    """
    function = checked(function)
    export(function, "special", name=name)
    return function


_CHEBYSHEV = {
    "t": "first kind, ``T_n(cos t) = cos(n t)``",
    "u": "second kind, ``U_n(cos t) = sin((n + 1) t) / sin(t)``",
    "v": "third kind, ``V_n(cos t) = cos((n + 1/2) t) / cos(t / 2)``",
    "w": "fourth kind, ``W_n(cos t) = sin((n + 1/2) t) / sin(t / 2)``",
}
for _letter, _words in _CHEBYSHEV.items():
    _polynomial(
        "chebyshev",
        _letter,
        f"Chebyshev's polynomial of order `n` and the {_words} (DLMF 18.5).",
    )
    _polynomial(
        "shifted_chebyshev",
        _letter,
        f"Chebyshev's polynomial of order `n` at ``2 x - 1``, of the {_words} (DLMF 18.5).",
    )

hermite_polynomial_h = _polynomial(
    "hermite",
    "h",
    "Hermite's polynomial of order `n` for the weight ``exp(-x**2)`` (DLMF 18.9).",
)
hermite_polynomial_he = _polynomial(
    "hermite",
    "he",
    "Hermite's polynomial of order `n` for the weight ``exp(-x**2 / 2)`` (DLMF 18.9).",
)
laguerre_polynomial_l = _polynomial(
    "laguerre",
    "l",
    "Laguerre's polynomial of order `n` (DLMF 18.9).",
)
legendre_polynomial_p = _polynomial(
    "legendre",
    "p",
    "Legendre's polynomial of order `n` (DLMF 18.9).",
)
