"""Rows of factorizations of matrices, and of systems of equations that are solved with them."""

# fmt: off
from __future__ import annotations

import numpy as np

from tests.op_db._case import COMPLEX, WIDE, Domain, E, Forward, Op, S, T, V

# Equal rows would make a matrix singular.
REGULAR = Domain(lambda rng, shape: rng.standard_normal(shape), distinct=True)
# Far from singular, with pivots that small steps do not change.
STEEP = Domain(lambda rng, shape: rng.standard_normal(shape) + (3 * np.eye(*shape[-2:])
    if len(shape) > 1 else 0), distinct=True)
LOOSE = {"float32": (2e-4, 2e-4), "complex64": (2e-4, 2e-4)}
WHY = "inverses of drawn matrices are not well conditioned"
SQUARE = [E(T(2, 3)), E(T(3)), E(T(2, 2, dtype="int64")), E(T(2, 2, dtype="float16"))]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


def row(name, *samples, **options):
    """A row of a function of matrices."""
    usual = {"dtypes": (*WIDE, *COMPLEX), "of": REGULAR, "tol": LOOSE, "why": WHY, "order3": True}
    options = usual | options
    return Op(name, *samples, **options)


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
    *(linalg(name, S(T(3, 3)), S(T(2, 3, 3)), S(T(4, 4), upper=True), S(T(1, 1)), S(T(0, 0)),
        errors=SQUARE, out=name == "cholesky", call=lambda torch, x, name=name, **kw:
        getattr(torch.linalg, name)(definite(torch, x), **kw))
        for name in ("cholesky", "cholesky_ex")),
    linalg("cholesky_ex.failing", Forward(V([[-1.0]])), Forward(V(SINGULAR)),
        Forward(V([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])), dtypes=WIDE, grad=False,
        call=lambda torch, x: torch.linalg.cholesky_ex(x).info,
        errors=[E(T(2, 3)), E(T(3))]),
    row("cholesky", S(T(3, 3)), S(T(2, 3, 3)), S(T(4, 4), True), errors=SQUARE, out=True,
        accidents=("empty",),  # any shape without elements passes
        call=lambda torch, x, *args, **kw: torch.cholesky(definite(torch, x), *args, **kw)),
    row("cholesky_solve", S(T(3, 2), T(3, 3)), S(T(2, 3, 2), T(3, 3), True),
        S(T(3, 2), T(2, 3, 3)), S(T(3, 0), T(3, 3)), out=True,
        errors=[E(T(3), T(3, 3)), E(T(3, 2), T(3)), E(T(4, 2), T(3, 3)), E(T(3, 2), T(3, 4)),
            E(T(3, 2), T(3, 3, dtype="float64")), E(T(3, 2, dtype="int64"), T(3, 3, dtype="int64")),
            E(T(2, 3, 2), T(4, 3, 3))],
        call=lambda torch, b, x, upper=False, **kw:
            torch.cholesky_solve(b, factor(torch, x, upper), upper, **kw)),
    row("cholesky_inverse", S(T(3, 3)), S(T(2, 3, 3)), S(T(3, 3), True), S(T(0, 0)), out=True,
        errors=[E(T(2, 3)), E(T(3)), E(V([[1.0, 0.0], [0.0, 0.0]]), False, False),
            E(T(2, 2, dtype="int64"))],
        call=lambda torch, x, upper=False, shift=True, **kw:
            torch.cholesky_inverse(factor(torch, x, upper) if shift else x, upper, **kw)),
]

