"""Samples of the op table's rows: with other sizes, dtypes, layouts and odd values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_db import FAMILIES, OPS
from tests.op_db._case import (
    ALL,
    COMPLEX,
    FLOATS,
    HostTensor,
    OpInfo,
    Sample,
    TensorSpec,
    draw,
    tree_leaves,
    tree_map,
)
from tests.op_db._check import OURS, compare, expected, flatten, representable, run_ours
from tests.tools.fuzz.drawing import LAYOUTS, SIZES
from tests.tools.fuzz.judging import ASSERT, outcome, refusals, said
from tests.tools.fuzz.rounding import near_exact

ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0)
ROWS = [op for op in OPS if op.check_layouts and op.samples]
#: Rows that say what becomes of odd values; sums of products may multiply infinities by zeros.
FAMILIES_OF_ODD = ("pointwise", "special", "reduce", "shape", "index")
EXACT = {op for name in FAMILIES_OF_ODD for op in FAMILIES[name]}


def resized(rng: np.random.Generator, op: OpInfo, sample: Sample) -> Sample:
    """Equal sizes become other equal sizes."""
    args = tree_leaves((sample.args, sample.kwargs), TensorSpec)
    sizes = sorted({size for arg in args for size in arg.shape if size > 1})
    choices = SIZES[1:] if {"empty", "sizes"} & {*op.skip_undefined_behavior} else SIZES
    new = {size: size if rng.random() < 0.4 else int(rng.choice(choices)) for size in sizes}

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, TensorSpec) or leaf.literal is not None:
            return leaf
        return leaf._replace(shape=tuple([new.get(size, size) for size in leaf.shape]))

    args, kwargs = tree_map(change, (sample.args, sample.kwargs))
    return sample._replace(args=args, kwargs=kwargs)


def pick(rng: np.random.Generator, rows: list[OpInfo]) -> tuple[OpInfo, Sample]:
    """A row and a sample of it, mostly of other sizes."""
    op = rows[rng.integers(len(rows))]
    sample = op.samples[rng.integers(len(op.samples))]
    change = rng.random() < 0.7 and "resized" not in op.skip_undefined_behavior
    return op, resized(rng, op, sample) if change else sample


def layouts(rng: np.random.Generator, op: OpInfo) -> Any:
    """A layout function that gives each tensor in turn its own, the same for both sides."""
    drawn = rng.integers(0, 1 if "layouts" in op.skip_undefined_behavior else 3, 16)

    def start() -> Any:
        turns: dict[Any, int] = {}

        def lay(side: Any, array: np.ndarray, dtype: str) -> Any:
            turn = turns[side] = turns.get(side, -1) + 1
            return LAYOUTS[drawn[turn % len(drawn)]](side, array, dtype)

        return lay

    return start


def overflows(drawn: Any) -> bool:
    """Whether a value is beyond uint8."""
    tensors = [value.array for value in tree_leaves(drawn, HostTensor) if value.dtype == "uint8"]
    return any(array.size and array.max() > 255 for array in tensors)


def holds(op: OpInfo, sample: Sample, dtype: str) -> bool:
    """Whether the dtype has the values that a sample names, such as infinity."""
    try:
        draw(op, sample, dtype)
    except (TypeError, OverflowError, ValueError):
        return False
    return True


class RowCall:
    """A row's function."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.op, self.sample = pick(rng, ROWS)
        own = rng.random() < 0.75 or "dtypes" in self.op.skip_undefined_behavior
        dtypes = self.op.dtypes if own else (*ALL, *COMPLEX)
        self.dtype = str(dtypes[rng.integers(len(dtypes))])
        if not holds(self.op, self.sample, self.dtype):
            self.dtype = str(self.op.dtypes[0])
        self.layouts = layouts(rng, self.op)
        self.odd = (
            rng.random() < 0.3 and self.op in EXACT and "odd" not in self.op.skip_undefined_behavior
        )

    @property
    def name(self) -> str:
        return self.op.name

    def __repr__(self) -> str:
        odd = " with odd values" if self.odd else ""
        return f"{self.op.name}{self.sample!r} in {self.dtype}{odd}"

    def values(self) -> Any:
        """The arguments, tensors as host arrays."""
        drawn = draw(self.op, self.sample, self.dtype)
        if not self.odd or self.op.domain.distinct:
            return drawn

        def change(value: Any) -> Any:
            if not (isinstance(value, HostTensor) and value.dtype_varies and value.dtype in FLOATS):
                return value
            if value.spec.literal is not None:  # sorted, say
                return value
            array = value.array.copy()
            places = self.rng.random(array.shape) < 0.2
            array[places] = self.rng.choice(ODD, int(places.sum()))
            return value._replace(array=array)

        return tree_map(change, drawn)

    def judge(self) -> str | None:
        """None, or how the outcome differs."""
        if not representable(self.sample, self.dtype):
            return None
        try:
            drawn = self.values()
        except OverflowError:  # a literal of the sample that an unsigned dtype does not have
            return None
        if overflows(drawn):
            return None
        theirs = outcome(lambda: expected(self.op, drawn, self.layouts()))
        ours = outcome(lambda: run_ours(self.op, drawn, self.layouts()))
        # Where the dtype is not among the row's, the row says that it is refused.
        promised = self.dtype in self.op.dtypes
        refused = refusals(ours, theirs, promised)
        if refused:
            return refused if isinstance(refused, str) else None
        like, exact = theirs
        if self.dtype in self.op.dtypes:
            return said(lambda: compare(ASSERT, self.op, ours, like, exact))
        # The row promises nothing about how near float64 this dtype comes.
        found = said(lambda: compare(ASSERT, self.op, ours, like))
        if found and "tolerance" in found and exact is not None and self.dtype == "complex64":
            arrays = [OURS.numpy(tensor) for tensor in flatten(ours)]
            return None if near_exact(self.op, drawn, arrays, exact) else found
        return found
