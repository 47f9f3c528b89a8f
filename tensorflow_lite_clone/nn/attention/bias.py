"""Causal masks for sequences of different lengths, as ``torch.nn.attention.bias``."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from tensorflow_lite_clone.core.dtypes import bool_
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.ops.create.constructors import ones
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask starts, or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask, (seq_len_q, seq_len_kv), for `scaled_dot_product_attention`.

    Boolean, on the default device: True for what takes part. AssertionError unless `variant` is a
    `CausalVariant`.
    """

    __slots__ = ()

    __torch_function__ = disabled

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        bias: Any = _mask(variant, seq_len_q, seq_len_kv).as_subclass(cls)
        bias.variant = variant
        bias.seq_len_q = seq_len_q
        bias.seq_len_kv = seq_len_kv
        return bias

    def __repr__(self) -> str:
        return repr(self._materialize())

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as an ordinary tensor."""
        return _mask(self.variant, self.seq_len_q, self.seq_len_kv, device)


def _mask(variant: CausalVariant, seq_len_q: int, seq_len_kv: int, device: Any = None) -> Tensor:
    offset = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
    return ones((seq_len_q, seq_len_kv), dtype=bool_, device=device).tril(offset)


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask of (queries, keys) whose diagonal starts in the upper left corner."""
    return _of_size("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask of (queries, keys) whose diagonal ends in the lower right corner.

    Warns where there are more queries than keys: the first ones have nothing to attend to.
    """
    bias = _of_size("causal_lower_right", CausalVariant.LOWER_RIGHT, size)
    if bias.seq_len_q > bias.seq_len_kv:
        warnings.warn(
            "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
            stacklevel=level_outside(),
        )
    return bias


def _of_size(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)
