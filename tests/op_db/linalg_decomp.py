"""Rows of decompositions: functions of the factors that do not depend on signs and phases."""

# fmt: off
from __future__ import annotations

import numpy as np

from tests.op_db._case import NORMAL, WIDE, C, Domain, E, Forward, Kink, Op, S, T, Unread, V

LOOSE = {"float32": (2e-4, 2e-4), "float64": (1e-8, 1e-9)}
WHY = "gaps between values are divided by, and inverses of drawn matrices are badly conditioned"


def _definite(rng, shape):
    """Symmetric matrices with positive eigenvalues that keep their distance."""
    x = rng.standard_normal(shape)
    if shape[-1] != shape[-2]:
        return x
    return 0.3 * x @ x.swapaxes(-1, -2) + np.diag(np.arange(1.0, shape[-1] + 1))


def _steep(rng, shape):
    """Matrices whose singular values and eigenvalues keep their distance."""
    x = 0.3 * rng.standard_normal(shape)
    k = min(shape[-2:]) if len(shape) > 1 else 0
    if k:
        x[..., range(k), range(k)] += np.arange(1.0, k + 1) * (-1.0) ** np.arange(k)
    return x


DEFINITE = Domain(_definite, distinct=True)
STEEP = Domain(_steep, distinct=True)
SQUARE = [E(T(2, 3)), E(T(3)), E(T(2, 2, dtype="int64"))]
ANY = [E(T(3)), E(T(2, 2, dtype="int64")), E(T(2, 2, dtype="float16"))]
NAN = Unread(V([[float("nan"), 1.0], [0.0, 1.0]]))

ALL_NAN = Unread(V([[float("nan")] * 3] * 3))


def row(name, *samples, **options):
    """A row of a function in torch.linalg, or of `call`."""
    call = lambda torch, *args, **kw: getattr(torch.linalg, name)(*args, **kw)
    options = {"call": call, "dtypes": WIDE, "of": STEEP, "tol": LOOSE, "why": WHY,
        "accidents": ("empty", "zero_dim")} | options
    return Op("linalg." + name, *samples, **options)


def plain(name, *samples, **options):
    """A row of a function in torch."""
    return Op(name, *samples, **({"dtypes": WIDE, "of": STEEP, "tol": LOOSE, "why": WHY} | options))


def complex_row(name, function, *shapes):
    """A row of a function of complex matrices, made of two real ones: the results' parts."""
    def call(torch, x, y):
        results = function(torch, torch.complex(x, y))
        parts = results if isinstance(results, tuple) else (results,)
        return tuple(torch.view_as_real(z) if z.is_complex() else z for z in parts)
    return row(name, *(S(T(*shape), T(*shape)) for shape in shapes), call=call)


def hermitian(x):
    return (x + x.mH) / 2


def rebuilt(torch, x, **options):
    """Singular values, and a function of the matrix that needs the vectors."""
    u, s, vh = torch.linalg.svd(x, **options)
    k = s.shape[-1]
    return s, (u[..., :k] * (s * s).unsqueeze(-2)) @ vh[..., :k, :], u[..., :k].abs()


def of_factors(torch, result):
    """Q and R with a positive diagonal of R."""
    q, r = result
    signs = torch.sgn(r.diagonal(dim1=-2, dim2=-1)).detach()
    k = signs.shape[-1]
    return q[..., :k] * signs.unsqueeze(-2), r[..., :k, :] * signs.unsqueeze(-1).conj()


def of_eigh(torch, result):
    values, vectors = result
    return values, vectors.abs(), (vectors * values.exp().unsqueeze(-2)) @ vectors.mH


def ordered(torch, x):
    """Eigenvalues in an order, and the absolute vectors."""
    values, vectors = torch.linalg.eig(x)
    order = torch.argsort((values.real + 0.1 * values.imag).detach())
    return (values.real.gather(-1, order), values.imag.gather(-1, order).abs(),
        vectors.abs().gather(-1, order.unsqueeze(-2).expand(vectors.shape)))


def eigenvalue_sums(torch, x):
    values = torch.linalg.eigvals(x)
    return torch.view_as_real((values ** 2).sum(-1)), values.abs().sum(-1)


def of_old_svd(result):
    """What does not depend on the vectors' signs."""
    u, s, v = result
    return u.abs(), s, v.abs()


