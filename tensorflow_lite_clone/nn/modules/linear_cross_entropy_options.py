"""How PyTorch splits the work of `linear_cross_entropy`: accepted and checked, without effect."""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_lite_clone.core.dtypes import DType, bfloat16, float16, float32, float64

__all__ = ["LinearCrossEntropyOptions"]

_DTYPES = (None, float16, bfloat16, float32, float64)


@dataclass(frozen=True, slots=True)  # with slots, its pickles are PyTorch's
class LinearCrossEntropyOptions:
    """Options that steer PyTorch's way through `linear_cross_entropy`, and change no result.

    Raises ValueError for values that PyTorch refuses.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"  # "auto", "aspect_ratio", "aspect_ratio:N" or None
    acc_policy: str = "auto"  # "auto", "accurate", "balanced" or "compact"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = str(self.chunking_method).partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor))):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.acc_dtype not in _DTYPES:
            words = ", ".join(str(dtype) for dtype in _DTYPES)
            raise ValueError(
                f"acc_dtype must be one of {{{words}}}, got {self.acc_dtype}. Pass acc_dtype=None "
                "to let the op pick automatically."
            )
