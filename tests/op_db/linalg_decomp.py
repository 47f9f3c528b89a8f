"""Rows of decompositions: functions of the factors that do not depend on signs and phases."""

# fmt: off
from __future__ import annotations

import numpy as np

from tests.op_db._case import (
    NORMAL,
    WIDE,
    Domain,
    OpInfo,
    constant,
    cpu_only_error,
    error,
    forward_sample,
    literal,
    sample,
    subgradient_sample,
    tensor,
)

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
SQUARE = [error(tensor(2, 3)), error(tensor(3)), error(tensor(2, 2, dtype="int64"))]
ANY = [error(tensor(3)), error(tensor(2, 2, dtype="int64")), error(tensor(2, 2, dtype="float16"))]
NAN = cpu_only_error(literal([[float("nan"), 1.0], [0.0, 1.0]]))

ALL_NAN = cpu_only_error(literal([[float("nan")] * 3] * 3))


def row(name, *samples, **options):
    """A row of a function in torch.linalg, or of `call`."""
    call = lambda torch, *args, **kw: getattr(torch.linalg, name)(*args, **kw)
    options = {"call": call, "dtypes": WIDE, "domain": STEEP, "tolerances": LOOSE,
        "tolerance_reason": WHY, "skip_undefined_behavior": ("empty", "zero_dim")} | options
    return OpInfo("linalg." + name, *samples, **options)


def plain(name, *samples, **options):
    """A row of a function in torch."""
    return OpInfo(name, *samples,
        **({"dtypes": WIDE, "domain": STEEP, "tolerances": LOOSE, "tolerance_reason": WHY}
        | options))


def complex_row(name, function, *shapes):
    """A row of a function of complex matrices, made of two real ones: the results' parts."""
    def call(torch, x, y):
        results = function(torch, torch.complex(x, y))
        parts = results if isinstance(results, tuple) else (results,)
        return tuple(torch.view_as_real(z) if z.is_complex() else z for z in parts)
    return row(name, *(sample(tensor(*shape), tensor(*shape)) for shape in shapes), call=call)


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
    row("qr", sample(tensor(4, 3)), sample(tensor(2, 3, 3)), sample(tensor(3, 4)),
        sample(tensor(3, 4), "complete"), forward_sample(tensor(0, 3)),
        forward_sample(tensor(4, 3), mode="complete"), forward_sample(tensor(3, 3), mode="r"),
        errors=[*ANY, error(tensor(3, 3), "other")]),
    complex_row("qr.complex", lambda torch, x: of_factors(torch, torch.linalg.qr(x)), (4, 3),
        (2, 3, 3), (2, 4)),
    plain("qr", sample(tensor(4, 3)), sample(tensor(2, 3, 4), True),
        forward_sample(tensor(4, 3), some=False), errors=ANY),
    plain("geqrf", forward_sample(tensor(4, 3)), forward_sample(tensor(2, 2, 4)),
        forward_sample(tensor(3, 0)), errors=ANY),
    row("householder_product", sample(tensor(4, 3), tensor(3)),
        sample(tensor(2, 4, 3), tensor(2, 2)), sample(tensor(3, 3), tensor(3)),
        sample(tensor(3, 2), tensor(0)), supports_out=True, errors=[error(tensor(4, 2), tensor(3)),
        error(tensor(2, 4), tensor(2)), error(tensor(4), tensor(2)),
        error(tensor(2, 4, 2), tensor(2)), error(tensor(2, 4, 2), tensor(3, 2)),
        error(tensor(4, 2), tensor(2, dtype="float64")), error(tensor(4, 2), tensor())]),
    complex_row("householder_product.complex", lambda torch, x: torch.linalg.householder_product(
        x, x[..., 0, :].clone()), (4, 3)),
    plain("orgqr", sample(tensor(4, 3), tensor(3))),
    plain("ormqr", sample(tensor(4, 3), tensor(3), tensor(4, 2)),
        sample(tensor(4, 3), tensor(3), tensor(2, 4), left=False),
        sample(tensor(4, 2), tensor(2), tensor(4, 4), True, True),
        sample(tensor(2, 3, 2), tensor(2, 2), tensor(2, 4, 3), False, True),
        sample(tensor(3, 4), tensor(3), tensor(3, 2)), supports_out=True,
        errors=[error(tensor(4, 2), tensor(2), tensor(3, 4)),
        error(tensor(4, 2), tensor(2), tensor(4, 3), left=False),
        error(tensor(4, 2), tensor(3), tensor(4, 4)), error(tensor(4), tensor(3), tensor(4, 4)),
        error(tensor(4, 2), tensor(2), tensor(4)),
        error(tensor(2, 4, 2), tensor(2, 2), tensor(4, 3)),
        error(tensor(4, 2), tensor(2, dtype="float64"), tensor(4, 3)),
        error(tensor(4, 2), tensor(), tensor(4, 3))]),
    complex_row("ormqr.complex", lambda torch, x: torch.ormqr(x[:, :2], x[0, :2].clone(), x, True,
        True), (4, 3)),
]