LU = [
    *(linalg(name, S(T(3, 3)), S(T(2, 3, 4)), S(T(4, 3)), S(T(2, 1, 4, 4)), S(T(0, 3)), S(T(0, 0)),
        errors=[E(T(3)), E(T(2, 2, dtype="int64")), E(T(2, 2), pivot=False)])
        for name in ("lu", "lu_factor", "lu_factor_ex")),
    linalg("lu_factor_ex.singular", Forward(V(SINGULAR)), Forward(V([[0.0, 1.0], [0.0, 0.0]])),
        Forward(V([[[0.0, 2.0], [2.0, 0.0]], SINGULAR])), dtypes=WIDE, grad=False,
        errors=[E(V(SINGULAR), check_errors=True)],
        call=lambda torch, x, **kw: torch.linalg.lu_factor_ex(x, **kw)),
    linalg("lu_factor.singular", S(T(1, 1)), errors=[E(V(SINGULAR)), E(V([SINGULAR, SINGULAR]))]),
    row("lu", S(T(3, 3)), S(T(2, 3, 4)), S(T(4, 3), True, True), S(T(3, 3), get_infos=True),
        errors=[E(T(3)), E(T(2, 2, dtype="int64")), E(T(2, 2), False)]),
    row("lu_unpack", S(T(3, 3), V([3, 2, 3], "int32")), S(T(2, 2, 3), V([[2, 2], [1, 2]], "int32")),
        S(T(3, 2), V([3, 3], "int32")), Forward(T(3, 3), V([3, 2, 3], "int32"), False),
        S(T(3, 3), V([3, 2, 3], "int32"), unpack_pivots=False), dtypes=(*WIDE, *COMPLEX, "float16"),
        accidents=("empty", "zero_dim", "resized"),  # PyTorch reads pivots beyond their end
        errors=[E(T(3), V([1, 2, 3], "int32")), E(T(2, 2), V([1, 2], "int64")),
            E(T(2, 2), V([1, 3], "int32")), E(T(2, 2), V([0, 2], "int32"))]),
    linalg("lu_solve", *[S(T(3, 3, of=STEEP), V([3, 2, 3], "int32"), T(*shape), **kw)
        for shape in ((3, 2), (2, 3, 2), (3, 3)) for kw in ({}, {"adjoint": True})],
        S(T(3, 3, of=STEEP), V([3, 2, 3], "int32"), T(2, 3), left=False),
        S(T(3, 3, of=STEEP), V([3, 2, 3], "int32"), T(2, 3), left=False, adjoint=True),
        S(T(2, 3, 3, of=STEEP), V([[1, 3, 3], [2, 2, 3]], "int32"), T(3, 1)), out=True,
        accidents=("empty", "zero_dim"),
        errors=[E(T(3, 3), V([1, 2, 3], "int32"), T(3)), E(T(3, 3), V([1, 2, 3], "int32"), T(4, 2)),
            E(T(3, 3), V([1, 2, 3], "int64"), T(3, 2)), E(T(3, 2), V([1, 2], "int32"), T(3, 2)),
            E(T(3, 3), V([1, 2], "int32"), T(3, 2)), E(T(3, 3), V([0, 2, 3], "int32"), T(3, 2)),
            E(T(2, 3, 3), V([1, 2, 3], "int32"), T(2, 3, 2)),
            E(T(3, 3), V([1, 2, 4], "int32"), T(3, 2)),
            E(T(3, 3), V([1, 2, 3], "int32"), T(3, 2, dtype="float64"))]),
    row("lu_solve", S(T(3, 2), T(3, 3, of=STEEP), V([3, 2, 3], "int32")),
        S(T(2, 3, 2), T(3, 3, of=STEEP), V([3, 2, 3], "int32")), out=True,
        accidents=("empty", "zero_dim"),
        errors=[E(T(3), T(3, 3), V([1, 2, 3], "int32")), E(T(4, 2), T(3, 3),
            V([1, 2, 3], "int32"))]),
]

PIVOTS = V([-2, -2, 3], "int32")
LDL = [
    *(linalg(name, Forward(T(3, 3)), Forward(T(2, 4, 4)), Forward(T(4, 4), hermitian=True),
        Forward(T(2, 6, 6)), Forward(T(0, 0)),
        Forward(V([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])), grad=False, errors=SQUARE)
        for name in ("ldl_factor", "ldl_factor_ex")),
    linalg("ldl_factor_ex.singular", Forward(V(SINGULAR)), Forward(V([[0.0, 0.0], [0.0, 0.0]])),
        dtypes=WIDE, grad=False, errors=[E(V(SINGULAR), check_errors=True)],
        call=lambda torch, x, **kw: torch.linalg.ldl_factor_ex(x, **kw)),
    linalg("ldl_solve", Forward(T(3, 3), V([1, 3, 3], "int32"), T(3, 2)),
        Forward(T(3, 3), PIVOTS, T(3, 1)),
        Forward(T(2, 3, 3), V([[1, -3, -3], [3, 2, 3]], "int32"), T(3, 1)), grad=False, out=True,
        accidents=("empty", "zero_dim"),
        errors=[E(T(3, 3), PIVOTS, T(3)), E(T(3, 3), PIVOTS, T(4, 2)), E(T(3, 2), PIVOTS, T(3, 2)),
            E(T(3, 3), V([1, 2], "int32"), T(3, 2)), E(T(3, 3), V([1.0, 2.0, 3.0]), T(3, 2)),
            E(T(3, 3), PIVOTS, T(3, 2, dtype="float64"))]),
    linalg("ldl_solve.hermitian", Forward(T(3, 3), T(3, 2)), Forward(T(2, 5, 5), T(2, 5, 2)),
        grad=False, accidents=("empty", "resized"), call=lambda torch, x, b: torch.linalg.ldl_solve(
            *torch.linalg.ldl_factor(x, hermitian=True), b, hermitian=True)),
]

