"""Axes as the standard has them: a zero-dimensional array has none."""

from __future__ import annotations

import operator
from typing import Any


def one_axis(axis: Any, ndim: int) -> int:
    """`axis` in ``[0, ndim)``; IndexError outside ``[-ndim, ndim)``, TypeError for no integer."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of range for an array of {ndim} dimensions")
    return axis % ndim


def several_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that None (all), an integer or a sequence of integers names, ascending.

    Raises IndexError for what is out of range, ValueError for an axis that is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if hasattr(axis, "__index__"):
        return (one_axis(axis, ndim),)
    axes = sorted([one_axis(one, ndim) for one in axis])
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names an axis twice")
    return tuple(axes)


def axis_of_line(name: str, axis: Any, ndim: int) -> int:
    """`one_axis`, where None stands for the axis of a one-dimensional array."""
    if axis is not None:
        return one_axis(axis, ndim)
    if ndim != 1:
        raise ValueError(f"{name}: axis must be given for an array of {ndim} dimensions")
    return 0
