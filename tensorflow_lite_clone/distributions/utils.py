"""What distributions share: broadcasting of parameters, probabilities and logits, lazy values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from tensorflow_lite_clone.autograd.mode import enable_grad
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.views import broadcast_tensors
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

#: The Euler-Mascheroni constant, DLMF 5.2.3.
euler_constant = 0.57721566490153286060


def is_number(value: Any) -> bool:
    """Whether `value` is what a parameter may be besides a tensor: a bool, an int or a float."""
    return isinstance(value, bool | int | float)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape. Numbers take the first tensor's dtype and device.

    If all are numbers, the tensors have the default dtype. ValueError for anything else.
    """
    if not all(isinstance(value, Tensor) or is_number(value) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    first = next((value for value in values if isinstance(value, Tensor)), None)
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) < len(values):
        if first is None:
            tensors = [tensor(float(value)) for value in values]
        else:
            tensors = [
                value
                if isinstance(value, Tensor)
                else tensor(value, dtype=first.dtype, device=first.device)
                for value in values
            ]
    views = broadcast_tensors(*tensors)
    # A tensor that has the shape already stays itself: a Parameter a Parameter.
    return tuple([t if t.shape == view.shape else view for t, view in zip(tensors, views)])


def broadcastable(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether two shapes broadcast with each other."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second)))


def _standard_normal(shape: Sequence[int], dtype: DType | None, device: Any) -> Tensor:
    """Numbers drawn from the standard normal distribution."""
    return empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """`value`, summed over its last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[:-dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (`is_binary`), or of log probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """`probs` in [eps, 1 - eps], where eps is the dtype's rounding unit."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of clamped probabilities (`is_binary`), or their logarithms."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:  # noqa: N801 (PyTorch's name)
    """An attribute computed when first read, with gradients recorded, and kept from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _triangle(size: int, diag: int, device: Any) -> Tensor:
    """A mask of the entries of a square matrix on and below the diagonal `diag`."""
    index = arange(size, device=device)
    return index < index.reshape(size, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below diagonal `diag` of square matrices ``(..., D, D)``, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _triangle(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices with the entries of `vec` on and below diagonal `diag`, row by row.

    A matrix of size D and ``diag <= 0`` takes (D + diag)(D + diag + 1)/2 entries. ValueError if
    no matrix takes as many as `vec` has.
    """
    length = vec.shape[-1]
    odd = 1 + 2 * diag  # D is the positive root of D^2 + odd D - diag (diag + 1) - 2 length
    root = (odd**2 + 4 * abs(diag) * (diag + 1) + 8 * length) ** 0.5
    size = (root - odd) / 2
    if round(size) - size > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    side = round(size)
    mat = vec.new_zeros((*vec.shape[:-1], side, side))
    mat[..., _triangle(side, diag, vec.device)] = vec
    return mat
