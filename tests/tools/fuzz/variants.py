"""Rows of the op table in other forms: mixed dtypes, methods, written in place, into `out=`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tests.op_db import FAMILIES, OPS
from tests.op_db._case import (
    HostTensor,
    OpInfo,
    Sample,
    TensorSpec,
    draw,
    materialize,
    tree_leaves,
    tree_map,
)
from tests.op_db._check import TORCH, representable
from tests.op_db._device import Side
from tests.tools.fuzz.drawing import DTYPES, LAYOUTS, one_of, scalar
from tests.tools.fuzz.judging import (
    SIDES,
    afterwards,
    alike,
    outcome,
    refusals,
    said,
)
from tests.tools.fuzz.plain import Random
from tests.tools.fuzz.rows import ROWS, overflows, pick

#: Rows whose functions promote their arguments.
MIXED = [op for name in ("pointwise", "reduce", "shape", "index") for op in FAMILIES[name]]
MIXED = [op for op in MIXED if op in ROWS and "dtypes" not in op.skip_undefined_behavior]
INPLACE = [op for op in ROWS if op.inplace_variant and "dtypes" not in op.skip_undefined_behavior]
OUT = [op for op in OPS if op.supports_out and op.check_layouts and op.samples]
ELEMENTWISE = set(FAMILIES["pointwise"])


def mixed(rng: Random, op: OpInfo, sample: Sample, chance: float) -> Sample:
    """Some tensors get dtypes of their own, some no dimensions, some become Python numbers."""
    first = True

    def change(leaf: Any) -> Any:
        nonlocal first
        if not isinstance(leaf, TensorSpec) or leaf.literal is not None or leaf.dtype is not None:
            return leaf
        was_first, first = first, False
        if rng.random() >= chance:
            return leaf
        if not was_first and op.call is None and rng.random() < 0.15:
            return scalar(rng)
        shape = () if not was_first and rng.random() < 0.2 else leaf.shape
        return leaf._replace(dtype=one_of(rng, DTYPES), shape=shape)

    args, kwargs = tree_map(change, (sample.args, sample.kwargs))
    return sample._replace(args=args, kwargs=kwargs)


class Variant:
    """A call of a row's sample, compared with PyTorch's in the same dtypes."""

    rows = MIXED
    form = "mixed"

    def __init__(self, rng: Random, chance: float = 0.7) -> None:
        self.op, sample = pick(rng, self.rows)
        self.sample = (
            sample if self.op.skip_undefined_behavior else mixed(rng, self.op, sample, chance)
        )
        self.dtype = str(one_of(rng, self.op.dtypes))
        self.layouts = (
            [0] * 3 if "layouts" in self.op.skip_undefined_behavior else rng.integers(0, 3, 3)
        )

    @property
    def name(self) -> str:
        return f"{self.op.name} ({self.form})"

    def __repr__(self) -> str:
        return f"{self.op.name}{self.sample!r} in {self.dtype}, {self.form}"

    def run(self, side: Side, args: tuple, kwargs: dict) -> Any:
        """The result."""
        return self.op.run(side.module, args, kwargs)

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """How far a result of the dtype may be from PyTorch's."""
        return self.op.tolerance(dtype)

    def drawn(self) -> Any:
        """The arguments, or None where the dtype does not have their values."""
        if not representable(self.sample, self.dtype):
            return None
        try:
            drawn = draw(self.op, self.sample, self.dtype)
        except OverflowError:
            return None
        return None if overflows(drawn) else drawn

    def _both(self, side: Side, drawn: Any) -> tuple[Any, Any]:
        made: list[Any] = []

        def make(value: HostTensor, dtype: str) -> Any:
            layout = LAYOUTS[self.layouts[len(made) % len(self.layouts)]]
            made.append(layout(side, value.array, dtype))
            return made[-1]

        args, kwargs = materialize(drawn, side, make=make)
        return outcome(lambda: side.call(self.run, side, args, kwargs)), made

    def judge(self) -> str | None:
        """None, or how the outcome differs."""
        drawn = self.drawn()
        if drawn is None:
            return None
        (ours, left), (theirs, right) = (self._both(side, drawn) for side in SIDES)
        refused = refusals(ours, theirs, True, exact=True)
        if isinstance(refused, str):
            return refused
        if not refused:
            found = said(lambda: alike(ours, theirs, self.tolerance))
            if found:
                return found
        if isinstance(theirs, Exception) and not isinstance(ours, Exception):
            return None  # PyTorch lacks a kernel
        before = [value.array for value in tree_leaves(drawn, HostTensor)]
        return afterwards(ours, left, right, before, self.tolerance)


