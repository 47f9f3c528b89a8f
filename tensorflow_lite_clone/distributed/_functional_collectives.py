"""Collectives that give new tensors and have gradients, in a world of one process."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.tensor import Tensor

__all__ = ["all_to_all_single_autograd", "wait_tensor"]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there."""
    return tensor


def all_to_all_single_autograd(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """What all processes send to this one: a copy of what it sends itself."""
    return self.clone()
