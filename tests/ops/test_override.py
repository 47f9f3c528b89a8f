"""A backend's own implementations against the generic ones, both measured from float64.

The rows are run once with a recorder in the place of every entry of the dispatch table. What
reached an override is then given to it, to the generic body, and to the generic body in float64;
an entry that nothing reached lacks a row.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import unittest
import unittest.mock

import numpy as np
from parameterized import parameterized

from tests.device import ACCELERATED
from tests.op_db import OPS
from tests.op_db._case import draw, materialize
from tests.op_db._check import OURS, GradientCase, representable
from tests.op_db._device import SELF_CHECK

KEPT = 24  # served calls kept per override
DTYPES = ("float32", "float16", "float64", "int64")
# Entries that functions of one tensor do not reach, and the tests that do.
ELSEWHERE = {
    **dict.fromkeys(
        ("count_steps", "zero_each", "clamp_each", "grad_norm", "clip_to_norm")
        + ("amp_unscale", "amp_update_scale"),
        "over lists of gradients: tests/optim",
    ),
    **dict.fromkeys(("count_on_host", "read_on_host"), "of counts and numbers: tests/optim"),
    "copy_each": "over lists of gradients: tests/kernels, tests/distributed",
    **dict.fromkeys(("transfer", "to_device"), "needs a second device: tests/tensor"),
    **dict.fromkeys(("dropout", "dropout_backward"), "random: tests/ops/test_dropout.py"),
    **dict.fromkeys(
        ("attention_dropout", "attention_dropout_backward", "attention_noise"),
        "random: tests/ops/test_attention.py, tests/kernels",
    ),
    "sampled": "random: tests/backends",
    "restride": "of large tensors: tests/cuda/test_layouts.py",
    "cast_weight": "of parameters under autocast: tests/amp, tests/kernels/test_conv2d_few.py",
    **dict.fromkeys(
        ("binomial", "standard_gamma", "sample_dirichlet"),
        "random: tests/tensor/test_random_gamma.py",
    ),
    **dict.fromkeys(
        ("gather", "gather_backward", "scatter_add_to"),
        "over many places: tests/backends/test_indexing.py",
    ),
    "gather_sparse": "its gradient is sparse: tests/sparse",
    "put_along_axis": "applied in second derivatives only: tests/ops/test_grad.py",
}
# What an override may write in place instead of returning it last: positions of the operands.
WRITTEN = {"batch_norm": (3, 4)}
# Units in the last place of the largest value that are allowed, where 8 are too few and why.
SLACK = {
    # softmax's gradient is a difference of like terms, larger than what stays of them
    **dict.fromkeys(("attention_backward", "attention_dropout_backward"), 64),
}
if SELF_CHECK:
    TABLE, OVERRIDES = {}, {}
else:
    from tensorflow_lite_clone.backends import load
    from tensorflow_lite_clone.dispatch import hooks, table
    from tensorflow_lite_clone.dispatch.op import TABLE, is_op

    OPTIM = importlib.import_module("tensorflow_lite_clone.optim").__name__
    for name, entry in TABLE.items():
        if not is_op(entry) and entry.__module__.startswith(OPTIM):
            ELSEWHERE[name] = "tests/optim"

    BACKEND = load(OURS.device)
    LAYER = BACKEND.accelerators[-1] if ACCELERATED else BACKEND.name
    OVERRIDES = {name: f for (name, kind), f in table.overrides.items() if kind == LAYER}


class Recorder:
    """Stands in for an override, or for an entry without one, and keeps what it was called with."""

    def __init__(self, function=None):
        self.function, self.reached, self.calls = function, False, []

    def __call__(self, namespace, *arrays, **parameters):
        self.reached = True
        if self.function is None:
            return NotImplemented  # the generic body runs
        copies = [*map(copied, arrays)] if len(self.calls) < KEPT else None
        result = self.function(namespace, *arrays, **parameters)
        if copies is not None and result is not NotImplemented:
            self.calls.append((copies, parameters))
        return result

    def watch(self, write):
        """Note that an op wrote straight into its target."""

        def watched(*arrays, **parameters):
            self.reached = True
            return write(*arrays, **parameters)

        return watched


@functools.cache
def recorders() -> dict[str, Recorder]:
    """A recorder for each entry of the table, after all rows have run; made once."""
    made = {name: Recorder(OVERRIDES.get(name)) for name in TABLE}
    for name, recorder in made.items():
        table.override(name, LAYER)(recorder)
    writes = {entry: entry.write for entry in TABLE.values() if getattr(entry, "write", None)}
    for entry, write in writes.items():
        entry.write = staticmethod(made[entry.name].watch(write))
    # While a hook is active no function takes a short cut past the table.
    hook = lambda op, backend, call: call
    write_hook = lambda op, call, arrays, parameters: call()
    hooks.add(hook)
    hooks.around_write.append(write_hook)
    try:
        with as_for_large_arrays():
            run_the_table()
    finally:
        hooks.around_write.remove(write_hook)
        hooks.remove(hook)
        for entry, write in writes.items():
            entry.write = staticmethod(write)
        for name in made:
            # Registering again also clears what the dispatcher has cached.
            table.override(name, LAYER)(OVERRIDES.get(name))
            if name not in OVERRIDES:
                del table.overrides[name, LAYER]
    return made


def is_array(value) -> bool:
    return isinstance(value, BACKEND.array_type)


def run_the_table() -> None:
    """Every row forward in some dtypes, and backward; failures are other suites' business."""
    for op in OPS:
        for sample in op.samples:
            attempts = [
                lambda o=op, s=sample, d=dtype: OURS.run(o, *materialize(draw(o, s, d), OURS))
                for dtype in DTYPES
                if dtype in op.dtypes and representable(sample, dtype)
            ]
            if op.supports_autograd and sample.mode != "forward":
                attempts += [
                    functools.partial(GradientCase(op, sample).derivative, OURS, order, dtype=dtype)
                    for order, dtype in ((1, "float32"), (2, "float64"))
                ]
            for attempt in attempts:
                with contextlib.suppress(Exception):
                    attempt()