EQUATIONS = [S(T(3, 3), T(3)), S(T(3, 3), T(3, 2)), S(T(2, 3, 3), T(2, 3, 2)),
    S(T(2, 3, 3), T(2, 3)), S(T(2, 3, 3), T(3, 2)), S(T(3, 3), T(2, 3, 2)), S(T(2, 3, 3), T(3)),
    S(T(3, 3), T(2, 3), left=False), S(T(2, 1, 3, 3), T(2, 2, 3), left=False), S(T(0, 0), T(0, 2)),
    S(T(3, 3), T(3, 0))]
MISFIT = [E(T(3, 3), T(2)), E(T(2, 3), T(2)), E(T(3, 3), T(4, 2)), E(T(3), T(3)),
    E(T(3, 3), T(3), left=False), E(T(1, 1), T(3), left=False), E(T(2, 3, 3), T(4, 3, 2)),
    E(T(3, 3), T()), E(T(3, 3), T(3, dtype="float64")),
    E(T(2, 2, dtype="int64"), T(2, dtype="int64")), E(T(2, 2, dtype="float16"), T(2,
        dtype="float16"))]
SOLVERS = [
    linalg("solve", *EQUATIONS, errors=[*MISFIT, E(V(SINGULAR), T(2)),
        E(V([[[1.0, 0.0], [0.0, 1.0]], SINGULAR]), T(2))], out=True, of=STEEP),
    linalg("solve_ex", *EQUATIONS, errors=[*MISFIT, E(V(SINGULAR), T(2), check_errors=True)],
        of=STEEP),
    linalg("solve_ex.singular", Forward(V(SINGULAR), T(2)),
        Forward(V([[[1.0, 0.0], [0.0, 1.0]], SINGULAR]), T(2, 2, 1)), dtypes=WIDE, grad=False),
    linalg("solve_triangular", *[S(T(3, 3, of=STEEP), T(3, 2), upper=upper, unitriangular=unit)
        for upper in (True, False) for unit in (True, False)],
        *[S(T(3, 3, of=STEEP), T(2, 3), upper=upper, left=False) for upper in (True, False)],
        S(T(2, 3, 3, of=STEEP), T(3, 2), upper=True), S(T(3, 3, of=STEEP), T(2, 3, 2), upper=False),
        S(T(0, 0), T(0, 2), upper=True), S(T(3, 3, of=STEEP), T(3, 0), upper=True),
        Forward(V([[0.0, 1.0], [0.0, 2.0]]), V([[1.0], [1.0]]), upper=True), out=True,
        errors=[E(T(3, 3), T(3), upper=True), E(T(3, 3), T(4, 2), upper=True), E(T(3, 3), T(3, 2)),
            E(T(3, 3), T(3, 2), upper=True, left=False), E(T(3), T(3, 1), upper=True),
            E(T(2, 3), T(2, 2), upper=True), E(T(2, 3, 3), T(4, 3, 2), upper=True),
            E(T(2, 2, dtype="int64"), T(2, 2, dtype="int64"), upper=True)]),
    row("triangular_solve", *[S(T(3, 2), T(3, 3, of=STEEP), upper, transpose, unit)
        for upper in (True, False) for transpose in (True, False) for unit in (True, False)],
        S(T(2, 3, 2), T(3, 3, of=STEEP)), S(T(3, 2), T(2, 3, 3, of=STEEP), upper=False),
        errors=[E(T(3), T(3, 3)), E(T(3, 1), T(3)), E(T(4, 2), T(3, 3)), E(T(3, 2), T(3, 4)),
            E(T(3, 2), T(3, 3, dtype="float64")), E(T(2, 3, 2), T(4, 3, 3)),
            E(T(2, 2, dtype="int64"), T(2, 2, dtype="int64"))]),
    linalg("inv_ex", S(T(3, 3)), S(T(2, 2, 2)), S(T(0, 0)), errors=[*SQUARE,
        E(V(SINGULAR), check_errors=True)], of=STEEP),
    linalg("inv_ex.singular", Forward(V(SINGULAR)), Forward(V([[[2.0, 0.0], [0.0, 1.0]],
        SINGULAR])), dtypes=WIDE, grad=False),
    linalg("tensorinv", S(T(3, 3), 1), S(T(2, 3, 6)), S(T(4, 2, 2), ind=1),
        accidents=("empty",), errors=[E(T(3, 3), 0), E(T(3, 3), 3), E(T(4, 5), 1),
            E(V(SINGULAR), 1), E(T(2, 2, dtype="int64"), 1)]),
    linalg("tensorsolve", S(T(2, 3, 6), T(2, 3)), S(T(3, 3), T(3)), S(T(2, 4, 2), T(4), (0, 2)),
        S(T(2, 4, 2), T(4), dims=(2, 0)), S(T(), T()), accidents=("empty", "zero_dim"),
        errors=[E(T(2, 3, 5), T(2, 3)), E(V(SINGULAR), T(2)), E(T(2, 3, 6), T(2, 3), dims=(5,)),
            E(T(), T(1)), E(T(3, 3), T(3, dtype="float64"))]),
]

