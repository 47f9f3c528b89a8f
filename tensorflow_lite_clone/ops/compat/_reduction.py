"""How losses are reduced, by PyTorch's private names for it: third-party losses call them."""

from __future__ import annotations

import warnings

from tensorflow_lite_clone.core.errors import level_outside

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction; ValueError for a word that is none."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=level_outside(),
        )
        reduction = "mean"
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """What PyTorch's older arguments mean: both are True unless given; warns that they are old."""
    if reduce is not None and not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=level_outside(),
        )
    return reduction


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction that PyTorch's older arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