class Mixed(Variant):
    """Tensors of different dtypes, numbers in their place; as a method where there is one."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.method = self.op.call is None and rng.random() < 0.4
        self.form = "mixed, a method" if self.method else "mixed"

    def run(self, side: Side, args: tuple, kwargs: dict) -> Any:
        name = self.op.function
        if self.method and hasattr(TORCH.module.Tensor, name) and args:
            tensors = isinstance(args[0], side.module.Tensor)
            return getattr(args[0], name)(*args[1:], **kwargs) if tensors else None
        return super().run(side, args, kwargs)


class Inplace(Variant):
    """`x.op_(...)`; x may be repeated by `expand`, and be another argument, too."""

    rows = INPLACE

    def __init__(self, rng: Random) -> None:
        super().__init__(rng, 0.3)
        kinds = ("in place", "in place, expanded", "in place, with itself")
        self.form = str(rng.choice(kinds, p=(0.8, 0.1, 0.1)))
        if "expanded" in self.op.skip_undefined_behavior:
            self.form = "in place"

    def run(self, side: Side, args: tuple, kwargs: dict) -> Any:
        target, *others = args
        if not isinstance(target, side.module.Tensor):
            return None
        if self.form.endswith("expanded"):
            target = target.expand(2, *target.shape)
        elif self.form.endswith("itself"):
            others = [
                target if isinstance(o, side.module.Tensor) and o.shape == target.shape else o
                for o in others
            ]
        version = target._version
        result = getattr(target, self.op.inplace_variant)(*others, **kwargs)
        return result is target, target._version > version


class Out(Variant):
    """`op(..., out=out)`: other dtypes and sizes, layouts, memory that is an input's."""

    rows = OUT
    KINDS = ("right", "dtype", "shape", "layout", "an input", "overlapping")

    def __init__(self, rng: Random) -> None:
        super().__init__(rng, 0.1)
        self.kind = str(rng.choice(self.KINDS if self.op in ELEMENTWISE else self.KINDS[:4]))
        without = {"layout": "layouts", "dtype": "out"}
        if without.get(self.kind) in self.op.skip_undefined_behavior:
            self.kind = "right"
        self.form = f"out: {self.kind}"
        self.other = one_of(rng, DTYPES)
        self.layout = LAYOUTS[int(rng.integers(1, 3))]
        self.shape = one_of(rng, [(0,), (2,), (3, 1), (1, 2, 4)])
        if self.kind == "overlapping":  # PyTorch does not look at tensors with gaps
            self.layouts = [0]

    def run(self, side: Side, args: tuple, kwargs: dict) -> Any:
        out = self._out(side, args)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            result = self.op.run(side.module, args, kwargs | {"out": out})
        resized = any("resized" in str(warning.message) for warning in heard)
        return result is out, resized, out

    def _out(self, side: Side, args: tuple) -> Any:
        if self.kind in ("an input", "overlapping"):
            first = next(a for a in args if isinstance(a, side.module.Tensor))
            if self.kind == "an input":
                return first
            # What would have to be resized as well is an accident of who owns the memory.
            turned = first.transpose(0, -1) if first.ndim else first
            if tuple(turned.shape) == self.like.shape:
                return turned
        dtype = self.other if self.kind == "dtype" else self.like_dtype
        lay = self.layout if self.kind == "layout" else Side.tensor
        shape = self.shape if self.kind == "shape" else self.like.shape
        made = lay(side, np.zeros(shape), dtype)
        # What NumPy owns cannot be resized.
        return made.clone() if self.kind == "shape" else made

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """An output of a wider dtype is computed in the narrower one."""
        return max(self.op.tolerance(dtype), self.op.tolerance(self.like_dtype))

    def judge(self) -> str | None:
        drawn = self.drawn()
        if drawn is None:
            return None
        like = outcome(lambda: TORCH.run(self.op, *materialize(drawn, TORCH)))
        if not TORCH.is_tensor(like) or TORCH.dtype(like) == "complex32":
            return None
        self.like, self.like_dtype = TORCH.numpy(like), TORCH.dtype(like)
        return super().judge()