SVD = [
    row("svd", sample(tensor(4, 3), full_matrices=False),
        sample(tensor(2, 3, 4), full_matrices=False), sample(tensor(3, 3)), sample(tensor(4, 2)),
        sample(tensor(2, 4)), forward_sample(tensor(0, 3)), call=rebuilt, errors=[*ANY, NAN]),
    complex_row("svd.complex", lambda torch, x: rebuilt(torch, x, full_matrices=False), (4, 3),
        (2, 3, 3), (2, 4)),
    row("svdvals", sample(tensor(4, 3)), sample(tensor(2, 3, 4)), sample(tensor(3, 3)),
        forward_sample(tensor(0, 3)), forward_sample(tensor(2, 3, 0)),
        subgradient_sample(literal([[2.0, 0.0], [0.0, 2.0]])), errors=[*ANY, NAN],
        supports_out=True),
    complex_row("svdvals.complex", lambda torch, x: torch.linalg.svdvals(x), (4, 3)),
    plain("svd", sample(tensor(4, 3)), sample(tensor(2, 3, 4), True),
        forward_sample(tensor(4, 3), compute_uv=False), errors=ANY,
        call=lambda torch, x, *args, **kw: of_old_svd(torch.svd(x, *args, **kw))),
    row("pinv", sample(tensor(4, 3)), sample(tensor(2, 3, 4)), sample(tensor(3, 3)),
        sample(tensor(3, 3), atol=0.1), sample(tensor(3, 3), 0.1), sample(tensor(3, 3), rcond=0.1),
        subgradient_sample(tensor(3, 3), rtol=0.5),
        subgradient_sample(literal([[1.0, 2.0], [2.0, 4.0]])),
        subgradient_sample(tensor(2, 3, 3), atol=literal([0.5, 1.5], requires_grad=False)),
        forward_sample(tensor(0, 3)), errors=[error(tensor(3)), NAN,
        error(tensor(2, 2, dtype="int64")), error(tensor(2, 2), 0.1, rtol=0.2)]),
    complex_row("pinv.complex", lambda torch, x: torch.linalg.pinv(x), (4, 3), (2, 3, 3)),
    row("pinv.hermitian", sample(tensor(3, 3)), sample(tensor(2, 3, 3)),
        subgradient_sample(tensor(3, 3), atol=1.5), errors=[error(tensor(2, 3))],
        call=lambda torch, x, **kw: torch.linalg.pinv(hermitian(x), hermitian=True, **kw)),
    plain("pinverse", sample(tensor(4, 3)), sample(tensor(3, 3), 0.1),
        sample(tensor(3, 3), rcond=0.1), errors=[error(tensor(3))]),
    row("matrix_rank", sample(tensor(4, 3)), sample(tensor(2, 3, 3)),
        sample(literal([[1.0, 2.0], [2.0, 4.0]])), sample(tensor(3, 3), 1.5),
        sample(tensor(3, 3), tol=1.5), sample(tensor(3, 3), atol=1.5),
        sample(tensor(3, 3), atol=1.5, rtol=0.1), sample(tensor(3, 3), rtol=0.5),
        sample(tensor(0, 3)), sample(tensor(2, 3, 0)),
        sample(tensor(2, 3, 3), literal([0.5, 1.5], requires_grad=False)),
        sample(tensor(3, 3), 1.5, True), supports_autograd=False, supports_out=True,
        errors=[error(tensor(3)), NAN, error(tensor(2, 2, dtype="int64")),
        error(tensor(2, 2), 0.1, rtol=0.2)]),
    row("matrix_rank.hermitian", sample(tensor(3, 3)), sample(tensor(2, 3, 3), rtol=0.5),
        supports_autograd=False, errors=[error(tensor(2, 3))],
        call=lambda torch, x, **kw: torch.linalg.matrix_rank(hermitian(x), hermitian=True, **kw)),
]


