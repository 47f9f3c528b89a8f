"""Rows of special functions: error, gamma and Bessel families, and of complex views."""

from __future__ import annotations

from tests.op_db._case import (
    NONZERO,
    NORMAL,
    POSITIVE,
    UNIT,
    WIDE,
    OpInfo,
    error,
    integer_valued,
    literal,
    sample,
    tensor,
    uniform,
)
from tests.op_db.pointwise import SMOOTH, unary


def special(name, domain, **options):
    """A row of a function of one tensor in torch.special."""
    call = lambda torch, x: getattr(torch.special, name)(x)
    samples = sample(tensor(3, 4)), sample(tensor()), sample(tensor(0, 3))
    return OpInfo("special." + name, *samples, call=call, domain=domain, dtypes=WIDE, **options)


THREE_DIGITS = "PyTorch's is an approximation; tests/tensor/test_random_gamma.py has the values"
NINE_DIGITS = "PyTorch's trigamma is good to nine digits"

OPS = [
    *(special(name, NORMAL) for name in ("erfcx", "i0", "i0e", "log_ndtr", "ndtr")),
    *(special(name, NONZERO) for name in ("i1", "i1e")),
    *(OpInfo(f"special.{name}.at_zero", sample(literal([0.0, 1.0])), dtypes=WIDE,
        call=lambda torch, x, name=name: getattr(torch.special, name)(x))
        for name in ("i1", "i1e")),
    special("ndtri", UNIT), special("entr", POSITIVE), special("gammaln", POSITIVE),
    special("psi", POSITIVE, tolerances={"float64": (1e-8, 1e-9)}, tolerance_reason=NINE_DIGITS),
    special("expit", NORMAL),
    unary("i0", dtypes=SMOOTH),
    OpInfo("polygamma", sample(0, tensor(3, 4)), sample(1, tensor(3, 4)), sample(2, tensor(3)),
        sample(3, tensor()), domain=POSITIVE, dtypes=WIDE, supports_out=True,
        tolerances={"float64": (1e-8, 1e-9), "float32": (1e-5, 1e-5)}, tolerance_reason=NINE_DIGITS,
        errors=[error(-1, tensor(3))], skip_undefined_behavior=("odd",)),
    # Derivatives of samples, which have no derivatives themselves.
    OpInfo("_standard_gamma_grad", sample(tensor(3, 4), tensor(3, 4)),
        sample(tensor(3, 1), tensor(4)), sample(tensor(), tensor()), sample(tensor(0), tensor(0)),
        domain=POSITIVE, dtypes=WIDE, supports_autograd=False,
        tolerances=dict.fromkeys(WIDE, (2e-3, 1e-6)), tolerance_reason=THREE_DIGITS,
        errors=[error(tensor(3), tensor(4))], skip_undefined_behavior=("odd",)),
    OpInfo("_dirichlet_grad",
        sample(tensor(3, 4), tensor(3, 4, domain=POSITIVE), tensor(3, 4, domain=uniform(4.0, 9.0))),
        sample(tensor(3, 1), tensor(4, domain=POSITIVE), tensor(domain=uniform(4.0, 9.0))),
        domain=UNIT, dtypes=WIDE, supports_autograd=False,
        tolerances=dict.fromkeys(WIDE, (5e-3, 1e-6)), tolerance_reason=THREE_DIGITS,
        errors=[error(tensor(3), tensor(4), tensor(3))],
        skip_undefined_behavior=("odd", "resized")),
    OpInfo("mvlgamma", sample(tensor(3, 4), 1), sample(tensor(3, 4), 3), domain=uniform(2.0, 4.0),
        dtypes=WIDE, supports_out=True, inplace_variant="mvlgamma_",
        tolerances={"float64": (1e-8, 1e-9), "float32": (3e-5, 1e-5)}, tolerance_reason=NINE_DIGITS,
        errors=[error(tensor(3), 0)]),
    OpInfo("mvlgamma.of_integers", sample(tensor(3, 4), 2), domain=integer_valued(2, 9),
        dtypes=("int64", "uint8"), supports_autograd=False, inplace_variant="mvlgamma_",
        tolerances={"float32": (3e-5, 1e-5)},
        tolerance_reason="float32 loses digits beside the zeros"),
    # JAX has it, PyTorch has not.
    *(OpInfo(f"special.log1mexp.{where}", *samples, dtypes=WIDE, domain=POSITIVE,
        call=lambda torch, x, plain=plain: getattr(torch.special, "log1mexp", plain)(x))
        for where, samples, plain in (
            ("near_0", (sample(tensor(3, 4)), sample(tensor()), sample(tensor(0, 3))),
                lambda x: (-(-x).expm1()).log().to(x.dtype)),  # of any dtype under autocast
            ("far", (sample(literal([2.0, 12.0, 30.0])),),
                lambda x: (-(-x).exp()).log1p().to(x.dtype)))),
    OpInfo("special.xlog1py", sample(tensor(3, 4), tensor(4)), sample(tensor(3), 2.0),
        sample(1.5, tensor(3)), domain=POSITIVE, dtypes=WIDE,
        call=lambda torch, x, y: torch.special.xlog1py(x, y)),
    OpInfo("frexp", sample(tensor(3, 4)), sample(tensor()), dtypes=WIDE,
        errors=[error(tensor(3, dtype="int64"))]),
    OpInfo("view_as_real.of_parts", sample(tensor(3, 4), tensor(3, 4)), dtypes=WIDE,
        call=lambda torch, x, y: torch.view_as_real(torch.complex(x, y)) * 2),
    OpInfo("view_as_complex.parts", sample(tensor(3, 2)), dtypes=WIDE, check_layouts=False,
        call=lambda torch, x: torch.view_as_complex(x).abs()),
]  # fmt: skip
