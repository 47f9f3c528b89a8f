"""Keys of every kind, read and written."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_db._device import Side
from tests.tools.fuzz.drawing import Drawn, one_of, scalar, shape_of, tensor
from tests.tools.fuzz.plain import PlainCall, Random

KINDS = {
    "int": 0.28, "slice": 0.3, "none": 0.07, "ellipsis": 0.07, "bool": 0.03,
    "index": 0.17, "mask": 0.08,
}  # fmt: skip


def place(rng: Random, size: int) -> int:
    """A place in a dimension, rarely out of bounds."""
    if not size or rng.random() < 0.03:
        return int(one_of(rng, [size, -size - 1]))
    return int(rng.integers(-size, size))


def bound(rng: Random) -> int | None:
    return None if rng.random() < 0.4 else int(rng.integers(-6, 7))


def item(rng: Random, sizes: tuple[int, ...], kind: str) -> tuple[Any, int]:
    """An item of a key, and how many dimensions it looks at."""
    size = sizes[0] if sizes else int(rng.integers(1, 3))  # one too many is refused
    if kind == "int":
        number = place(rng, size)
        return (number if rng.random() < 0.8 else Drawn(np.array(number), "int64")), 1
    if kind == "slice":
        step = int(rng.integers(-1, 4)) if rng.random() < 0.3 else None
        return slice(bound(rng), bound(rng), step), 1
    if kind in ("none", "ellipsis"):
        return (None if kind == "none" else ...), 0
    if kind == "bool":
        return bool(rng.integers(2)), 0
    if kind == "mask":
        shape = sizes[: int(rng.integers(1, 3))] or (size,)
        if rng.random() < 0.04:
            shape = (*shape[:-1], shape[-1] + 1)
        mask = rng.random(shape) < 0.5
        dtype = "uint8" if rng.random() < 0.1 else "bool"
        as_list = len(shape) == 1 and dtype == "bool" and rng.random() < 0.3
        return (mask.tolist() if as_list else Drawn(mask, dtype)), len(shape)
    shape = one_of(rng, [(2,), (3,), (1,), (2, 1), (1, 3), (0,), (2, 3), (5,)])
    numbers = np.array([place(rng, size) for _ in range(int(np.prod(shape)))], np.int64)
    numbers = numbers.reshape(shape)
    if rng.random() < 0.3:
        return numbers.tolist(), 1
    return Drawn(numbers, one_of(rng, ["int64", "int64", "int32", "int16", "float32"])), 1


def key(rng: Random, shape: tuple[int, ...]) -> Any:
    """A key for a tensor of the shape."""
    items: list[Any] = []
    dim = 0
    for _ in range(int(rng.integers(5))):
        kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
        if kind == "ellipsis" and any(i is ... for i in items):
            continue
        found, span = item(rng, shape[dim:], kind)
        items.append(found)
        dim += span
    return items[0] if len(items) == 1 and rng.random() < 0.7 else tuple(items)


def repeats(found: Any) -> bool:
    """Whether the key may name a place twice; which of two values it keeps is not said."""
    items = found if isinstance(found, tuple) else (found,)
    return any(isinstance(i, (list, Drawn)) for i in items)


class Read(PlainCall):
    """`x[key]`, which is filled afterwards: whether it shares x's memory shows in x."""

    def __init__(self, rng: Random) -> None:
        x = tensor(rng, shape_of(rng, 4))
        super().__init__("read", x, key(rng, x.array.shape))

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        x, found = arguments
        result = x[found]
        kept = result.clone()
        result.fill_(1)
        return kept


class Write(PlainCall):
    """`x[key] = value`."""

    def __init__(self, rng: Random) -> None:
        x = tensor(rng, shape_of(rng, 4))
        found = key(rng, x.array.shape)
        value: Any = scalar(rng)
        if rng.random() < 0.6:
            shape = shape_of(rng, 2) if rng.random() < 0.6 else x.array.shape
            value = tensor(rng, shape)
            if repeats(found):
                value = Drawn(np.full_like(value.array, 1), value.dtype, value.layout)
        super().__init__("write", x, found, value)

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        x, found, value = arguments
        x[found] = value


class ReadGradient(PlainCall):
    """The gradient of `x[key]`."""

    def __init__(self, rng: Random) -> None:
        x = tensor(rng, shape_of(rng, 4), "float64", grad=True)
        super().__init__("read", x, key(rng, x.array.shape))

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        x, found = arguments
        result = x[found]
        (result * result).sum().backward()
        return result, x.grad
