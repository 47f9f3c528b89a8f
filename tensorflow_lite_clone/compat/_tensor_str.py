"""The printing of tensors under the name that PyTorch's file has."""

from __future__ import annotations

from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.printing import PRINT_OPTS, contents_text

__all__ = ["PRINT_OPTS"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements of a tensor as `repr` shows them, lines `indent` spaces in."""
    return contents_text(self, indent)