QR = [
    row("qr", S(T(4, 3)), S(T(2, 3, 3)), S(T(3, 4)), S(T(3, 4), "complete"), Forward(T(0, 3)),
        Forward(T(4, 3), mode="complete"), Forward(T(3, 3), mode="r"), errors=[*ANY,
        E(T(3, 3), "other")]),
    complex_row("qr.complex", lambda torch, x: of_factors(torch, torch.linalg.qr(x)), (4, 3),
        (2, 3, 3), (2, 4)),
    plain("qr", S(T(4, 3)), S(T(2, 3, 4), True), Forward(T(4, 3), some=False), errors=ANY),
    plain("geqrf", Forward(T(4, 3)), Forward(T(2, 2, 4)), Forward(T(3, 0)), errors=ANY),
    row("householder_product", S(T(4, 3), T(3)), S(T(2, 4, 3), T(2, 2)), S(T(3, 3), T(3)),
        S(T(3, 2), T(0)), out=True,
        errors=[E(T(4, 2), T(3)), E(T(2, 4), T(2)), E(T(4), T(2)), E(T(2, 4, 2), T(2)),
        E(T(2, 4, 2), T(3, 2)), E(T(4, 2), T(2, dtype="float64")), E(T(4, 2), T())]),
    complex_row("householder_product.complex", lambda torch, x: torch.linalg.householder_product(
        x, x[..., 0, :].clone()), (4, 3)),
    plain("orgqr", S(T(4, 3), T(3))),
    plain("ormqr", S(T(4, 3), T(3), T(4, 2)), S(T(4, 3), T(3), T(2, 4), left=False),
        S(T(4, 2), T(2), T(4, 4), True, True), S(T(2, 3, 2), T(2, 2), T(2, 4, 3), False, True),
        S(T(3, 4), T(3), T(3, 2)), out=True, errors=[E(T(4, 2), T(2), T(3, 4)),
        E(T(4, 2), T(2), T(4, 3), left=False), E(T(4, 2), T(3), T(4, 4)), E(T(4), T(3), T(4, 4)),
        E(T(4, 2), T(2), T(4)), E(T(2, 4, 2), T(2, 2), T(4, 3)),
        E(T(4, 2), T(2, dtype="float64"), T(4, 3)), E(T(4, 2), T(), T(4, 3))]),
    complex_row("ormqr.complex", lambda torch, x: torch.ormqr(x[:, :2], x[0, :2].clone(), x, True,
        True), (4, 3)),
]

SVD = [
    row("svd", S(T(4, 3), full_matrices=False), S(T(2, 3, 4), full_matrices=False), S(T(3, 3)),
        S(T(4, 2)), S(T(2, 4)), Forward(T(0, 3)), call=rebuilt, errors=[*ANY, NAN]),
    complex_row("svd.complex", lambda torch, x: rebuilt(torch, x, full_matrices=False), (4, 3),
        (2, 3, 3), (2, 4)),
    row("svdvals", S(T(4, 3)), S(T(2, 3, 4)), S(T(3, 3)), Forward(T(0, 3)), Forward(T(2, 3, 0)),
        Kink(V([[2.0, 0.0], [0.0, 2.0]])), errors=[*ANY, NAN], out=True),
    complex_row("svdvals.complex", lambda torch, x: torch.linalg.svdvals(x), (4, 3)),
    plain("svd", S(T(4, 3)), S(T(2, 3, 4), True), Forward(T(4, 3), compute_uv=False), errors=ANY,
        call=lambda torch, x, *args, **kw: of_old_svd(torch.svd(x, *args, **kw))),
    row("pinv", S(T(4, 3)), S(T(2, 3, 4)), S(T(3, 3)), S(T(3, 3), atol=0.1), S(T(3, 3), 0.1),
        S(T(3, 3), rcond=0.1), Kink(T(3, 3), rtol=0.5), Kink(V([[1.0, 2.0], [2.0, 4.0]])),
        Kink(T(2, 3, 3), atol=V([0.5, 1.5], grad=False)), Forward(T(0, 3)),
        errors=[E(T(3)), NAN, E(T(2, 2, dtype="int64")), E(T(2, 2), 0.1, rtol=0.2)]),
    complex_row("pinv.complex", lambda torch, x: torch.linalg.pinv(x), (4, 3), (2, 3, 3)),
    row("pinv.hermitian", S(T(3, 3)), S(T(2, 3, 3)), Kink(T(3, 3), atol=1.5), errors=[E(T(2, 3))],
        call=lambda torch, x, **kw: torch.linalg.pinv(hermitian(x), hermitian=True, **kw)),
    plain("pinverse", S(T(4, 3)), S(T(3, 3), 0.1), S(T(3, 3), rcond=0.1), errors=[E(T(3))]),
    row("matrix_rank", S(T(4, 3)), S(T(2, 3, 3)), S(V([[1.0, 2.0], [2.0, 4.0]])), S(T(3, 3), 1.5),
        S(T(3, 3), tol=1.5), S(T(3, 3), atol=1.5), S(T(3, 3), atol=1.5, rtol=0.1),
        S(T(3, 3), rtol=0.5), S(T(0, 3)), S(T(2, 3, 0)), S(T(2, 3, 3), V([0.5, 1.5], grad=False)),
        S(T(3, 3), 1.5, True), grad=False, out=True, errors=[E(T(3)), NAN,
        E(T(2, 2, dtype="int64")), E(T(2, 2), 0.1, rtol=0.2)]),
    row("matrix_rank.hermitian", S(T(3, 3)), S(T(2, 3, 3), rtol=0.5), grad=False,
        errors=[E(T(2, 3))],
        call=lambda torch, x, **kw: torch.linalg.matrix_rank(hermitian(x), hermitian=True, **kw)),
]


