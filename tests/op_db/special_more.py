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
    Domain,
    OpInfo,
    constant,
    error,
    forward_sample,
    integer_valued,
    literal,
    sample,
    tensor,
    uniform,
)

inf, nan = math.inf, math.nan
HALVES = [error(tensor(3, dtype=name)) for name in ("float16", "bfloat16", "complex64")]
SPECIAL = [inf, -inf, nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 4.0, -30.0, 100.0]
ORDERS = [-3.0, -1.0, -0.5, 0.0, 1.0, 2.0, 2.5, 2.999, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, nan,
    inf, -inf]
POINTS = [0.0, 1.0, -1.0, 0.5, -0.5, 0.3, 0.9, 2.0, -2.0]


def special_function(name):
    return lambda torch, *args, **kwargs: getattr(torch.special, name)(*args, **kwargs)


def bessel(name, domain, **options):
    """A row of a function of one tensor without gradient."""
    return OpInfo("special." + name, sample(tensor(3, 4)), sample(tensor()), sample(tensor(0, 3)),
        sample(tensor(2, 1, 5)), forward_sample(literal(SPECIAL)), call=special_function(name),
        domain=domain, dtypes=WIDE + INTS + ("bool",), supports_autograd=False, supports_out=True,
        errors=[*HALVES, error(1.5), error("word")], **options)


SIX = {"float64": (1e-5, 2e-6), "float32": (1e-5, 2e-6)}
COARSE = "PyTorch's own values are off by up to 9e-7 between 3.5 and 11"
BESSEL = [
    *(bessel("bessel_" + name, domain=uniform(0.3, 12.0), tolerances=SIX, tolerance_reason=COARSE)
        for name in ("j0", "j1", "y0", "y1")),
    bessel("airy_ai", domain=uniform(-12.0, 4.0),
        tolerances={"float64": (1e-5, 5e-6), "float32": (1e-5, 5e-6)},
        tolerance_reason="PyTorch's own values are off by 3e-6 below -2.09"),
    *(bessel(f"{scaled}modified_bessel_k{order}", domain=uniform(0.3, 4.4))
        for scaled in ("", "scaled_") for order in (0, 1)),
    *(bessel(f"modified_bessel_i{order}", domain=NORMAL) for order in (0, 1)),
    bessel("spherical_bessel_j0", domain=uniform(-9.0, 9.0)),
]


def polynomial(name):
    """A row of polynomials: orders in a tensor or a number, of either type."""
    grid = literal([[x] for x in POINTS])
    return OpInfo("special." + name,
        sample(tensor(3, 4), constant(3, 4, domain=integer_valued(0, 12))),
        sample(tensor(3, 1), constant(4, domain=integer_valued(0, 12))),
        sample(tensor(), constant(domain=integer_valued(0, 5))), sample(tensor(3), 2),
        sample(tensor(3), 3.7), sample(0.7, tensor(3, domain=integer_valued(0, 9))),
        sample(tensor(0, 3), 2),
        sample(tensor(2, 3), tensor(2, 3, dtype="int64", domain=integer_valued(0, 9))),
        forward_sample(grid, literal(ORDERS)), call=special_function(name),
        domain=uniform(-1.5, 1.5), dtypes=WIDE + INTS, supports_autograd=False, supports_out=True,
        tolerances={"float32": (1e-4, 1e-5)},
        tolerance_reason="PyTorch's trigonometric forms are of float32",
        errors=[error(tensor(3), tensor(4)), error(0.5, 2), error(tensor(3), "word"),
        error(tensor(3), None), error(tensor(3), 2j), error(tensor(3, dtype="float16"), 2),
        error(tensor(3, dtype="bfloat16"), tensor(3, dtype="bfloat16"))])


POLYNOMIALS = [
    *(polynomial(f"{shifted}chebyshev_polynomial_{kind}") for shifted in ("", "shifted_")
        for kind in "tuvw"),
    *(polynomial(name) for name in ("hermite_polynomial_h", "hermite_polynomial_he",
        "laguerre_polynomial_l", "legendre_polynomial_p")),
]

EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, inf, -inf, nan, 0.5, 30.0]
GRID = forward_sample(literal([[x] for x in EDGES]), literal(EDGES))
WIDELY = Domain(lambda rng, shape: 10 ** rng.uniform(-2, 3, shape))
NO_NUMBERS = [error(tensor(3), tensor(4)), error(tensor(3), 2.0), error(2.0, tensor(3)),
    error(tensor(3), "word"), error(tensor(3, dtype="int64"), tensor(3, dtype="int64")),
    error(tensor(3, dtype="complex64"), tensor(3, dtype="complex64"))]


def incomplete(name, method):
    """Rows of an incomplete gamma function; there is no gradient of its first argument."""
    samples = [sample(constant(3, 4), tensor(3, 4)), sample(constant(3, 1), tensor(4)),
        sample(constant(), tensor()), sample(constant(0, 3), tensor(1, 3)),
        sample(constant(20, 20, domain=WIDELY), tensor(20, 20, domain=WIDELY)), GRID]
    options = {"domain": POSITIVE, "dtypes": FLOATS, "supports_out": True, "errors": NO_NUMBERS,
        "tolerances": {"float64": (1e-8, 1e-9)},
        "tolerance_reason": "PyTorch's own values are off by 4e-10 from 20 on"}
    return [OpInfo(name, *samples, inplace_variant=method, torch_grad_orders=2, **options),
        OpInfo("special." + {"igamma": "gammainc", "igammac": "gammaincc"}[name], *samples,
            call=special_function({"igamma": "gammainc", "igammac": "gammaincc"}[name]), **options)]


GAMMA = [
    *incomplete("igamma", "igamma_"), *incomplete("igammac", "igammac_"),
    OpInfo("special.zeta", sample(constant(3, 4), tensor(3, 4)), sample(constant(3, 1), tensor(4)),
        sample(constant(), tensor()), sample(2.5, tensor(3)), sample(constant(3), 1.5),
        sample(tensor(3, dtype="int64", domain=integer_valued(2, 9), requires_grad=False),
        tensor(3)), sample(constant(0, 3), 2), GRID,
        forward_sample(literal([[2.0], [3.0], [7.0], [2.5]]), literal([-0.5, -1.5, -7.25, -200.5])),
        call=special_function("zeta"), domain=uniform(1.5, 6.0), dtypes=WIDE + INTS,
        supports_out=True, errors=[error(tensor(3), tensor(4)), error(2.0, 3.0),
        error(tensor(3), "word"), error(tensor(3, dtype="float16"), 2.0), error(tensor(3), 2j),
        error(tensor(3, dtype="bfloat16"), tensor(3, dtype="bfloat16"))]),
]

OPS = [*BESSEL, *POLYNOMIALS, *GAMMA]
