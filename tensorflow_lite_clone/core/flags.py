"""Switches of the whole process that numerics depend on."""

from __future__ import annotations

_PRECISIONS = ("highest", "high", "medium")


class Flags:
    """How float32 products are computed; PyTorch's defaults.

    `torch.backends` and `set_float32_matmul_precision` set them, device backends read them.
    """

    __slots__ = ("cudnn_allow_tf32", "float32_matmul_precision", "matmul_allow_tf32")

    def __init__(self) -> None:
        self.cudnn_allow_tf32 = True  # convolutions may round their operands to TF32
        self.matmul_allow_tf32 = False  # so may matrix products
        self.float32_matmul_precision = "highest"

    def set_matmul_precision(self, precision: str) -> None:
        """Set both of the last; RuntimeError for an unknown name."""
        if precision not in _PRECISIONS:
            raise RuntimeError(
                f"{precision} is none of {', '.join(_PRECISIONS)} as a precision of products"
            )
        self.float32_matmul_precision = precision
        self.matmul_allow_tf32 = precision != "highest"


flags = Flags()
