"""What both forms of spectral normalisation do: the power iteration for a weight's largest
singular value (Miyato et al., 2018, https://arxiv.org/abs/1802.05957, algorithm 1)."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.conv import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tensorflow_lite_clone.tensor import Tensor


def outputs_dim(module: Any) -> int:
    """The dimension of the module's weight that has an entry per output."""
    transposed = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
    return 1 if isinstance(module, transposed) else 0


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """`weight` as a matrix, (size of `dim`, the other dimensions)."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.ndim) if d != dim])
    return weight.reshape(weight.size(0), -1)


def random_direction(size: int, like: Tensor, eps: float) -> Tensor:
    """A vector of norm 1 and (size,) in a random direction."""
    return F.normalize(like.new_empty(size).normal_(0, 1), dim=0, eps=eps)


@no_grad()
def improve_left(matrix: Tensor, u: Tensor, v: Tensor, eps: float) -> None:
    """Bring `u`, in place, nearer to the first left singular vector: ``matrix @ v``, of norm 1."""
    F.normalize(matrix.mv(v), dim=0, eps=eps, out=u)


@no_grad()
def improve_right(matrix: Tensor, u: Tensor, v: Tensor, eps: float) -> None:
    """Bring `v`, in place, nearer to the first right one: ``matrix.H @ u``, of norm 1."""
    F.normalize(matrix.mH.mv(u), dim=0, eps=eps, out=v)


def largest_singular_value(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """``u.H @ matrix @ v``. `u` and `v` are constants, and may be improved in place later."""
    return u.clone().vdot(matrix.mv(v.clone()))
