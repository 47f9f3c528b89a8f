"""Logical and bitwise functions: ``& | ^ ~ << >>`` and their named forms."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.ops.pointwise._pointwise import binary, unary
from tensorflow_lite_clone.tensor import Tensor


def _logical(name: str, document: str) -> Any:
    return binary(name, numbers=False, document=document)


logical_and = _logical("logical_and", "Whether both are nonzero; a bool tensor.")
logical_or = _logical("logical_or", "Whether one is nonzero; a bool tensor.")
logical_xor = _logical("logical_xor", "Whether just one is nonzero; a bool tensor.")
logical_not = unary(
    "logical_not", inplace=("method",), document="Whether elements are zero; a bool tensor."
)


def _bitwise(name: str, operator: str, document: str, refuses: str = "fc") -> Any:
    return binary(
        name,
        refuses=refuses,
        operators=(f"__{operator}__", f"__r{operator}__", f"__i{operator}__"),
        self_named=True,
        document=document,
    )


bitwise_and = _bitwise("bitwise_and", "and", "The bits set in both, of integers or bools.")
bitwise_or = _bitwise("bitwise_or", "or", "The bits set in one or both, of integers or bools.")
bitwise_xor = _bitwise("bitwise_xor", "xor", "The bits set in just one, of integers or bools.")
bitwise_left_shift = _bitwise(
    "bitwise_left_shift", "lshift", "``input * 2**other`` of integers, without overflow.", "bfc"
)
bitwise_right_shift = _bitwise(
    "bitwise_right_shift", "rshift", "The floor of ``input / 2**other`` of integers.", "bfc"
)
bitwise_not = unary(
    "bitwise_not",
    "bitwise_invert",
    refuses="fc",
    inplace=("method",),
    document="All bits flipped; for bools, `logical_not`.",
)


def __invert__(self: Tensor) -> Tensor:
    if self.dtype.kind not in "biu":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return bitwise_not(self)


export(__invert__, "method", name="__invert__")