ORDERS = [1, -1, float("inf"), -float("inf"), "fro", "nuc"]
NORMS = [
    # PyTorch lets these write into `out=` what requires a gradient; here that is refused.
    row("cond.out", S(T(3, 3)), S(T(2, 3, 3), 1), S(T(0, 0)), grad=False, out=True,
        call=lambda torch, *args, **kw: torch.linalg.cond(*args, **kw)),
    row("pinv.out", S(T(4, 3)), S(T(0, 3)), grad=False, out=True,
        call=lambda torch, *args, **kw: torch.linalg.pinv(*args, **kw)),
    plain("nuclear_norm.out", S(T(4, 3)), S(T(3, 2, 4), (0, 2)), grad=False, out=True),
    row("cond", *(S(T(3, 3), p) for p in (None, 2, -2)), S(T(4, 3)), Forward(T(0, 0), 1),
        Forward(T(2, 0, 0)), Forward(T(0, 3, 3), "fro"), Forward(V([[1.0, 1.0], [1.0, 1.0]]), 1),
        Forward(V([[0.0, 0.0], [0.0, 0.0]]), -1), Forward(V([[0.0, 0.0], [0.0, 0.0]]), "nuc"),
        Forward(V([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]]), 1),
        errors=[E(T(3)), E(T(2, 3), 1), E(T(2, 3), "fro"), E(T(3, 3), 3), E(T(3, 3), 0),
        E(T(3, 3), "x"), E(T(2, 2, dtype="int64")), NAN]),
    row("cond.by_inverse", *(S(T(3, 3), p) for p in ORDERS), S(T(2, 3, 3), 1), torch_orders=0,
        call=lambda torch, *args: torch.linalg.cond(*args)),  # PyTorch writes over what it saved
    complex_row("cond.complex", lambda torch, x: torch.linalg.cond(x), (3, 3)),
    row("matrix_norm.spectral", *(S(T(4, 3), p) for p in ("nuc", 2, -2)),
        S(T(3, 2, 4), "nuc", (2, 0), True), S(T(3, 2, 4), 2, (0, -1)), Forward(T(0, 3), 2),
        Forward(T(2, 0, 3), "nuc"), call=lambda torch, *args: torch.linalg.matrix_norm(*args),
        errors=[E(T(3), 2)]),
    plain("nuclear_norm", S(T(4, 3)), S(T(3, 2, 4), (0, 2)), S(T(3, 2, 4), (1, 2), True),
        S(T(4, 3), True), S(T(4, 3), keepdim=True), S(T(4, 3), dim=(1, 0)),
        errors=[E(T(3)), E(T(3, 4), 1), E(T(2, 2, dtype="int64")), E(T(3, 4), None)]),
    plain("frobenius_norm", S(T(3, 4), 1), S(T(2, 3, 4), (1, 2)), S(T(2, 3, 4), (0, 2), True),
        S(T(3, 4), dim=0), S(T(3, 4), ()), out=True, errors=[E(T(3, 4)), E(T(2, 3, 4), (0, 1, 2)),
        E(T(2, 2, dtype="int64"), 1)]),
]

