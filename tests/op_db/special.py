"""Rows of special functions: error, gamma and Bessel families, and of complex views."""

from __future__ import annotations

from tests.op_db._case import NONZERO, NORMAL, POSITIVE, UNIT, WIDE, E, Op, S, T, V, between, whole
from tests.op_db.pointwise import SMOOTH, unary


def special(name, of, **options):
    """A row of a function of one tensor in torch.special."""
    call = lambda torch, x: getattr(torch.special, name)(x)
    samples = S(T(3, 4)), S(T()), S(T(0, 3))
    return Op("special." + name, *samples, call=call, of=of, dtypes=WIDE, **options)


THREE_DIGITS = "PyTorch's is an approximation; tests/tensor/test_random_gamma.py has the values"
NINE_DIGITS = "PyTorch's trigamma is good to nine digits"

OPS = [
    *(special(name, NORMAL) for name in ("erfcx", "i0", "i0e", "log_ndtr", "ndtr")),
    *(special(name, NONZERO) for name in ("i1", "i1e")),
    *(Op(f"special.{name}.at_zero", S(V([0.0, 1.0])), dtypes=WIDE,
        call=lambda torch, x, name=name: getattr(torch.special, name)(x))
        for name in ("i1", "i1e")),
    special("ndtri", UNIT), special("entr", POSITIVE), special("gammaln", POSITIVE),
    special("psi", POSITIVE, tol={"float64": (1e-8, 1e-9)}, why=NINE_DIGITS),
    special("expit", NORMAL),
    unary("i0", dtypes=SMOOTH),
    Op("polygamma", S(0, T(3, 4)), S(1, T(3, 4)), S(2, T(3)), S(3, T()), of=POSITIVE, dtypes=WIDE,
        out=True, tol={"float64": (1e-8, 1e-9), "float32": (1e-5, 1e-5)}, why=NINE_DIGITS,
        errors=[E(-1, T(3))], accidents=("odd",)),
    # Derivatives of samples, which have no derivatives themselves.
    Op("_standard_gamma_grad", S(T(3, 4), T(3, 4)), S(T(3, 1), T(4)), S(T(), T()), S(T(0), T(0)),
        of=POSITIVE, dtypes=WIDE, grad=False, tol=dict.fromkeys(WIDE, (2e-3, 1e-6)),
        why=THREE_DIGITS, errors=[E(T(3), T(4))], accidents=("odd",)),
    Op("_dirichlet_grad", S(T(3, 4), T(3, 4, of=POSITIVE), T(3, 4, of=between(4.0, 9.0))),
        S(T(3, 1), T(4, of=POSITIVE), T(of=between(4.0, 9.0))),
        of=UNIT, dtypes=WIDE, grad=False, tol=dict.fromkeys(WIDE, (5e-3, 1e-6)),
        why=THREE_DIGITS, errors=[E(T(3), T(4), T(3))], accidents=("odd", "resized")),
    Op("mvlgamma", S(T(3, 4), 1), S(T(3, 4), 3), of=between(2.0, 4.0), dtypes=WIDE, out=True,
        inplace="mvlgamma_", tol={"float64": (1e-8, 1e-9), "float32": (3e-5, 1e-5)},
        why=NINE_DIGITS, errors=[E(T(3), 0)]),
    Op("mvlgamma.of_integers", S(T(3, 4), 2), of=whole(2, 9), dtypes=("int64", "uint8"),
        grad=False, inplace="mvlgamma_", tol={"float32": (3e-5, 1e-5)},
        why="float32 loses digits beside the zeros"),
    # JAX has it, PyTorch has not.
    *(Op(f"special.log1mexp.{where}", *samples, dtypes=WIDE, of=POSITIVE,
        call=lambda torch, x, plain=plain: getattr(torch.special, "log1mexp", plain)(x))
        for where, samples, plain in (
            ("near_0", (S(T(3, 4)), S(T()), S(T(0, 3))),
                lambda x: (-(-x).expm1()).log().to(x.dtype)),  # of any dtype under autocast
            ("far", (S(V([2.0, 12.0, 30.0])),),
                lambda x: (-(-x).exp()).log1p().to(x.dtype)))),
    Op("special.xlog1py", S(T(3, 4), T(4)), S(T(3), 2.0), S(1.5, T(3)), of=POSITIVE, dtypes=WIDE,
        call=lambda torch, x, y: torch.special.xlog1py(x, y)),
    Op("frexp", S(T(3, 4)), S(T()), dtypes=WIDE, errors=[E(T(3, dtype="int64"))]),
    Op("view_as_real.of_parts", S(T(3, 4), T(3, 4)), dtypes=WIDE,
        call=lambda torch, x, y: torch.view_as_real(torch.complex(x, y)) * 2),
    Op("view_as_complex.parts", S(T(3, 2)), dtypes=WIDE, layout=False,
        call=lambda torch, x: torch.view_as_complex(x).abs()),
]  # fmt: skip
