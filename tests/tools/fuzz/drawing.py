"""Random tensors: sizes, dtypes, values and layouts, the same on both sides."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tests.op_db._case import round_to_dtype, tree_map
from tests.op_db._device import Side
from tests.op_db._layouts import stepped, transposed

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
          "bool", "complex128", "complex64")  # fmt: skip
SIZES = (0, 1, 2, 3, 5)
LAYOUTS = (Side.tensor, transposed, stepped)


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """A tensor to be made."""

    array: np.ndarray
    dtype: str
    layout: int = 0  # its place in LAYOUTS
    grad: bool = False

    def __repr__(self) -> str:
        physical = ("", ".transposed", ".stepped")[self.layout]
        return f"{self.dtype}{self.array.shape}{physical}{' requires grad' if self.grad else ''}"

    def on(self, side: Side) -> Any:
        made = LAYOUTS[self.layout](side, self.array, self.dtype)
        return made.requires_grad_() if self.grad else made


@dataclasses.dataclass(frozen=True)
class Named:
    """An attribute of either framework, such as a dtype."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def on(self, side: Side) -> Any:
        return getattr(side.module, self.name)


def on(tree: Any, side: Side) -> Any:
    """The tree with everything drawn made on a side."""
    return tree_map(lambda leaf: leaf.on(side) if isinstance(leaf, (Drawn, Named)) else leaf, tree)


def one_of(rng: np.random.Generator, choices: Any) -> Any:
    """One of the choices, which may be of any type."""
    return choices[int(rng.integers(len(choices)))]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small values; those of integers are exact in every dtype but bool."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        return rng.integers(0 if dtype.startswith("u") else -5, 6, shape)
    found = rng.standard_normal(shape) * 2
    if dtype.startswith("complex"):
        found = found + 1j * rng.standard_normal(shape)
    return round_to_dtype(np.asarray(found), dtype)


def tensor(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str | None = None, grad: bool = False
) -> Drawn:
    """A tensor of the shape, in a random layout."""
    dtype = dtype or one_of(rng, DTYPES)
    layout = 0 if rng.random() < 0.6 else int(rng.integers(3))
    return Drawn(values(rng, shape, dtype), dtype, layout, grad)


def shape_of(rng: np.random.Generator, most: int = 3) -> tuple[int, ...]:
    """A shape of up to `most` dimensions; dimensions of no size are rare."""
    sizes = rng.choice(SIZES, int(rng.integers(most + 1)), p=(0.06, 0.2, 0.26, 0.26, 0.22))
    return tuple(int(size) for size in sizes)


def beside(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with the given one, or, rarely, does not."""
    kept = shape[int(rng.integers(len(shape) + 1)) :] if rng.random() < 0.4 else shape
    other = tuple(1 if rng.random() < 0.2 else size for size in kept)
    if rng.random() < 0.04:
        other = (*other, int(rng.choice(SIZES)))
    if rng.random() < 0.1:
        other = (int(rng.integers(1, 3)), *other)
    return other


def scalar(rng: np.random.Generator) -> Any:
    """A Python number."""
    kind = rng.integers(4)
    if kind == 0:
        return bool(rng.integers(2))
    if kind == 1:
        return int(rng.integers(-4, 6))
    number = round(float(rng.standard_normal() * 2), 2)
    return number if kind == 2 else complex(number, round(float(rng.standard_normal()), 2))
