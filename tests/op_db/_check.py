"""Running a row on both sides and comparing what comes out: shared by the suites in tests/ops."""

from __future__ import annotations

import contextlib

import numpy as np
import torch
from parameterized import parameterized

from tests.op_db._case import (
    HostTensor,
    OpInfo,
    Sample,
    TensorSpec,
    draw,
    materialize,
    oracle_dtype,
    tree_leaves,
)
from tests.op_db._device import OURS, TORCH, Side


def parametrize_rows(rows, dtypes=False):
    """One test per row, or per row and dtype."""
    cases = (
        [(op, dtype) for op in rows for dtype in op.dtypes] if dtypes else [(op,) for op in rows]
    )

    def named(function, number, param):
        words = [str(arg).replace(".", "_") for arg in param.args]
        return "__".join([function.__name__, *words])

    return parameterized.expand(cases, name_func=named, skip_on_empty=True)


@contextlib.contextmanager
def failure_note(*words):
    """Say which sample it was when something fails inside."""
    try:
        yield
    except BaseException as error:
        error.add_note("in " + " ".join(str(word) for word in words))
        raise


def representable(sample: Sample, dtype: str) -> bool:
    """Whether the dtype has the sample's literal values: integers have no infinities, no halves."""
    if "float" in dtype:
        return True
    args = tree_leaves((sample.args, sample.kwargs), TensorSpec)
    values = [np.asarray(a.literal) for a in args if a.literal is not None and a.dtype is None]
    if dtype.startswith("complex"):
        return not values
    return all(np.isfinite(v).all() and not np.mod(v, 1).any() for v in values)


def flatten(result) -> list:
    """The leaves of a result: tensors, numbers, flags."""
    if isinstance(result, (tuple, list)) and type(result).__name__ != "Size":
        return [leaf for item in result for leaf in flatten(item)]
    return [result]


def field_names(result) -> list[str]:
    """The names under which PyTorch gives out the parts of a result (`values`, `indices`)."""
    kind = type(result)
    if not (isinstance(result, tuple) and kind.__module__ == "torch.return_types"):
        return []
    return [name for name in dir(kind) if type(getattr(kind, name)).__name__ == "member_descriptor"]


def assert_close(got: np.ndarray, expected: np.ndarray, tolerance) -> None:
    """Equal up to a tolerance; NaN equals NaN, infinities their like."""
    relative, absolute = tolerance
    np.testing.assert_allclose(got, expected, rtol=relative, atol=absolute)


def compare(test, op: OpInfo, ours, same, oracle=None) -> None:
    """`ours` has dtypes and shapes of `same` (PyTorch, same dtype), values of `oracle` (wide)."""
    for name in field_names(same):
        test.assertTrue(hasattr(ours, name), f"the result has no field {name!r}")
    ours, same = flatten(ours), flatten(same)
    oracle = same if oracle is None else flatten(oracle)
    test.assertEqual(len(ours), len(same), "number of results")
    for got, like, exact in zip(ours, same, oracle, strict=True):
        if not isinstance(like, torch.Tensor):
            kind = OURS.module.Size if isinstance(like, torch.Size) else type(like)
            test.assertIsInstance(got, kind)
            test.assertEqual(got, like)
            continue
        test.assertTrue(OURS.is_tensor(got), f"a tensor was expected, not {type(got).__name__}")
        test.assertEqual(OURS.dtype(got), TORCH.dtype(like), "dtype")
        test.assertEqual(tuple(got.shape), tuple(like.shape), "shape")
        test.assertEqual(got.device.type, OURS.device, "device")
        values = TORCH.numpy(exact.detach().to(like.dtype))
        assert_close(OURS.numpy(got), values, op.tolerance(TORCH.dtype(like)))


def expected(op: OpInfo, drawn, layout=Side.tensor):
    """PyTorch's result in the same dtype, and in float64 (None: the same)."""

    def run(widen):
        make = lambda value, dtype: layout(TORCH, value.array, dtype)
        return TORCH.run(op, *materialize(drawn, TORCH, widen, make))

    narrow = any(
        oracle_dtype(v.dtype) != v.dtype for v in tree_leaves(drawn, HostTensor) if v.dtype_varies
    )
    return run(False), run(True) if narrow and not op.same_dtype_oracle else None


def run_ours(op: OpInfo, drawn, layout=Side.tensor):
    """Our result for inputs laid out by `layout(side, array, dtype)`, which must not change."""
    inputs = []

    def make(value, dtype):
        inputs.append(layout(OURS, value.array, dtype))
        return inputs[-1]

    args, kwargs = materialize(drawn, OURS, make=make)
    try:
        return OURS.run(op, args, kwargs)
    finally:
        for tensor, value in zip(inputs, tree_leaves(drawn, HostTensor), strict=True):
            np.testing.assert_array_equal(OURS.numpy(tensor), value.array, "an input has changed")


