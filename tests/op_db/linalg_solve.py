"""Rows of factorizations of matrices, and of systems of equations that are solved with them."""

# fmt: off
from __future__ import annotations

import numpy as np

from tests.op_db._case import (
    COMPLEX,
    WIDE,
    Domain,
    OpInfo,
    error,
    forward_sample,
    literal,
    sample,
    tensor,
)

# Equal rows would make a matrix singular.
REGULAR = Domain(lambda rng, shape: rng.standard_normal(shape), distinct=True)
# Far from singular, with pivots that small steps do not change.
STEEP = Domain(lambda rng, shape: rng.standard_normal(shape) + (3 * np.eye(*shape[-2:])
    if len(shape) > 1 else 0), distinct=True)
LOOSE = {"float32": (2e-4, 2e-4), "complex64": (2e-4, 2e-4)}
WHY = "inverses of drawn matrices are not well conditioned"
SQUARE = [error(tensor(2, 3)), error(tensor(3)), error(tensor(2, 2, dtype="int64")),
    error(tensor(2, 2, dtype="float16"))]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


def row(name, *samples, **options):
    """A row of a function of matrices."""
    usual = {"dtypes": (*WIDE, *COMPLEX), "domain": REGULAR, "tolerances": LOOSE,
        "tolerance_reason": WHY, "check_third_order": True}
    options = usual | options
    return OpInfo(name, *samples, **options)


def linalg(name, *samples, **options):
    """A row of a function in torch.linalg."""
    word = name.split(".")[0]
    options.setdefault("call", lambda torch, *args, **kw: getattr(torch.linalg, word)(*args, **kw))
    return row("linalg." + name, *samples, **options)


def definite(torch, x):
    """A positive definite matrix that `x` gives, where it can."""
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2] and x.dtype not in (torch.int64,
        torch.float16)
    return x @ x.mH + torch.eye(x.shape[-1], dtype=x.dtype, device=x.device) if square else x


