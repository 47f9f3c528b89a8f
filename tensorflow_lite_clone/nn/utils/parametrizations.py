"""Ready-made parametrizations, as ``torch.nn.utils.parametrizations``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils._largest_singular_value import (
    as_matrix,
    improve_left,
    improve_right,
    largest_singular_value,
    outputs_dim,
    random_direction,
)
from tensorflow_lite_clone.nn.utils.parametrize import register_parametrization
from tensorflow_lite_clone.nn.utils.weight_norm import with_norms
from tensorflow_lite_clone.ops.compat.native_forms import norm_except_dim
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.linalg.householder import householder_product
from tensorflow_lite_clone.ops.linalg.matrix_functions import matrix_exp
from tensorflow_lite_clone.ops.linalg.qr import geqrf
from tensorflow_lite_clone.ops.linalg.solve import linalg_solve
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module: Module, name: str) -> Tensor:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


def _is_orthogonal(x: Tensor) -> bool:
    """Whether the columns are orthonormal, within what rounding does."""
    rows, columns = x.shape[-2:]
    gram = x.mH @ x
    return gram.allclose(_eye(columns, x).expand_as(gram), atol=10 * rows * finfo(x.dtype).eps)


def _orthogonalized(x: Tensor) -> Tensor:
    """The unitary factor of ``x = q @ r`` in which the diagonal of `r` is positive."""
    reflections, tau = geqrf(x)
    diagonal = reflections.diagonal(dim1=-2, dim2=-1)
    return householder_product(reflections, tau) * diagonal.sgn().unsqueeze(-2)


def _eye(size: int, like: Tensor) -> Tensor:
    return eye(size, dtype=like.dtype, device=like.device)


class _Orthogonal(Module):
    """Maps a matrix to one with orthonormal columns, or rows if there are fewer of these.

    `base`, there with `use_trivialization`, is multiplied to the result, so that the original can
    start where the map is simplest, wherever the weight starts (Lezcano-Casado, 2019,
    https://arxiv.org/abs/1909.09501).
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        if orthogonal_map == "householder" and weight.is_complex():
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        Q = self._reflected(X) if self.orthogonal_map == "householder" else self._rotated(X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _rotated(self, X: Tensor) -> Tensor:
        """The first columns of the exponential, or Cayley transform, of a skew-Hermitian matrix."""
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = cat([X, X.new_zeros(*X.shape[:-1], n - k)], -1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            Q = matrix_exp(A)
        else:
            identity = _eye(n, A)
            Q = linalg_solve(identity - 0.5 * A, identity + 0.5 * A)
        return Q if n == k else Q[..., :k]

    def _reflected(self, X: Tensor) -> Tensor:
        """The product of reflections at X's columns, and at the axes where its diagonal is -1."""
        A = X.tril(-1)
        tau = 2.0 / (1.0 + (A * A).sum(-2))
        signs = X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        return householder_product(A, tau) * signs

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """What maps to `Q`, or to the orthogonal matrix that a QR decomposition makes of it."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        if not hasattr(self, "base"):
            return self._reflections(tall, wide)
        self.base = self._square(tall)
        start = Q.new_zeros(Q.shape)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _reflections(self, Q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        A, tau = geqrf(Q)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1  # a column that no reflection changes keeps its sign
        return A.mT if wide else A

    def _square(self, Q: Tensor) -> Tensor:
        """`Q` orthogonalized, and completed by random columns to a square matrix."""
        n, k = Q.shape[-2:]
        if n == k:
            return Q.clone() if _is_orthogonal(Q) else _orthogonalized(Q)
        more = Q.new_empty(*Q.shape[:-2], n, n - k).normal_()
        return _orthogonalized(cat([Q, more], -1))


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix, or batch of matrices, orthogonal (unitary if it is complex).

    A matrix that is not square has orthonormal columns or rows, whichever are fewer. It is the
    exponential of a skew-symmetric matrix (``"matrix_exp"``, the default for square and complex
    ones), its Cayley transform (``"cayley"``), or a product of Householder reflections
    (``"householder"``, the other default). ValueError if there is no such tensor, it is a vector,
    or the map is not known. Returns the module.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        names = ", ".join(f'"{known}"' for known in _MAPS)
        raise ValueError(f"orthogonal_map has to be one of {names}. Got: {orthogonal_map}")
    orth = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, orth, unsafe=True)


class _WeightNorm(Module):
    """Maps norms and directions to a weight."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return with_norms(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Norms and directions of a weight; the direction keeps the weight's length."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight as norms times directions: ``w = g * v / |v|``.

    Salimans and Kingma, 2016, https://arxiv.org/abs/1602.07868. The norms are over all dimensions
    but `dim`, or over all with ``dim=None``: ``original0``; the directions are ``original1``. A
    state_dict of the older `nn.utils.weight_norm` can be loaded. Returns the module.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *rest: Any) -> None:
        older = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all([key in state_dict for key in older]):
            for i, key in enumerate(older):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, which each call in training improves."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            rows, columns = matrix.shape
            self.register_buffer("_u", random_direction(rows, matrix, eps))
            self.register_buffer("_v", random_direction(columns, matrix, eps))
            self._power_method(matrix, 15)  # as if it had been called that often

    def _power_method(self, matrix: Tensor, steps: int) -> None:
        for _ in range(steps):
            improve_left(matrix, self._u, self._v, self.eps)
            improve_right(matrix, self._u, self._v, self.eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        return weight / largest_singular_value(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself: of what it is to be, only the direction is kept."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iteration.

    Miyato et al., 2018, https://arxiv.org/abs/1802.05957. The weight is a matrix with an entry of
    `dim` (1 for transposed convolutions, else 0) per row; each time it is read in training mode
    the estimate takes `n_power_iterations` more steps. Returns the module; ValueError if it has
    no such tensor.
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = outputs_dim(module)
    normed = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, normed)
