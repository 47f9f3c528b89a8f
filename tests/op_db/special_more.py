"""Rows of torch.special: Bessel functions, polynomials, incomplete gamma, Hurwitz' zeta."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    FLOATS,
    INTS,
    NORMAL,
    POSITIVE,
    WIDE,
    C,
    Domain,
    E,
    Forward,
    Op,
    S,
    T,
    V,
    between,
    whole,
)

inf, nan = math.inf, math.nan
HALVES = [E(T(3, dtype=name)) for name in ("float16", "bfloat16", "complex64")]
SPECIAL = [inf, -inf, nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 4.0, -30.0, 100.0]
ORDERS = [-3.0, -1.0, -0.5, 0.0, 1.0, 2.0, 2.5, 2.999, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, nan,
    inf, -inf]
POINTS = [0.0, 1.0, -1.0, 0.5, -0.5, 0.3, 0.9, 2.0, -2.0]


def room(name):
    return lambda torch, *args, **kwargs: getattr(torch.special, name)(*args, **kwargs)


def bessel(name, of, **options):
    """A row of a function of one tensor without gradient."""
    return Op("special." + name, S(T(3, 4)), S(T()), S(T(0, 3)), S(T(2, 1, 5)), Forward(V(SPECIAL)),
        call=room(name), of=of, dtypes=WIDE + INTS + ("bool",), grad=False, out=True,
        errors=[*HALVES, E(1.5), E("word")], **options)


SIX = {"float64": (1e-5, 2e-6), "float32": (1e-5, 2e-6)}
COARSE = "PyTorch's own values are off by up to 9e-7 between 3.5 and 11"
BESSEL = [
    *(bessel("bessel_" + name, of=between(0.3, 12.0), tol=SIX, why=COARSE)
        for name in ("j0", "j1", "y0", "y1")),
    bessel("airy_ai", of=between(-12.0, 4.0), tol={"float64": (1e-5, 5e-6),
        "float32": (1e-5, 5e-6)}, why="PyTorch's own values are off by 3e-6 below -2.09"),
    *(bessel(f"{scaled}modified_bessel_k{order}", of=between(0.3, 4.4))
        for scaled in ("", "scaled_") for order in (0, 1)),
    *(bessel(f"modified_bessel_i{order}", of=NORMAL) for order in (0, 1)),
    bessel("spherical_bessel_j0", of=between(-9.0, 9.0)),
]


def polynomial(name):
    """A row of polynomials: orders in a tensor or a number, of either type."""
    grid = V([[x] for x in POINTS])
    return Op("special." + name, S(T(3, 4), C(3, 4, of=whole(0, 12))), S(T(3, 1), C(4,
        of=whole(0, 12))), S(T(), C(of=whole(0, 5))), S(T(3), 2), S(T(3), 3.7), S(0.7, T(3,
        of=whole(0, 9))), S(T(0, 3), 2), S(T(2, 3), T(2, 3, dtype="int64", of=whole(0, 9))),
        Forward(grid, V(ORDERS)), call=room(name), of=between(-1.5, 1.5),
        dtypes=WIDE + INTS, grad=False, out=True, tol={"float32": (1e-4, 1e-5)},
        why="PyTorch's trigonometric forms are of float32",
        errors=[E(T(3), T(4)), E(0.5, 2), E(T(3), "word"), E(T(3), None), E(T(3), 2j),
        E(T(3, dtype="float16"), 2), E(T(3, dtype="bfloat16"), T(3, dtype="bfloat16"))])


POLYNOMIALS = [
    *(polynomial(f"{shifted}chebyshev_polynomial_{kind}") for shifted in ("", "shifted_")
        for kind in "tuvw"),
    *(polynomial(name) for name in ("hermite_polynomial_h", "hermite_polynomial_he",
        "laguerre_polynomial_l", "legendre_polynomial_p")),
]

EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, inf, -inf, nan, 0.5, 30.0]
GRID = Forward(V([[x] for x in EDGES]), V(EDGES))
WIDELY = Domain(lambda rng, shape: 10 ** rng.uniform(-2, 3, shape))
NO_NUMBERS = [E(T(3), T(4)), E(T(3), 2.0), E(2.0, T(3)), E(T(3), "word"), E(T(3, dtype="int64"),
    T(3, dtype="int64")), E(T(3, dtype="complex64"), T(3, dtype="complex64"))]


def incomplete(name, method):
    """Rows of an incomplete gamma function; there is no gradient of its first argument."""
    samples = [S(C(3, 4), T(3, 4)), S(C(3, 1), T(4)), S(C(), T()), S(C(0, 3), T(1, 3)),
        S(C(20, 20, of=WIDELY), T(20, 20, of=WIDELY)), GRID]
    options = {"of": POSITIVE, "dtypes": FLOATS, "out": True, "errors": NO_NUMBERS,
        "tol": {"float64": (1e-8, 1e-9)}, "why": "PyTorch's own values are off by 4e-10 from 20 on"}
    return [Op(name, *samples, inplace=method, torch_orders=2, **options),
        Op("special." + {"igamma": "gammainc", "igammac": "gammaincc"}[name], *samples,
            call=room({"igamma": "gammainc", "igammac": "gammaincc"}[name]), **options)]


GAMMA = [
    *incomplete("igamma", "igamma_"), *incomplete("igammac", "igammac_"),
    Op("special.zeta", S(C(3, 4), T(3, 4)), S(C(3, 1), T(4)), S(C(), T()), S(2.5, T(3)),
        S(C(3), 1.5), S(T(3, dtype="int64", of=whole(2, 9), grad=False), T(3)), S(C(0, 3), 2),
        GRID, Forward(V([[2.0], [3.0], [7.0], [2.5]]), V([-0.5, -1.5, -7.25, -200.5])),
        call=room("zeta"), of=between(1.5, 6.0), dtypes=WIDE + INTS, out=True,
        errors=[E(T(3), T(4)), E(2.0, 3.0), E(T(3), "word"), E(T(3, dtype="float16"), 2.0),
        E(T(3), 2j), E(T(3, dtype="bfloat16"), T(3, dtype="bfloat16"))]),
]

OPS = [*BESSEL, *POLYNOMIALS, *GAMMA]