ORDERS = [1, -1, float("inf"), -float("inf"), "fro", "nuc"]
NORMS = [
    # PyTorch lets these write into `out=` what requires a gradient; here that is refused.
    row("cond.out", sample(tensor(3, 3)), sample(tensor(2, 3, 3), 1), sample(tensor(0, 0)),
        supports_autograd=False, supports_out=True,
        call=lambda torch, *args, **kw: torch.linalg.cond(*args, **kw)),
    row("pinv.out", sample(tensor(4, 3)), sample(tensor(0, 3)), supports_autograd=False,
        supports_out=True, call=lambda torch, *args, **kw: torch.linalg.pinv(*args, **kw)),
    plain("nuclear_norm.out", sample(tensor(4, 3)), sample(tensor(3, 2, 4), (0, 2)),
        supports_autograd=False, supports_out=True),
    row("cond", *(sample(tensor(3, 3), p) for p in (None, 2, -2)), sample(tensor(4, 3)),
        forward_sample(tensor(0, 0), 1), forward_sample(tensor(2, 0, 0)),
        forward_sample(tensor(0, 3, 3), "fro"),
        forward_sample(literal([[1.0, 1.0], [1.0, 1.0]]), 1),
        forward_sample(literal([[0.0, 0.0], [0.0, 0.0]]), -1),
        forward_sample(literal([[0.0, 0.0], [0.0, 0.0]]), "nuc"),
        forward_sample(literal([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]]), 1),
        errors=[error(tensor(3)), error(tensor(2, 3), 1), error(tensor(2, 3), "fro"),
        error(tensor(3, 3), 3), error(tensor(3, 3), 0), error(tensor(3, 3), "x"),
        error(tensor(2, 2, dtype="int64")), NAN]),
    row("cond.by_inverse", *(sample(tensor(3, 3), p) for p in ORDERS), sample(tensor(2, 3, 3), 1),
        torch_grad_orders=0, call=lambda torch, *args: torch.linalg.cond(*args)),
        # PyTorch writes over what it saved
    complex_row("cond.complex", lambda torch, x: torch.linalg.cond(x), (3, 3)),
    row("matrix_norm.spectral", *(sample(tensor(4, 3), p) for p in ("nuc", 2, -2)),
        sample(tensor(3, 2, 4), "nuc", (2, 0), True), sample(tensor(3, 2, 4), 2, (0, -1)),
        forward_sample(tensor(0, 3), 2), forward_sample(tensor(2, 0, 3), "nuc"),
        call=lambda torch, *args: torch.linalg.matrix_norm(*args), errors=[error(tensor(3), 2)]),
    plain("nuclear_norm", sample(tensor(4, 3)), sample(tensor(3, 2, 4), (0, 2)),
        sample(tensor(3, 2, 4), (1, 2), True), sample(tensor(4, 3), True),
        sample(tensor(4, 3), keepdim=True), sample(tensor(4, 3), dim=(1, 0)),
        errors=[error(tensor(3)), error(tensor(3, 4), 1), error(tensor(2, 2, dtype="int64")),
        error(tensor(3, 4), None)]),
    plain("frobenius_norm", sample(tensor(3, 4), 1), sample(tensor(2, 3, 4), (1, 2)),
        sample(tensor(2, 3, 4), (0, 2), True), sample(tensor(3, 4), dim=0),
        sample(tensor(3, 4), ()), supports_out=True, errors=[error(tensor(3, 4)),
        error(tensor(2, 3, 4), (0, 1, 2)), error(tensor(2, 2, dtype="int64"), 1)]),
]

EIGEN = [
    row("eigh", sample(tensor(3, 3)), sample(tensor(2, 4, 4)), sample(tensor(3, 3), "U"),
        sample(tensor(1, 1)), forward_sample(tensor(0, 0)),
        call=lambda torch, x, *args: of_eigh(torch, torch.linalg.eigh(hermitian(x), *args)),
        errors=[*SQUARE[:2], ALL_NAN, error(tensor(2, 2), "x")]),
    # As PyTorch's, the gradient is that of a Hermitian matrix, whichever triangle is read.
    row("eigh.of_a_triangle", subgradient_sample(tensor(3, 3)),
        subgradient_sample(tensor(3, 3), UPLO="u"), call=lambda torch, x, **kw: of_eigh(torch,
        torch.linalg.eigh(hermitian(x).tril() if not kw else hermitian(x).triu(), **kw))),
    complex_row("eigh.complex", lambda torch, x: of_eigh(torch, torch.linalg.eigh(hermitian(x))),
        (3, 3), (2, 2, 2)),
    row("eigvalsh", sample(tensor(3, 3)), sample(tensor(2, 4, 4)), sample(tensor(3, 3), "U"),
        forward_sample(tensor(0, 0)), subgradient_sample(literal([[2.0, 0.0], [0.0, 2.0]])),
        errors=[*SQUARE[:2], ALL_NAN, error(tensor(2, 2), "UU")],
        call=lambda torch, x, *args: torch.linalg.eigvalsh(hermitian(x), *args)),
    complex_row("eigvalsh.complex", lambda torch, x: torch.linalg.eigvalsh(hermitian(x), "U"),
        (3, 3)),
    row("eig", sample(tensor(3, 3)), sample(tensor(2, 4, 4)), sample(tensor(1, 1)),
        forward_sample(tensor(0, 0)), call=ordered, errors=[*SQUARE, NAN]),
    row("eig.pairs", sample(literal([[1.0, -2.0, 0.1], [1.5, 0.5, 0.3], [0.2, 0.1, 4.0]])),
        call=ordered),
    complex_row("eig.complex", lambda torch, x: ordered(torch, x), (3, 3)),
    row("eigvals", sample(tensor(3, 3)), sample(tensor(2, 4, 4)), forward_sample(tensor(0, 0)),
        call=eigenvalue_sums, errors=SQUARE),
    complex_row("eigvals.complex", lambda torch, x: eigenvalue_sums(torch, x), (3, 3)),
]