DRIVERS = [{}, *({"driver": driver} for driver in ("gels", "gelsy", "gelsd", "gelss"))]
LEAST_SQUARES = [
    linalg("lstsq", *[S(T(4, 3), T(4, 2), **kw) for kw in DRIVERS],
        *[S(T(3, 4), T(3, 2), **kw) for kw in DRIVERS],
        *[S(T(2, 4, 3), T(2, 4), **kw) for kw in DRIVERS],
        S(T(3, 3), T(3, 1)), S(T(4, 2), T(4)), S(T(1, 4, 3), T(2, 4, 2), driver="gelsd"),
        S(T(4, 3), T(4, 2), 1e-3), S(T(4, 3), T(4, 2), rcond=-1.0, driver="gelsd"),
        Forward(T(4, 0), T(4, 2)), Forward(T(0, 3), T(0, 2), driver="gelsd"),
        accidents=("empty",),
        errors=[E(T(4, 3), T(3, 2)), E(T(4), T(4)), E(T(4, 3), T(2, 4, 2)), E(T(4, 3), T()),
            E(T(2, 4, 3), T(4, 2)), E(T(4, 3), T(4, 2), driver="gelsx"),
            E(T(4, 3), T(4, 2, dtype="float64")), E(T(2, 2, dtype="int64"),
            T(2, 2, dtype="int64"))]),
    linalg("lstsq.deficient", *[Forward(V([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0],
        [3.0, 1.0, 4.0]]), V([[1.0], [2.0], [3.0], [5.0]]), driver=driver)
        for driver in ("gelsy", "gelsd")], dtypes=("float64",), grad=False, layout=False,
        call=lambda torch, a, b, **kw: torch.linalg.lstsq(a, b, **kw)[:3]),
]

DETERMINANTS = [
    linalg("slogdet", S(T(3, 3)), S(T(2, 3, 3)), S(T(1, 1)), Forward(T(0, 0)),
        Forward(V(SINGULAR)), errors=SQUARE, of=STEEP),
    row("slogdet", S(T(3, 3)), S(T(2, 2, 2)), errors=SQUARE, of=STEEP),
    row("logdet", S(T(3, 3, of=STEEP)), S(T(2, 2, 2, of=STEEP)), Forward(V(SINGULAR)),
        Forward(V([[-1.0, 0.0], [0.0, 2.0]])), errors=SQUARE),
    linalg("diagonal", S(T(3, 4)), S(T(2, 3, 3), offset=1), S(T(2, 3, 3), dim1=0, dim2=1),
        S(T(3, 4), offset=-1), view=True, errors=[E(T(3)), E(T(3, 3), 1)]),
]

OPS = CHOLESKY + LU + LDL + SOLVERS + LEAST_SQUARES + DETERMINANTS
