"""Random calls against PyTorch: python -m tests.tools.fuzz --calls 20000 --seed 0.

A call is a sample of a random row of the op table with other sizes, another dtype, other layouts in
memory and, at times, NaNs, infinities and negative zeros. Values, dtypes, shapes and refusals must
be PyTorch's, and inputs must stay as they are. What differs is printed with the number of its call;
`--only NUMBER` repeats that one.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import unittest
from collections import Counter
from typing import Any

import numpy as np

from tests.op_db import FAMILIES, OPS
from tests.op_db._case import ALL, COMPLEX, FLOATS, Arg, Op, Sample, Value, draw, leaves, tree_map
from tests.op_db._check import OURS, TORCH, compare, expected, flat, run_ours, serves
from tests.op_db._device import Side
from tests.op_db._layouts import stepped, transposed

REFUSALS = (RuntimeError, IndexError, ValueError, TypeError)
#: With these PyTorch says that it lacks a kernel for a dtype, or wants another layout.
LACKS = ("not implemented for", "not supported", "unsupported", "view size is not compatible",
         "must be contiguous", "only supports", "expects floating", "does not support",
         "could not infer output dtype", "to be floating point", "cannot be converted to type",
         "primitive descriptor", "with stride 1", "can't be cast to the desired",
         "INTERNAL ASSERT FAILED", "is_contiguous", "exceeds dimension size")  # fmt: skip
SIZES = (0, 1, 2, 3, 5)
ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0)
ROWS = [op for op in OPS if op.layout and op.samples]
#: Rows that say what becomes of odd values; sums of products may multiply infinities by zeros.
FAMILIES_OF_ODD = ("pointwise", "special", "reduce", "shape", "index")
EXACT = {op for name in FAMILIES_OF_ODD for op in FAMILIES[name]}
ASSERT = unittest.TestCase()


class Call:
    """One random call; the same for the same seed and number."""

    def __init__(self, seed: int, number: int) -> None:
        self.number = number
        self.rng = rng = np.random.default_rng([seed, number])
        self.op: Op = ROWS[rng.integers(len(ROWS))]
        sample = self.op.samples[rng.integers(len(self.op.samples))]
        own = rng.random() < 0.75 or "dtypes" in self.op.accidents
        dtypes = self.op.dtypes if own else (*ALL, *COMPLEX)
        self.dtype = str(dtypes[rng.integers(len(dtypes))])
        resized = rng.random() < 0.7 and "resized" not in self.op.accidents
        self.sample: Sample = self._resized(sample) if resized else sample
        self.layouts = rng.integers(0, 1 if "layouts" in self.op.accidents else 3, 16)
        self.odd = rng.random() < 0.3 and self.op in EXACT and "odd" not in self.op.accidents

    def _resized(self, sample: Sample) -> Sample:
        """Equal sizes become other equal sizes."""
        args = leaves((sample.args, sample.kwargs), Arg)
        sizes = sorted({size for arg in args for size in arg.shape if size > 1})
        choices = SIZES[1:] if {"empty", "sizes"} & {*self.op.accidents} else SIZES
        new = {
            size: size if self.rng.random() < 0.4 else int(self.rng.choice(choices))
            for size in sizes
        }

        def change(leaf: Any) -> Any:
            if not isinstance(leaf, Arg) or leaf.literal is not None:
                return leaf
            return leaf._replace(shape=tuple([new.get(size, size) for size in leaf.shape]))

        args, kwargs = tree_map(change, (sample.args, sample.kwargs))
        return sample._replace(args=args, kwargs=kwargs)

    def __repr__(self) -> str:
        odd = " with odd values" if self.odd else ""
        return f"call {self.number}: {self.op.name}{self.sample!r} in {self.dtype}{odd}"

    def values(self) -> Any:
        """The arguments, tensors as host arrays."""
        drawn = draw(self.op, self.sample, self.dtype)
        if not self.odd or self.op.of.distinct:
            return drawn

        def change(value: Any) -> Any:
            if not (isinstance(value, Value) and value.follows and value.dtype in FLOATS):
                return value
            if value.arg.literal is not None:  # sorted, say
                return value
            array = value.array.copy()
            places = self.rng.random(array.shape) < 0.2
            array[places] = self.rng.choice(ODD, int(places.sum()))
            return value._replace(array=array)

        return tree_map(change, drawn)

    def layout(self) -> Any:
        """A layout function that gives each tensor in turn its own, the same for both sides."""
        kinds = (Side.tensor, transposed, stepped)
        turns: dict[Any, int] = {}

        def lay(side: Any, array: np.ndarray, dtype: str) -> Any:
            turn = turns[side] = turns.get(side, -1) + 1
            return kinds[self.layouts[turn % len(self.layouts)]](side, array, dtype)

        return lay

    def judge(self) -> str | None:
        """None, or how the outcome differs."""
        try:
            drawn = self.values()
            tensors = [value.array for value in leaves(drawn, Value) if value.dtype == "uint8"]
            if any(array.size and array.max() > 255 for array in tensors):
                return None
        except OverflowError:  # a literal of the sample that an unsigned dtype does not have
            return None
        theirs = _outcome(lambda: expected(self.op, drawn, self.layout()))
        ours = _outcome(lambda: run_ours(self.op, drawn, self.layout()))
        if isinstance(ours, Exception) and not isinstance(ours, (*REFUSALS, type(theirs))):
            return f"crash: {type(ours).__name__}: {ours}"
        if isinstance(theirs, Exception):
            if isinstance(ours, Exception) or any(word in str(theirs) for word in LACKS):
                return None
            return f"PyTorch refuses: {type(theirs).__name__}: {str(theirs).splitlines()[0]}"
        if isinstance(ours, Exception):
            if re.search("out of (bounds|range)", str(ours)):
                return None  # PyTorch does not look where nothing is read, and in take_along_dim
            if self.dtype not in self.op.dtypes:
                return None  # the row says so
            return f"refused: {type(ours).__name__}: {ours}"
        like, exact = theirs
        if self.dtype not in self.op.dtypes:
            exact = None  # the row promises nothing about how near float64 this dtype comes
        if any(TORCH.is_tensor(x) and TORCH.dtype(x) == "complex32" for x in flat(like)):
            return None  # there is no such dtype here
        try:
            compare(ASSERT, self.op, ours, like, exact)
        except AssertionError as error:
            return "differs: " + " ".join(str(error).split())[:300]
        return None


def _outcome(function: Any) -> Any:
    try:
        return function()
    except Exception as error:  # noqa: BLE001  any exception is an answer to compare
        return error


def run(seed: int, numbers: range) -> Counter[str]:
    """Print what differs among the calls of these numbers; how often each row did."""
    found: Counter[str] = Counter()
    for number in numbers:
        call = Call(seed, number)
        if not serves(call.sample, call.dtype):
            continue
        said = call.judge()
        if said:
            found[call.op.name] += 1
            print(f"{call!r}\n    {said}", flush=True)
    return found


def main(arguments: list[str]) -> int:
    """Run the calls; 1 when one differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one call")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    only = options.only
    numbers = range(options.calls) if only is None else range(only, only + 1)
    found = run(options.seed, numbers)
    seconds = time.monotonic() - start
    print(f"{len(numbers)} calls on {OURS.device}, {sum(found.values())} differ ({seconds:.0f} s)")
    for name, count in found.most_common():
        print(f"{count:6} {name}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
