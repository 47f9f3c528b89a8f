"""A few extreme eigenpairs of a large symmetric matrix, by iteration.

The method: A. V. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block
preconditioned conjugate gradient method", 2001. The basis is orthonormalised as in A.
Stathopoulos and K. Wu, "A block orthogonalization procedure with constant synchronization
requirements", 2002.
"""

from __future__ import annotations

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.linalg._matrices import adjoint
from tensorflow_lite_clone.ops.linalg.eigen import eigh
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.linalg.norms import vector_norm
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor


class Lobpcg(Op):
    """Eigenpairs that were found of x, as a function of x.

    The gradient is that of `Eigh` for some of the vectors, and needs all of them.
    """

    def forward(F, x, values, vectors, *, largest, plain):
        return F.copy(values), F.copy(vectors)

    def backward_x(F, g, x, out0, out1, *, largest, plain):
        if not plain:
            raise ValueError("lobpcg.backward does not support backward with B != I yet.")
        g_values, g_vectors = g
        values, basis = F.eigh(x)
        own = F.eye(x.shape[-1], out0.shape[-1], dtype=out0.dtype)
        own = F.flip(own, axis=0) if largest else own
        between = out0[..., None, :] - values[..., None] + own
        turn = F.matmul(adjoint(F, basis), g_vectors) * (1 - own) / between
        gx = F.matmul(F.matmul(basis, turn) + out1 * g_values[..., None, :], adjoint(F, out1))
        return (gx + adjoint(F, gx)) / 2


@public("torch")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues and their vectors of (..., m, m) matrices.

    `A` is real and symmetric; with a positive definite `B` they solve ``A x = B x e``. The vectors
    are the columns of an (..., m, k) matrix and fulfil ``x^T B x = 1``. The iteration starts with
    `X`, (..., m, n), or `n` random vectors, k by default, which is 1 by default and n at most.
    `iK` is a preconditioner, (m, m), close to the inverse of A. It ends when the residuals are
    below `tol`, the root of the dtype's epsilon by default, relatively, or after `niter`
    iterations, 1000 by default; a negative number sets no limit. AssertionError for matrices that
    are not square, ValueError for m < 3 n. The gradient, for `A` without `B`, costs a whole
    `linalg.eigh`.

    `method` and the parameters of orthogonalisation choose between forms of PyTorch's algorithm;
    here there is one. `tracker` is not supported: NotImplementedError.
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg: there is no tracker here")
    shape = A.shape
    if shape[-2] != shape[-1]:
        raise AssertionError(f"A must be square, got shape {shape}")
    if A.dtype.kind != "f" or A.dtype.itemsize < 4:
        raise RuntimeError(f"lobpcg: expected float32 or float64, got {A.dtype.short_name}")
    size = shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    count = X.shape[-1] if X is not None else (k if n is None else n)
    k = min(k, count)
    if X is not None and X.shape[-2] != size:
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(size, count)}")
    if size < 3 * count:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={size}) is smaller "
            f"than 3 x the number of requested eigenpairs (={count})"
        )
    limit = 1000 if niter is None else niter
    bound = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    up = largest is None or largest
    with no_grad():
        matrices = A.reshape(-1, size, size)
        starts = _starts(matrices, count) if X is None else X.reshape(-1, size, count)
        of_b = [B] * len(matrices) if B is None else B.expand(shape).reshape(-1, size, size)
        found = [
            _eigenpairs(*problem, iK, k, limit, bound, -1.0 if up else 1.0)
            for problem in zip(matrices, of_b, starts)
        ]
        none = [A.new_empty(0)]
        values = stack([pair[0] for pair in found] or none).reshape(*shape[:-2], k)
        vectors = stack([pair[1] for pair in found] or none).reshape(*shape[:-1], k)
    return apply(Lobpcg, A, values, vectors, largest=up, plain=B is None)


def _starts(matrices: Tensor, count: int) -> Tensor:
    return matrices.new_empty(*matrices.shape[:-1], count).normal_()


def _eigenpairs(
    a: Tensor,
    b: Tensor | None,
    x: Tensor,
    inverse: Tensor | None,
    k: int,
    limit: int,
    bound: float,
    sign: float,
) -> tuple[Tensor, Tensor]:
    """The `k` smallest eigenvalues of sign * a, with their sign as in a, and the vectors."""
    count = x.shape[-1]
    size_a = _size(a, x)
    size_b = 1.0 if b is None else _size(b, x)
    basis = x
    done = 0
    while True:
        # The best combinations of what the basis spans: the Rayleigh-Ritz procedure.
        weights = _whitening(basis, b)
        q = matmul(basis, weights)
        values, turns = eigh(matmul(q.mT, matmul(a, q)) * sign)
        values, turns = values[:count] * sign, turns[:, :count]
        x = matmul(q, turns)
        residual = matmul(a, x) - _times(b, x) * values
        sizes = vector_norm(x, 2, 0) * (size_a + values.abs() * size_b)
        errors = vector_norm(residual, 2, 0) / sizes
        if done == limit or errors[:k].max().item() < bound:
            return values[:k], x[:, :k]
        step = residual if inverse is None else matmul(inverse, residual)
        parts = [x, step]
        if done:
            parts.append(matmul(basis[:, count:], matmul(weights, turns)[count:]))
        basis = cat(parts, 1)
        done += 1


def _times(b: Tensor | None, x: Tensor) -> Tensor:
    return x if b is None else matmul(b, x)


def _size(a: Tensor, x: Tensor) -> float:
    """How much `a` stretches the first vectors: a guess at its norm."""
    return (vector_norm(matmul(a, x)) / vector_norm(x)).item()


def _whitening(basis: Tensor, b: Tensor | None) -> Tensor:
    """W such that ``basis W`` is orthonormal, up to `b`, and has no direction twice."""
    gram = matmul(basis.mT, _times(b, basis))
    lengths = gram.diagonal().clamp_min(finfo(gram.dtype).tiny).rsqrt()
    values, vectors = eigh(gram * lengths * lengths.unsqueeze(-1))
    least = values[-1].item() * len(values) * finfo(gram.dtype).eps
    kept = (values > least).sum().item()
    start = len(values) - int(kept)
    return lengths.unsqueeze(-1) * vectors[:, start:] * values[start:].rsqrt()