class GradientCase:
    """A sample whose derivatives of any order are taken along fixed random upstream gradients.

    Order 0 is the outputs; order k the gradient of <order k-1, upstream k>, with respect to the
    inputs and, from the second on, to the first upstream gradients too (as in a gradient penalty).
    """

    def __init__(self, op: OpInfo, sample: Sample):
        self.op, self.sample, self.run = op, sample, op.run
        self.drawn = draw(op, sample, "float64")
        self.inputs = [
            v
            for v in tree_leaves(self.drawn, HostTensor)
            if v.requires_grad and v.dtype in ("float64", "float32")
        ]
        self.wants_grad: dict[Side, list[bool]] = {}
        self.wants_second: dict[Side, list[bool]] = {}

    def directions(self, order, arrays) -> list[np.ndarray]:
        """Fixed random arrays of the given ones' shapes."""
        seed = 99 if order == "step" else order
        return [
            np.random.default_rng([seed, i]).standard_normal(a.shape) for i, a in enumerate(arrays)
        ]

    def derivative(self, side, order: int, step=0.0, directions=(), **options) -> list[np.ndarray]:
        """All gradients of an order, at inputs (and first upstream gradients) moved by a step.

        Options: `dtype`; `upstream(side, array, dtype)` lays out the first upstream gradients.
        """
        return side.call(self._derivative, side, order, step, directions, **options)

    def depends(self, side) -> list[bool]:
        """Of which inputs the gradients, along constant ones, require a gradient themselves."""
        side.call(self._derivative, side, 1, 0.0, (), record=True)
        return self.wants_second[side]

    def _derivative(
        self, side, order, step, directions, dtype="float64", upstream=Side.tensor, record=False
    ):
        moved, inputs = iter(directions), []

        def make(value, own_dtype):
            if not (value.requires_grad and value.dtype in ("float64", "float32")):
                return side.tensor(value.array, dtype if value.dtype_varies else own_dtype)
            shift = next(moved, 0.0)
            array = value.array + step * shift
            inputs.append(
                side.tensor(array, dtype if value.dtype_varies else own_dtype).requires_grad_(True)
            )
            return inputs[-1]

        args, kwargs = materialize(self.drawn, side, make=make)
        level = flatten(self.run(side.module, args, kwargs))
        self.wants_grad[side] = [bool(side.is_tensor(t) and t.requires_grad) for t in level]
        level = [t for t, wants in zip(level, self.wants_grad[side], strict=True) if wants]
        variables = list(inputs)
        for number in range(1, order + 1):
            zeros = [np.zeros(tuple(t.shape)) for t in level]
            arrays = [
                v + step * next(moved, 0.0) if number == 1 else v
                for v in self.directions(number, zeros)
            ]
            kinds = [side.dtype(t) for t in level]
            lay = upstream if number == 1 else Side.tensor
            ups = [lay(side, a, kind) for a, kind in zip(arrays, kinds, strict=True)]
            if number == 1 and order > 1:
                ups = [up.requires_grad_(True) for up in ups]
            live = [(t, up) for t, up in zip(level, ups, strict=True) if t.requires_grad]
            found = [None] * len(variables)
            if live:
                found = side.module.autograd.grad(
                    [t for t, _ in live],
                    variables,
                    [up for _, up in live],
                    create_graph=record or number < order,
                    allow_unused=True,
                )
            level = [self._gradient(side, g, x) for g, x in zip(found, variables, strict=True)]
            if number == 1:
                self.wants_second[side] = [g is not None and bool(g.requires_grad) for g in found]
                variables = variables + ups
        return [side.numpy(t).astype(np.float64) for t in level]

    def compare(self, got, expected, dtype="float64") -> None:
        """Our gradients against PyTorch's: sums of products, hence ten times the tolerance."""
        relative, absolute = self.op.tolerance(dtype)
        for left, right in zip(got, expected, strict=True):
            size = max(1.0, np.abs(right).max(initial=0, where=np.isfinite(right)))
            assert_close(left, right, (10 * relative, 10 * absolute * size))

    def _gradient(self, side, g, x):
        if g is None:
            return side.tensor(np.zeros(tuple(x.shape)), side.dtype(x))
        kinds = [(tuple(t.shape), t.dtype, t.device) for t in (g, x)]
        if kinds[0] != kinds[1]:
            raise AssertionError(f"a gradient of {kinds[0]} for an input of {kinds[1]}")
        return g


__all__ = [
    "OURS",
    "TORCH",
    "GradientCase",
    "assert_close",
    "compare",
    "expected",
    "failure_note",
    "flatten",
    "parametrize_rows",
    "representable",
    "run_ours",
]
