"""How losses are reduced, by PyTorch's private names for it: third-party losses call them."""

from __future__ import annotations

import warnings

from tensorflow_lite_clone.ops._losses import legacy_reduction

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction; ValueError for a word that is none."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2,
        )
        reduction = "mean"
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that PyTorch's older arguments mean."""
    return legacy_reduction(size_average, reduce, emit_warning)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction that PyTorch's older arguments mean."""
    return get_enum(legacy_reduction(size_average, reduce, emit_warning))
