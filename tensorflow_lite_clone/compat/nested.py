"""``torch.nested``: tensors of rows of several lengths, which are left out.

vit-pytorch and PyTorch Geometric import the functions: each raises NotImplementedError. Rows of
several lengths are padded here, see ``torch.nn.utils.rnn.pad_sequence``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tensorflow_lite_clone.core.device import strided
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.nested.{name}: nested tensors are left out; torch.nn.utils.rnn.pad_sequence pads"
    )


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NoReturn:
    """NotImplementedError."""
    _refuse("nested_tensor")


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> NoReturn:
    """NotImplementedError."""
    _refuse("as_nested_tensor")


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NoReturn:
    """NotImplementedError."""
    _refuse("nested_tensor_from_jagged")


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Any = None, out: Tensor | None = None
) -> NoReturn:
    """NotImplementedError."""
    _refuse("to_padded_tensor")


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = strided) -> NoReturn:
    """NotImplementedError."""
    _refuse("narrow")


def masked_select(tensor: Tensor, mask: Tensor) -> NoReturn:
    """NotImplementedError."""
    _refuse("masked_select")
