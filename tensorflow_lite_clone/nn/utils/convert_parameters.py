"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters' elements in one one-dimensional tensor."""
    return cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the elements of a vector that `parameters_to_vector` may have made."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
