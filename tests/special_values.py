"""``python -m tests.special_values [--only REGEX] [--dtypes float32 ...] [--signs] [--full]``

Puts infinities, NaN, zeros of both signs, denormals, the largest numbers, ties and equal elements
into the tensors of every row of the op table, and compares results and first gradients with
PyTorch in the same dtype. Prints, for each row, how many calls differ and the first of them; it is
for reading, as PyTorch's answer is not always the better one (docs/differences.md).
"""

from __future__ import annotations

import argparse
import collections
import math
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tests.op_db import OPS
from tests.op_db._case import HostTensor, OpInfo, Sample, draw, materialize, tree_leaves, tree_map
from tests.op_db._check import flatten
from tests.op_db._device import OURS, TORCH, Side

inf, nan = math.inf, math.nan
DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64")
SAMPLES = 4  # of a row, whatever it has more
_TIES = (0.0, 1.0, -1.0, 0.5)


def _singles(dtype: str) -> list[complex]:
    limits = torch.finfo(getattr(torch, dtype))
    values = [inf, -inf, nan, 0.0, -0.0, 1.0, -1.0, limits.max, -limits.max]
    values += [limits.smallest_normal / 4, 1e4, -1e4, 0.5, 88.0, -88.0]
    if dtype.startswith("complex"):
        values += [complex(0, inf), complex(inf, nan), complex(0, 1), complex(-0.0, -1)]
        values += [complex(-1, -0.0), complex(-2, 0.0)]
    return values


def fillings(dtype: str) -> Iterator[tuple[str, Any]]:
    """(name, function of a drawn array, its number and a generator) that puts values into it."""
    singles, largest = _singles(dtype), torch.finfo(getattr(torch, dtype)).max
    kind = np.complex128 if dtype.startswith("complex") else np.float64

    def everywhere(value):
        return lambda array, number, rng: np.full(array.shape, value, kind)

    def at_one_place(value):
        def fill(array, number, rng):
            array = array.astype(kind)
            if array.size:
                array.reshape(-1)[rng.integers(array.size)] = value
            return array

        return fill

    def only(which, fill):
        return lambda array, number, rng: fill(array, number, rng) if number == which else array

    def of(values):
        return lambda array, number, rng: rng.choice(np.array(values, kind), array.shape)

    for value in singles:
        yield f"all {value}", everywhere(value)
        yield f"one {value}", at_one_place(value)
        yield f"all {value} in the first", only(0, everywhere(value))
        yield f"one {value} in the first", only(0, at_one_place(value))
        yield f"one {value} in the second", only(1, at_one_place(value))
    for turn in range(4):
        yield f"mixed {turn}", of([v for v in singles if abs(v) != largest])
    for turn in range(3):
        yield f"ties {turn}", of(_TIES)


class Call:
    """A row's sample with some values put into its tensors."""

    def __init__(self, op: OpInfo, sample: Sample, dtype: str, name: str, fill: Any) -> None:
        self.op, self.dtype, self.name = op, dtype, name
        rng = np.random.default_rng(zlib.crc32(f"{op.name}{sample!r}{name}".encode()))
        args, kwargs = draw(op, sample, dtype)
        numbers = iter(range(100))
        limits = torch.finfo(getattr(torch, dtype))

        def leaf(item):
            if not (isinstance(item, HostTensor) and item.dtype_varies):
                return item
            array = np.asarray(fill(item.array, next(numbers), rng))
            if not dtype.startswith("complex"):
                finite = np.isfinite(array)
                array = np.where(finite, np.clip(array, limits.min, limits.max), array)
            return item._replace(array=array)

        self.drawn = tree_map(leaf, (args, kwargs))

    @property
    def varied(self) -> bool:
        return any(v.dtype_varies for v in tree_leaves(self.drawn, HostTensor))

    def run(self, side: Side) -> tuple[list[Any], list[Any]]:
        """Results and gradients, as arrays and other values."""
        inputs = []

        def make(value, dtype):
            tensor = side.tensor(value.array, dtype)
            if value.dtype_varies and value.requires_grad:
                tensor.requires_grad_(True)
                inputs.append(tensor)
            return tensor

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            side.module.manual_seed(1)
            args, kwargs = materialize(self.drawn, side, make=make)
            results = flatten(self.op.run(side.module, args, kwargs))
            outputs = [r for r in results if side.is_tensor(r) and r.requires_grad]
            gradients: list[Any] = []
            if outputs and inputs:
                ups = [self._upstream(side, o, i) for i, o in enumerate(outputs)]
                gradients = side.module.autograd.grad(outputs, inputs, ups, allow_unused=True)
        return [self._host(side, r) for r in results], [
            self._host(side, x if g is None else g, g is None)
            for g, x in zip(gradients, inputs, strict=False)
        ]

    @staticmethod
    def _upstream(side: Side, output: Any, number: int) -> Any:
        rng = np.random.default_rng(number)
        array = rng.uniform(0.5, 1.5, tuple(output.shape))
        return side.tensor(array, side.dtype(output))

    @staticmethod
    def _host(side: Side, value: Any, nothing: bool = False) -> Any:
        if not side.is_tensor(value):
            return value
        array = side.numpy(value.detach())
        return np.zeros_like(array) if nothing else array


