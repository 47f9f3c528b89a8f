"""What losses share: how they are reduced, and PyTorch's older names for that."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, can_cast, uncastable
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.ops.compat._reduction import legacy_get_string
from tensorflow_lite_clone.ops.pointwise._operands import as_operands, cast, operand_dtype
from tensorflow_lite_clone.tensor import Tensor


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the arguments ask for; `size_average` and `reduce` are PyTorch's old way.

    Raises ValueError for a word that is none of 'none', 'mean' and 'sum'.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    elif reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(F: Any, values: Any, reduction: str, dtype: Any) -> Any:
    """In a forward: the values reduced, in `dtype`."""
    if reduction == "mean":
        values = F.mean(values)
    elif reduction == "sum":
        values = F.sum(values)
    return values if values.dtype == dtype else F.astype(values, dtype)


def spread(g: Any, reduction: str, shape: tuple) -> Any:
    """In a gradient: what each element of `shape` gets from the gradient of their reduction."""
    return g / (math.prod(shape) or 1) if reduction == "mean" else g


def expect_same_size(function: str, input: Tensor, other: Tensor) -> None:
    """Raise RuntimeError where `other` would enlarge `input` when both are broadcast."""
    shape, sizes = tuple(input.shape), tuple(other.shape)
    if shape != sizes and broadcast_shapes(shape, sizes) != shape:
        raise RuntimeError(
            f"{function}: output with shape {list(shape)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(shape, sizes))}"
        )


def finish(values: Tensor, reduction: str) -> Tensor:
    """In a public function: the values reduced."""
    if reduction == "mean":
        return values.mean()
    return values.sum() if reduction == "sum" else values


def as_computed(values: Tensor, dtype: DType) -> Tensor:
    """Losses in the input's dtype; RuntimeError where PyTorch does not cast them to it."""
    if not can_cast(values.dtype, dtype):
        raise uncastable(values.dtype, dtype)
    return cast(values, dtype)


def loss_operands(input: Tensor, target: Tensor) -> list[Tensor]:
    """Both in their common dtype; a UserWarning when their shapes differ.

    Raises RuntimeError when the shapes do not broadcast.
    """
    left, right = input._storage.array, target._storage.array
    if left.shape != right.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=level_outside(),
        )
        broadcast_shapes(left.shape, right.shape)
    if left.dtype != right.dtype:
        return as_operands((input, target), operand_dtype(input, target))
    return [input, target]