def pairs(torch, x, *args, **kw):
    """A few eigenpairs, found as well as the dtype allows."""
    tol = 1e-14 if x.dtype == torch.float64 else 1e-6
    values, vectors = torch.lobpcg(hermitian(x), *args, tol=tol, niter=60, **kw)
    return values, vectors.abs()


PARTIAL_DECOMPOSITIONS = [
    plain("lobpcg", sample(tensor(6, 6), 2), sample(tensor(6, 6), 2, largest=False),
        sample(tensor(2, 3, 3), k=1), sample(tensor(4, 4)),
        sample(tensor(9, 9), 2, X=constant(9, 3, domain=NORMAL), largest=True),
        sample(tensor(6, 6), k=2, n=1), forward_sample(tensor(0, 3, 3), 1), domain=DEFINITE,
        call=pairs, check_layouts=False, skip_undefined_behavior=("empty", "zero_dim"),
        tolerances={"float64": (1e-8, 1e-9), "float32": (2e-3, 2e-3)}, errors=[error(tensor(2, 3)),
        error(tensor(6, 6), 3), error(tensor(2, 2)), error(tensor(9, 9), X=tensor(8, 2))]),
    plain("svd_lowrank", sample(tensor(4, 3), 3), sample(tensor(2, 3, 4), q=3),
        sample(tensor(4, 3), 3, M=tensor(3)), forward_sample(tensor(4, 3)),
        forward_sample(tensor(2, 3, 4), q=None, niter=None),
        call=lambda torch, *args, **kw: product(torch.svd_lowrank(*args, **kw)),
        check_layouts=False, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(3, 3, dtype="int64"), 2), error(tensor(4, 3), -1)]),
    plain("pca_lowrank", sample(tensor(5, 3)), sample(tensor(2, 5, 3), q=3),
        sample(tensor(5, 3), center=False, niter=1),
        call=lambda torch, *args, **kw: product(torch.pca_lowrank(*args, **kw)),
        check_layouts=False, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(5, 3), 4), error(tensor(5, 3), -1), error(tensor(5, 3), niter=-1),
        error(tensor(3, 3, dtype="int64"))]),
]


def product(result):
    """Of all factors of full rank: a function that needs every one."""
    u, s, v = result
    return s, (u * (s * s).unsqueeze(-2)) @ v.mH


EXPONENTIALS = [
    # PyTorch reads the coefficients of two-byte floats wrongly: exp of the unit matrix is -20896.
    plain("matrix_exp", sample(tensor(3, 3)), sample(tensor(2, 2, 2)),
        sample(literal([[0.0, 30.0], [0.0, 0.0]])), sample(tensor(1, 1)),
        sample(literal([[-20.0, 3.0], [1.0, -9.0]])), forward_sample(tensor(0, 0)),
        forward_sample(tensor(2, 0, 0)), forward_sample(literal([[float("nan"), 0.0], [0.0, 1.0]])),
        errors=SQUARE[:2], skip_undefined_behavior=("dtypes",)),
    row("matrix_exp", sample(tensor(4, 4)), sample(tensor(2, 3, 3)), errors=SQUARE,
        skip_undefined_behavior=("empty", "zero_dim", "dtypes")),
    complex_row("matrix_exp.complex", lambda torch, x: torch.linalg.matrix_exp(x), (3, 3)),
]

REMOVED = [OpInfo(name, call=lambda torch, x, name=name: getattr(torch, name)(x),
    errors=[error(tensor(2, 2))]) for name in ("eig", "symeig", "matrix_rank")]

OPS = QR + SVD + NORMS + EIGEN + PARTIAL_DECOMPOSITIONS + EXPONENTIALS + REMOVED