def _kind(value: complex) -> str:
    if isinstance(value, (complex, np.complexfloating)):
        return f"({_kind(value.real)},{_kind(value.imag)})"
    if value != value:
        return "nan"
    if abs(value) == inf:
        return "inf" if value > 0 else "-inf"
    return ("-0" if np.signbit(value) else "0") if value == 0 else "finite"


def difference(got: Any, wanted: Any, dtype: str, signs: bool) -> str:
    """What differs first: the kinds of the two values; "" if nothing does."""
    if not isinstance(wanted, np.ndarray):
        same = got == wanted or (got != got and wanted != wanted)
        return "" if same else f"{got!r} for {wanted!r}"
    if not isinstance(got, np.ndarray) or got.shape != wanted.shape:
        return "another shape"
    if got.dtype != wanted.dtype:
        return f"{got.dtype} for {wanted.dtype}"
    relative = {"float64": 1e-7, "float32": 1e-3, "complex64": 1e-3}.get(dtype, 4e-2)
    if wanted.dtype.kind in "fc":
        sizes = np.abs(wanted[np.isfinite(wanted)]) if wanted.size else np.zeros(0)
        largest = sizes.max() if sizes.size else 0.0
        share = 1.0 if relative > 1e-2 else 1e-2  # two-byte numbers lose what cancels
        absolute = relative * share * max(1.0, largest)
    if wanted.dtype.kind == "c":
        parts = [(got.real, wanted.real), (got.imag, wanted.imag)]
    else:
        parts = [(got, wanted)]
    bad = np.zeros(wanted.shape, bool)
    for left, right in parts:
        if left.dtype.kind == "f":
            bad |= ~np.isclose(left, right, relative, absolute, equal_nan=True)
            if signs:
                bad |= (left == 0) & (right == 0) & (np.signbit(left) != np.signbit(right))
        else:
            bad |= left != right
    if not bad.any():
        return ""
    index = np.unravel_index(np.argmax(bad), bad.shape)
    a, b = got[index], wanted[index]
    what = f"{_kind(a)} for {_kind(b)}" if wanted.dtype.kind in "fc" else "other places"
    return f"{what}: {a} for {b} at {tuple(map(int, index))}"


def sweep(only: str, dtypes: list[str], signs: bool) -> Iterator[tuple[Any, ...]]:
    """(row, dtype, which, filling, sample, what differs or "") of every call."""
    for op in OPS:
        if not re.search(only, op.name):
            continue
        samples = [s for s in op.samples if s.mode in ("full", "torch", "forward")][:SAMPLES]
        for dtype in dtypes:
            if dtype not in op.dtypes:
                continue
            for sample in samples:
                for name, fill in fillings(dtype):
                    try:
                        call = Call(op, sample, dtype, name, fill)
                        if not call.varied:
                            break
                        wanted = call.run(TORCH)
                    except Exception:
                        continue
                    try:
                        got = call.run(OURS)
                    except Exception as error:
                        yield op.name, dtype, "raises", name, sample, f"{error!r:.150}"
                        continue
                    for which, left, right in zip(
                        ("forward", "gradient"), got, wanted, strict=True
                    ):
                        found = ""
                        if len(left) != len(right):
                            found = f"{len(left)} for {len(right)} values"
                        for i, (a, b) in enumerate(zip(left, right, strict=False)):
                            found = found or difference(a, b, dtype, signs and which == "forward")
                            if found and " of number " not in found:
                                found = f"{found} of number {i}"
                        yield op.name, dtype, which, name, sample, found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="tests.special_values", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="rows to run")
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES), choices=DTYPES)
    parser.add_argument("--signs", action="store_true", help="signs of zero in results, too")
    parser.add_argument("--full", action="store_true", help="print every difference")
    given = parser.parse_args()
    torch.set_num_threads(1)
    calls, bad = collections.Counter(), collections.Counter()
    first: dict[Any, list[Any]] = {}
    for row, dtype, which, name, sample, found in sweep(given.only, given.dtypes, given.signs):
        calls[which] += 1
        if found:
            bad[which] += 1
            if given.full:
                print(row, dtype, which, f"[{name}]", sample, found, flush=True)
            kind = found.split(":")[0]
            first.setdefault((row, which, kind), []).append((dtype, name, sample, found))
    for (row, which, kind), found in first.items():
        dtype, name, sample, what = found[0]
        dtypes = ",".join(dict.fromkeys(d for d, *_ in found))
        print(
            f"{len(found):5} {row:36} {which:8} {kind:24} [{dtypes}] [{name}] {sample!r:.90} {what}"
        )
    print(dict(calls), dict(bad))
    return 0


if __name__ == "__main__":
    sys.exit(main())