EIGEN = [
    row("eigh", S(T(3, 3)), S(T(2, 4, 4)), S(T(3, 3), "U"), S(T(1, 1)), Forward(T(0, 0)),
        call=lambda torch, x, *args: of_eigh(torch, torch.linalg.eigh(hermitian(x), *args)),
        errors=[*SQUARE[:2], ALL_NAN, E(T(2, 2), "x")]),
    # As PyTorch's, the gradient is that of a Hermitian matrix, whichever triangle is read.
    row("eigh.of_a_triangle", Kink(T(3, 3)), Kink(T(3, 3), UPLO="u"),
        call=lambda torch, x, **kw: of_eigh(torch, torch.linalg.eigh(hermitian(x).tril() if not kw
            else hermitian(x).triu(), **kw))),
    complex_row("eigh.complex", lambda torch, x: of_eigh(torch, torch.linalg.eigh(hermitian(x))),
        (3, 3), (2, 2, 2)),
    row("eigvalsh", S(T(3, 3)), S(T(2, 4, 4)), S(T(3, 3), "U"), Forward(T(0, 0)),
        Kink(V([[2.0, 0.0], [0.0, 2.0]])), errors=[*SQUARE[:2], ALL_NAN, E(T(2, 2), "UU")],
        call=lambda torch, x, *args: torch.linalg.eigvalsh(hermitian(x), *args)),
    complex_row("eigvalsh.complex", lambda torch, x: torch.linalg.eigvalsh(hermitian(x), "U"),
        (3, 3)),
    row("eig", S(T(3, 3)), S(T(2, 4, 4)), S(T(1, 1)), Forward(T(0, 0)), call=ordered,
        errors=[*SQUARE, NAN]),
    row("eig.pairs", S(V([[1.0, -2.0, 0.1], [1.5, 0.5, 0.3], [0.2, 0.1, 4.0]])), call=ordered),
    complex_row("eig.complex", lambda torch, x: ordered(torch, x), (3, 3)),
    row("eigvals", S(T(3, 3)), S(T(2, 4, 4)), Forward(T(0, 0)), call=eigenvalue_sums,
        errors=SQUARE),
    complex_row("eigvals.complex", lambda torch, x: eigenvalue_sums(torch, x), (3, 3)),
]

def pairs(torch, x, *args, **kw):
    """A few eigenpairs, found as well as the dtype allows."""
    tol = 1e-14 if x.dtype == torch.float64 else 1e-6
    values, vectors = torch.lobpcg(hermitian(x), *args, tol=tol, niter=60, **kw)
    return values, vectors.abs()


FEW = [
    plain("lobpcg", S(T(6, 6), 2), S(T(6, 6), 2, largest=False), S(T(2, 3, 3), k=1), S(T(4, 4)),
        S(T(9, 9), 2, X=C(9, 3, of=NORMAL), largest=True), S(T(6, 6), k=2, n=1),
        Forward(T(0, 3, 3), 1), of=DEFINITE, call=pairs, layout=False,
        accidents=("empty", "zero_dim"), tol={"float64": (1e-8, 1e-9), "float32": (2e-3, 2e-3)},
        errors=[E(T(2, 3)), E(T(6, 6), 3), E(T(2, 2)), E(T(9, 9), X=T(8, 2))]),
    plain("svd_lowrank", S(T(4, 3), 3), S(T(2, 3, 4), q=3), S(T(4, 3), 3, M=T(3)),
        Forward(T(4, 3)), Forward(T(2, 3, 4), q=None, niter=None),
        call=lambda torch, *args, **kw: product(torch.svd_lowrank(*args, **kw)), layout=False,
        accidents=("empty", "zero_dim"), errors=[E(T(3, 3, dtype="int64"), 2), E(T(4, 3), -1)]),
    plain("pca_lowrank", S(T(5, 3)), S(T(2, 5, 3), q=3), S(T(5, 3), center=False, niter=1),
        call=lambda torch, *args, **kw: product(torch.pca_lowrank(*args, **kw)), layout=False,
        accidents=("empty", "zero_dim"), errors=[E(T(5, 3), 4), E(T(5, 3), -1),
        E(T(5, 3), niter=-1), E(T(3, 3, dtype="int64"))]),
]


def product(result):
    """Of all factors of full rank: a function that needs every one."""
    u, s, v = result
    return s, (u * (s * s).unsqueeze(-2)) @ v.mH


EXPONENTIALS = [
    # PyTorch reads the coefficients of two-byte floats wrongly: exp of the unit matrix is -20896.
    plain("matrix_exp", S(T(3, 3)), S(T(2, 2, 2)), S(V([[0.0, 30.0], [0.0, 0.0]])), S(T(1, 1)),
        S(V([[-20.0, 3.0], [1.0, -9.0]])), Forward(T(0, 0)), Forward(T(2, 0, 0)),
        Forward(V([[float("nan"), 0.0], [0.0, 1.0]])), errors=SQUARE[:2], accidents=("dtypes",)),
    row("matrix_exp", S(T(4, 4)), S(T(2, 3, 3)), errors=SQUARE,
        accidents=("empty", "zero_dim", "dtypes")),
    complex_row("matrix_exp.complex", lambda torch, x: torch.linalg.matrix_exp(x), (3, 3)),
]

REMOVED = [Op(name, call=lambda torch, x, name=name: getattr(torch, name)(x), errors=[E(T(2, 2))])
    for name in ("eig", "symeig", "matrix_rank")]

OPS = QR + SVD + NORMS + EIGEN + FEW + EXPONENTIALS + REMOVED
