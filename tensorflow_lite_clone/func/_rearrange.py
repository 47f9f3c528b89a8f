"""`rearrange`: dimensions by name, in the notation of einops (A. Rogozhnikov, "Einops: Clear and
reliable tensor manipulations with Einstein-like notation", 2022)."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.ops.shape.views import permute, reshape
from tensorflow_lite_clone.tensor import Tensor

_REST = "..."
#: A dimension of a side: the names whose product it is.
Group = list[str]


class DimensionBindError(Exception):
    """Sizes that do not fit the names."""


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """The tensor with its dimensions reordered, split and joined, as in "b (h w) c -> b c h w".

    Names in parentheses are one dimension, the last name changing fastest; ``...`` are any number
    of dimensions, ``1`` and ``()`` one of size 1. `axes_lengths` are sizes that cannot be known
    otherwise. A list or tuple of tensors is stacked first. Raises ValueError for patterns that
    are none or do not fit, TypeError for sizes that are no integers, and DimensionBindError for
    sizes that do not fit.
    """
    x = stack(list(tensor)) if isinstance(tensor, (list, tuple)) else tensor
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_side, sides)
    _check(left, right, pattern, axes_lengths)
    shape = tuple(x.shape)
    extra = 0
    if [_REST] in left:
        extra = len(shape) - len(left) + 1
    if extra < 0 or len(left) - ([_REST] in left) + extra != len(shape):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of "
            f"dimensions in the tensor ({len(shape)})"
        )
    rest = [f"{_REST}{number}" for number in range(extra)]
    left, right = _spread(left, rest), _spread(right, rest)
    sizes = dict(axes_lengths)
    for group, size in zip(left, shape, strict=True):
        _bind(group, size, sizes)
    names = [name for group in left for name in group]
    order = [names.index(name) for group in right for name in group]
    split = reshape(x, tuple([sizes[name] for name in names]))
    moved = permute(split, tuple(order))
    return reshape(moved, tuple([prod([sizes[name] for name in group]) for group in right]))


def _side(text: str) -> list[Group]:
    """The dimensions of one side of a pattern."""
    if "." in text and (text.count(_REST) != 1 or text.count(".") != 3):
        raise ValueError(
            "Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor "
        )
    groups: list[Group] = []
    inside: Group | None = None
    spaced = text.replace("(", " ( ").replace(")", " ) ").replace(_REST, f" {_REST} ")
    for word in spaced.split():
        if word == "(":
            if inside is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                )
            inside = []
            groups.append(inside)
        elif word == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            inside = None
        elif inside is not None:
            inside += _name(word)
        else:
            groups.append(_name(word))
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    names = [name for group in groups for name in group]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    return groups


def _name(word: str) -> Group:
    """The word as names: none for 1."""
    if word == "1":
        return []
    if word.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    for letter in word.replace(_REST, ""):
        if not (letter.isalnum() or letter == "_"):
            raise ValueError(f"Unknown character '{letter}'")
    if word != _REST and (not word.isidentifier() or word[0] == "_" or word[-1] == "_"):
        raise ValueError(
            f"Invalid axis identifier: {word}\naxis name should should not start or end with "
            "underscore"
        )
    return [word]


def _check(left: list[Group], right: list[Group], pattern: str, lengths: dict) -> None:
    """ValueError, or TypeError, for names that are not on both sides."""
    ours = {name for group in left for name in group}
    names = {name for group in right for name in group}
    if any([_REST in group and group != [_REST] for group in left]) or (
        "(...)" in pattern.partition("->")[0].replace(" ", "")
    ):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if _REST in names - ours:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if ours ^ names:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on both): "
            f"{ours ^ names}"
        )
    if lengths.keys() - ours:
        raise ValueError(f"Identifiers not found in rearrange expression: {lengths.keys() - ours}")
    for size in lengths.values():
        if not isinstance(size, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(size)}")


def _spread(groups: list[Group], rest: list[str]) -> list[Group]:
    """The dimensions with names for those of ``...``."""
    spread: list[Group] = []
    for group in groups:
        if group == [_REST]:
            spread += [[name] for name in rest]
        else:
            spread.append([n for name in group for n in (rest if name == _REST else [name])])
    return spread


def _bind(group: Group, size: int, sizes: dict[str, int]) -> None:
    """Give the names of a dimension sizes whose product is its size."""
    unknown = [name for name in group if name not in sizes]
    known = prod([sizes[name] for name in group if name in sizes])
    if len(unknown) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}"
        )
    if unknown:
        if size % known if known else size:
            raise DimensionBindError(
                f"inferred dimension does not evenly fit into larger dimension: {size} vs {known}"
            )
        sizes[unknown[0]] = size // known if known else 0
    elif known != size:
        raise DimensionBindError(
            f"Dimension sizes to do not match ({size} != {known}) when matching {group}"
        )