@contextlib.contextmanager
def as_for_large_arrays():
    """Let overrides that leave small arrays to the generic form, or work in blocks, do so here."""
    if BACKEND.name != "numpy":
        yield
        return
    from tensorflow_lite_clone.backends.numpy.tuning import tuning

    sizes = {"small_elementwise": 1, "small_normalization": 1, "lstm_columns": 1}
    sizes |= {"block_elements": 15, "gather_minimum": 1, "gather_row": 1}
    with contextlib.ExitStack() as changed:
        for name, size in sizes.items():
            changed.enter_context(unittest.mock.patch.object(tuning, name, size))
        yield


def flat(result) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def host(array) -> np.ndarray:
    array = np.asarray(BACKEND.to_host(array))
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def copied(value):
    return value.copy(order="K") if is_array(value) else value


def widened(array):
    """The array in float64 if it is of a narrower floating dtype."""
    narrow = is_array(array) and (array.dtype.kind == "f" or array.dtype.name == "bfloat16")
    return array.astype("float64") if narrow else array


class TestCoverage(unittest.TestCase):
    @unittest.skipIf(SELF_CHECK, "PyTorch has no dispatch table")
    def test_every_entry_has_a_row(self):
        missing = {name for name, recorder in recorders().items() if not recorder.reached}
        self.assertEqual(sorted(missing - set(ELSEWHERE)), [])


class TestOverride(unittest.TestCase):
    @parameterized.expand(sorted(set(OVERRIDES) - set(ELSEWHERE)), skip_on_empty=True)
    def test(self, name):
        special, entry = OVERRIDES[name], TABLE[name]
        generic = entry.forward if isinstance(entry, type) else entry
        calls = recorders()[name].calls
        self.assertTrue(calls, "this override serves no row of the table")
        # Some write into what they are given (running statistics), so they get copies.
        given = [list(map(copied, arrays)) for arrays, _ in calls]
        with as_for_large_arrays():
            results = [special(BACKEND.F, *a, **p) for a, (_, p) in zip(given, calls, strict=True)]
        for i, (arrays, parameters) in enumerate(calls):
            usual = generic(BACKEND.F, *arrays, **parameters)
            exact = generic(BACKEND.F, *map(widened, arrays), **parameters)
            mine = flat(results[i])
            if len(mine) < len(flat(usual)):  # the others were written in place
                mine += [given[i][k] for k in WRITTEN[name] if given[i][k] is not None]
            outputs = zip(mine, flat(usual), flat(exact), strict=True)
            for number, (mine, plain, true) in enumerate(outputs):
                if number in getattr(entry, "auxiliary_outputs", ()) and not plain.size:
                    continue  # in the backend's own form
                if plain is None:
                    self.assertIsNone(mine)
                    continue
                self.assertEqual((mine.shape, mine.dtype), (plain.shape, plain.dtype))
                self.as_good(mine, plain, host(true), SLACK.get(name, 8))

    def as_good(self, mine, plain, true, units):
        """err(override) <= 2 err(generic) + a few units in the last place."""
        kind = mine.dtype
        mine, plain = host(mine), host(plain)
        finite = np.isfinite(plain) & np.isfinite(true)
        np.testing.assert_array_equal(mine[~finite], plain[~finite])
        if not finite.any():
            return
        unit = np.finfo(kind).eps if kind.kind in "fc" else {"bfloat16": 2**-7}.get(kind.name, 0)
        slack = units * unit * np.abs(true[finite]).max()
        allowed = 2 * np.abs(plain - true)[finite].max() + slack
        self.assertLessEqual(np.abs(mine - true)[finite].max(), allowed)