def factor(torch, x, upper=False):
    """A triangular matrix with a real diagonal that is not small, where `x` is square."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.dtype is torch.int64:
        return x
    diagonal = x.diagonal(0, -2, -1)
    diagonal = (diagonal.real.to(x.dtype) if x.is_complex() else diagonal) + 3
    return (torch.triu(x, 1) if upper else torch.tril(x, -1)) + torch.diag_embed(diagonal)


CHOLESKY = [
    *(linalg(name, sample(tensor(3, 3)), sample(tensor(2, 3, 3)), sample(tensor(4, 4), upper=True),
        sample(tensor(1, 1)), sample(tensor(0, 0)), errors=SQUARE, supports_out=name == "cholesky",
        call=lambda torch, x, name=name, **kw: getattr(torch.linalg, name)(definite(torch, x),
        **kw)) for name in ("cholesky", "cholesky_ex")),
    linalg("cholesky_ex.failing", forward_sample(literal([[-1.0]])),
        forward_sample(literal(SINGULAR)),
        forward_sample(literal([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])), dtypes=WIDE,
        supports_autograd=False, call=lambda torch, x: torch.linalg.cholesky_ex(x).info,
        errors=[error(tensor(2, 3)), error(tensor(3))]),
    row("cholesky", sample(tensor(3, 3)), sample(tensor(2, 3, 3)), sample(tensor(4, 4), True),
        errors=SQUARE, supports_out=True, skip_undefined_behavior=("empty",),
        # any shape without elements passes
        call=lambda torch, x, *args, **kw: torch.cholesky(definite(torch, x), *args, **kw)),
    row("cholesky_solve", sample(tensor(3, 2), tensor(3, 3)),
        sample(tensor(2, 3, 2), tensor(3, 3), True), sample(tensor(3, 2), tensor(2, 3, 3)),
        sample(tensor(3, 0), tensor(3, 3)), supports_out=True,
        errors=[error(tensor(3), tensor(3, 3)), error(tensor(3, 2), tensor(3)),
        error(tensor(4, 2), tensor(3, 3)), error(tensor(3, 2), tensor(3, 4)),
        error(tensor(3, 2), tensor(3, 3, dtype="float64")),
        error(tensor(3, 2, dtype="int64"), tensor(3, 3, dtype="int64")),
        error(tensor(2, 3, 2), tensor(4, 3, 3))],
        call=lambda torch, b, x, upper=False, **kw: torch.cholesky_solve(b, factor(torch, x, upper),
        upper, **kw)),
    row("cholesky_inverse", sample(tensor(3, 3)), sample(tensor(2, 3, 3)),
        sample(tensor(3, 3), True), sample(tensor(0, 0)), supports_out=True,
        errors=[error(tensor(2, 3)), error(tensor(3)),
        error(literal([[1.0, 0.0], [0.0, 0.0]]), False, False), error(tensor(2, 2, dtype="int64"))],
        call=lambda torch, x, upper=False, shift=True, **kw: torch.cholesky_inverse(factor(torch, x,
        upper) if shift else x, upper, **kw)),
]

LU = [
    *(linalg(name, sample(tensor(3, 3)), sample(tensor(2, 3, 4)), sample(tensor(4, 3)),
        sample(tensor(2, 1, 4, 4)), sample(tensor(0, 3)), sample(tensor(0, 0)),
        errors=[error(tensor(3)), error(tensor(2, 2, dtype="int64")),
        error(tensor(2, 2), pivot=False)]) for name in ("lu", "lu_factor", "lu_factor_ex")),
    linalg("lu_factor_ex.singular", forward_sample(literal(SINGULAR)),
        forward_sample(literal([[0.0, 1.0], [0.0, 0.0]])),
        forward_sample(literal([[[0.0, 2.0], [2.0, 0.0]], SINGULAR])), dtypes=WIDE,
        supports_autograd=False, errors=[error(literal(SINGULAR), check_errors=True)],
        call=lambda torch, x, **kw: torch.linalg.lu_factor_ex(x, **kw)),
    linalg("lu_factor.singular", sample(tensor(1, 1)), errors=[error(literal(SINGULAR)),
        error(literal([SINGULAR, SINGULAR]))]),
    row("lu", sample(tensor(3, 3)), sample(tensor(2, 3, 4)), sample(tensor(4, 3), True, True),
        sample(tensor(3, 3), get_infos=True), errors=[error(tensor(3)),
        error(tensor(2, 2, dtype="int64")), error(tensor(2, 2), False)]),
    row("lu_unpack", sample(tensor(3, 3), literal([3, 2, 3], "int32")),
        sample(tensor(2, 2, 3), literal([[2, 2], [1, 2]], "int32")),
        sample(tensor(3, 2), literal([3, 3], "int32")),
        forward_sample(tensor(3, 3), literal([3, 2, 3], "int32"), False),
        sample(tensor(3, 3), literal([3, 2, 3], "int32"), unpack_pivots=False),
        dtypes=(*WIDE, *COMPLEX, "float16"),
        skip_undefined_behavior=("empty", "zero_dim", "resized"),
        # PyTorch reads pivots beyond their end
        errors=[error(tensor(3), literal([1, 2, 3], "int32")),
        error(tensor(2, 2), literal([1, 2], "int64")),
        error(tensor(2, 2), literal([1, 3], "int32")),
        error(tensor(2, 2), literal([0, 2], "int32"))]),
    linalg("lu_solve",
        *[sample(tensor(3, 3, domain=STEEP), literal([3, 2, 3], "int32"), tensor(*shape), **kw)
        for shape in ((3, 2), (2, 3, 2), (3, 3)) for kw in ({}, {"adjoint": True})],
        sample(tensor(3, 3, domain=STEEP), literal([3, 2, 3], "int32"), tensor(2, 3), left=False),
        sample(tensor(3, 3, domain=STEEP), literal([3, 2, 3], "int32"), tensor(2, 3), left=False,
        adjoint=True),
        sample(tensor(2, 3, 3, domain=STEEP), literal([[1, 3, 3], [2, 2, 3]], "int32"),
        tensor(3, 1)), supports_out=True, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(3, 3), literal([1, 2, 3], "int32"), tensor(3)),
        error(tensor(3, 3), literal([1, 2, 3], "int32"), tensor(4, 2)),
        error(tensor(3, 3), literal([1, 2, 3], "int64"), tensor(3, 2)),
        error(tensor(3, 2), literal([1, 2], "int32"), tensor(3, 2)),
        error(tensor(3, 3), literal([1, 2], "int32"), tensor(3, 2)),
        error(tensor(3, 3), literal([0, 2, 3], "int32"), tensor(3, 2)),
        error(tensor(2, 3, 3), literal([1, 2, 3], "int32"), tensor(2, 3, 2)),
        error(tensor(3, 3), literal([1, 2, 4], "int32"), tensor(3, 2)),
        error(tensor(3, 3), literal([1, 2, 3], "int32"), tensor(3, 2, dtype="float64"))]),
    row("lu_solve", sample(tensor(3, 2), tensor(3, 3, domain=STEEP), literal([3, 2, 3], "int32")),
        sample(tensor(2, 3, 2), tensor(3, 3, domain=STEEP), literal([3, 2, 3], "int32")),
        supports_out=True, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(3), tensor(3, 3), literal([1, 2, 3], "int32")),
        error(tensor(4, 2), tensor(3, 3), literal([1, 2, 3], "int32"))]),
]

PIVOTS = literal([-2, -2, 3], "int32")
LDL = [
    *(linalg(name, forward_sample(tensor(3, 3)), forward_sample(tensor(2, 4, 4)),
        forward_sample(tensor(4, 4), hermitian=True), forward_sample(tensor(2, 6, 6)),
        forward_sample(tensor(0, 0)),
        forward_sample(literal([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])),
        supports_autograd=False, errors=SQUARE) for name in ("ldl_factor", "ldl_factor_ex")),
    linalg("ldl_factor_ex.singular", forward_sample(literal(SINGULAR)),
        forward_sample(literal([[0.0, 0.0], [0.0, 0.0]])), dtypes=WIDE, supports_autograd=False,
        errors=[error(literal(SINGULAR), check_errors=True)],
        call=lambda torch, x, **kw: torch.linalg.ldl_factor_ex(x, **kw)),
    linalg("ldl_solve", forward_sample(tensor(3, 3), literal([1, 3, 3], "int32"), tensor(3, 2)),
        forward_sample(tensor(3, 3), PIVOTS, tensor(3, 1)),
        forward_sample(tensor(2, 3, 3), literal([[1, -3, -3], [3, 2, 3]], "int32"), tensor(3, 1)),
        supports_autograd=False, supports_out=True, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(3, 3), PIVOTS, tensor(3)), error(tensor(3, 3), PIVOTS, tensor(4, 2)),
        error(tensor(3, 2), PIVOTS, tensor(3, 2)),
        error(tensor(3, 3), literal([1, 2], "int32"), tensor(3, 2)),
        error(tensor(3, 3), literal([1.0, 2.0, 3.0]), tensor(3, 2)),
        error(tensor(3, 3), PIVOTS, tensor(3, 2, dtype="float64"))]),
    linalg("ldl_solve.hermitian", forward_sample(tensor(3, 3), tensor(3, 2)),
        forward_sample(tensor(2, 5, 5), tensor(2, 5, 2)), supports_autograd=False,
        skip_undefined_behavior=("empty", "resized"),
        call=lambda torch, x, b: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x, hermitian=True),
        b, hermitian=True)),
]

EQUATIONS = [sample(tensor(3, 3), tensor(3)), sample(tensor(3, 3), tensor(3, 2)),
    sample(tensor(2, 3, 3), tensor(2, 3, 2)), sample(tensor(2, 3, 3), tensor(2, 3)),
    sample(tensor(2, 3, 3), tensor(3, 2)), sample(tensor(3, 3), tensor(2, 3, 2)),
    sample(tensor(2, 3, 3), tensor(3)), sample(tensor(3, 3), tensor(2, 3), left=False),
    sample(tensor(2, 1, 3, 3), tensor(2, 2, 3), left=False), sample(tensor(0, 0), tensor(0, 2)),
    sample(tensor(3, 3), tensor(3, 0))]
MISFIT = [error(tensor(3, 3), tensor(2)), error(tensor(2, 3), tensor(2)),
    error(tensor(3, 3), tensor(4, 2)), error(tensor(3), tensor(3)),
    error(tensor(3, 3), tensor(3), left=False), error(tensor(1, 1), tensor(3), left=False),
    error(tensor(2, 3, 3), tensor(4, 3, 2)), error(tensor(3, 3), tensor()),
    error(tensor(3, 3), tensor(3, dtype="float64")),
    error(tensor(2, 2, dtype="int64"), tensor(2, dtype="int64")),
    error(tensor(2, 2, dtype="float16"), tensor(2, dtype="float16"))]
SOLVERS = [
    linalg("solve", *EQUATIONS, errors=[*MISFIT, error(literal(SINGULAR), tensor(2)),
        error(literal([[[1.0, 0.0], [0.0, 1.0]], SINGULAR]), tensor(2))], supports_out=True,
        domain=STEEP),
    linalg("solve_ex", *EQUATIONS, errors=[*MISFIT,
        error(literal(SINGULAR), tensor(2), check_errors=True)], domain=STEEP),
    linalg("solve_ex.singular", forward_sample(literal(SINGULAR), tensor(2)),
        forward_sample(literal([[[1.0, 0.0], [0.0, 1.0]], SINGULAR]), tensor(2, 2, 1)), dtypes=WIDE,
        supports_autograd=False),
    linalg("solve_triangular",
        *[sample(tensor(3, 3, domain=STEEP), tensor(3, 2), upper=upper, unitriangular=unit)
        for upper in (True, False) for unit in (True, False)],
        *[sample(tensor(3, 3, domain=STEEP), tensor(2, 3), upper=upper, left=False) for upper
        in (True, False)], sample(tensor(2, 3, 3, domain=STEEP), tensor(3, 2), upper=True),
        sample(tensor(3, 3, domain=STEEP), tensor(2, 3, 2), upper=False),
        sample(tensor(0, 0), tensor(0, 2), upper=True),
        sample(tensor(3, 3, domain=STEEP), tensor(3, 0), upper=True),
        forward_sample(literal([[0.0, 1.0], [0.0, 2.0]]), literal([[1.0], [1.0]]), upper=True),
        supports_out=True, errors=[error(tensor(3, 3), tensor(3), upper=True),
        error(tensor(3, 3), tensor(4, 2), upper=True), error(tensor(3, 3), tensor(3, 2)),
        error(tensor(3, 3), tensor(3, 2), upper=True, left=False),
        error(tensor(3), tensor(3, 1), upper=True), error(tensor(2, 3), tensor(2, 2), upper=True),
        error(tensor(2, 3, 3), tensor(4, 3, 2), upper=True),
        error(tensor(2, 2, dtype="int64"), tensor(2, 2, dtype="int64"), upper=True)]),
    row("triangular_solve",
        *[sample(tensor(3, 2), tensor(3, 3, domain=STEEP), upper, transpose, unit) for upper
        in (True, False) for transpose in (True, False) for unit in (True, False)],
        sample(tensor(2, 3, 2), tensor(3, 3, domain=STEEP)),
        sample(tensor(3, 2), tensor(2, 3, 3, domain=STEEP), upper=False),
        errors=[error(tensor(3), tensor(3, 3)), error(tensor(3, 1), tensor(3)),
        error(tensor(4, 2), tensor(3, 3)), error(tensor(3, 2), tensor(3, 4)),
        error(tensor(3, 2), tensor(3, 3, dtype="float64")), error(tensor(2, 3, 2), tensor(4, 3, 3)),
        error(tensor(2, 2, dtype="int64"), tensor(2, 2, dtype="int64"))]),
    linalg("inv_ex", sample(tensor(3, 3)), sample(tensor(2, 2, 2)), sample(tensor(0, 0)),
        errors=[*SQUARE, error(literal(SINGULAR), check_errors=True)], domain=STEEP),
    linalg("inv_ex.singular", forward_sample(literal(SINGULAR)),
        forward_sample(literal([[[2.0, 0.0], [0.0, 1.0]], SINGULAR])), dtypes=WIDE,
        supports_autograd=False),
    linalg("tensorinv", sample(tensor(3, 3), 1), sample(tensor(2, 3, 6)),
        sample(tensor(4, 2, 2), ind=1), skip_undefined_behavior=("empty",),
        errors=[error(tensor(3, 3), 0), error(tensor(3, 3), 3), error(tensor(4, 5), 1),
        error(literal(SINGULAR), 1), error(tensor(2, 2, dtype="int64"), 1)]),
    linalg("tensorsolve", sample(tensor(2, 3, 6), tensor(2, 3)), sample(tensor(3, 3), tensor(3)),
        sample(tensor(2, 4, 2), tensor(4), (0, 2)), sample(tensor(2, 4, 2), tensor(4), dims=(2, 0)),
        sample(tensor(), tensor()), skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(2, 3, 5), tensor(2, 3)), error(literal(SINGULAR), tensor(2)),
        error(tensor(2, 3, 6), tensor(2, 3), dims=(5,)), error(tensor(), tensor(1)),
        error(tensor(3, 3), tensor(3, dtype="float64"))]),
]

DEFICIENT = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0], [3.0, 1.0, 4.0]]
FULL = [[1.0, 2.0, 3.0], [2.0, 4.0, 7.0], [1.0, 0.0, 1.0], [3.0, 1.0, 4.0]]
DRIVERS = [{}, *({"driver": driver} for driver in ("gels", "gelsy", "gelsd", "gelss"))]
LEAST_SQUARES = [
    linalg("lstsq", *[sample(tensor(4, 3), tensor(4, 2), **kw) for kw in DRIVERS],
        *[sample(tensor(3, 4), tensor(3, 2), **kw) for kw in DRIVERS],
        *[sample(tensor(2, 4, 3), tensor(2, 4), **kw) for kw in DRIVERS],
        sample(tensor(3, 3), tensor(3, 1)), sample(tensor(4, 2), tensor(4)),
        sample(tensor(1, 4, 3), tensor(2, 4, 2), driver="gelsd"),
        sample(tensor(4, 3), tensor(4, 2), 1e-3),
        sample(tensor(4, 3), tensor(4, 2), rcond=-1.0, driver="gelsd"),
        forward_sample(tensor(4, 0), tensor(4, 2)),
        forward_sample(tensor(0, 3), tensor(0, 2), driver="gelsd"),
        skip_undefined_behavior=("empty",), errors=[error(tensor(4, 3), tensor(3, 2)),
        error(tensor(4), tensor(4)), error(tensor(4, 3), tensor(2, 4, 2)),
        error(tensor(4, 3), tensor()), error(tensor(2, 4, 3), tensor(4, 2)),
        error(tensor(4, 3), tensor(4, 2), driver="gelsx"),
        error(tensor(4, 3), tensor(4, 2, dtype="float64")),
        error(tensor(2, 2, dtype="int64"), tensor(2, 2, dtype="int64")),
        error(literal([[1.0, 0.0], [2.0, 0.0]]), tensor(2, 1), driver="gels"),
        error(literal([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [0.0, 0.0]]]), tensor(2, 2, 1),
        driver="gels")]),
    linalg("lstsq.deficient",
        *[forward_sample(literal(DEFICIENT), literal([[1.0], [2.0], [3.0], [5.0]]), driver=driver)
        for driver in ("gelsy", "gelsd", "gelss")],
        *[forward_sample(literal([DEFICIENT, FULL]), literal([[1.0, 2.0, 3.0, 5.0]] * 2),
        driver=driver) for driver in ("gelsy", "gelsd", "gelss")],
        dtypes=("float64",), supports_autograd=False, check_layouts=False,
        call=lambda torch, a, b, **kw: torch.linalg.lstsq(a, b, **kw)[:3]),
]

DETERMINANTS = [
    linalg("slogdet", sample(tensor(3, 3)), sample(tensor(2, 3, 3)), sample(tensor(1, 1)),
        forward_sample(tensor(0, 0)), forward_sample(literal(SINGULAR)), errors=SQUARE,
        domain=STEEP),
    row("slogdet", sample(tensor(3, 3)), sample(tensor(2, 2, 2)), errors=SQUARE, domain=STEEP),
    row("logdet", sample(tensor(3, 3, domain=STEEP)), sample(tensor(2, 2, 2, domain=STEEP)),
        forward_sample(literal(SINGULAR)), forward_sample(literal([[-1.0, 0.0], [0.0, 2.0]])),
        errors=SQUARE),
    linalg("diagonal", sample(tensor(3, 4)), sample(tensor(2, 3, 3), offset=1),
        sample(tensor(2, 3, 3), dim1=0, dim2=1), sample(tensor(3, 4), offset=-1), is_view=True,
        errors=[error(tensor(3)), error(tensor(3, 3), 1)]),
]

OPS = CHOLESKY + LU + LDL + SOLVERS + LEAST_SQUARES + DETERMINANTS
