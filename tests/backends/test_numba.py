"""Kernels that Numba compiles: that they are asked first, what they keep, and when Numba comes.

tests/ops/test_override.py compares their results; a process of its own runs it here, the tests
marked `compiled`, and those of Winograd's convolutions and of captured steps, since the others run
without Numba.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import tensorflow_lite_clone.optim  # noqa: F401  it enters its steps into the table
from tensorflow_lite_clone.backends import load
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.dispatch.op import TABLE
from tests.device import ACCELERATED, DEVICE
from tests.tools.markdown import ROOT

pytestmark = [
    pytest.mark.skipif(DEVICE != "cpu", reason="about the CPU"),
    pytest.mark.skipif(find_spec("numba") is None, reason="Numba is not installed"),
]
compiled = pytest.mark.skipif(not ACCELERATED, reason="in the process that has DEVICE=numba")
CPU = load("cpu")


def child(*command: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(ACCELERATED, reason="this is the child")
def test_kernels_in_a_process_of_their_own() -> None:
    tests = (
        "tests/ops/test_override.py", "tests/backends/test_numba.py",
        "tests/backends/test_numba_compilation.py",
        "tests/backends/test_convolution_winograd.py", "tests/tensor/test_compile_chains.py",
        "tests/tensor/test_compile_replay.py",
    )  # fmt: skip
    options = "-q", "-p", "no:cacheprovider", "-W", "error"
    printed = child("-m", "pytest", *options, *tests, DEVICE="numba")
    assert " passed" in printed


START = """
import sys
import tensorflow_lite_clone as torch
x = torch.rand(SIZE, SIZE)
x.softmax(1)
print(any(name.partition(".")[0] == "numba" for name in sys.modules))
"""


@pytest.mark.parametrize(("size", "wanted"), [(8, "1"), (200, "0")])
def test_numba_is_not_imported_for_small_arrays_nor_where_it_is_not_wanted(size, wanted) -> None:
    code = START.replace("SIZE", str(size))
    assert child("-c", code, TENSORFLOW_LITE_CLONE_NUMBA=wanted).strip() == "False"


def test_an_accelerator_is_asked_first_then_the_backend_then_the_generic(monkeypatch) -> None:
    asked: list[str] = []
    declining = {"first", "second", "numpy"}

    def noting(layer: str):
        def special(F, g, y):
            asked.append(layer)
            return NotImplemented if layer in declining else g

        return special

    name = "sigmoid_backward"
    monkeypatch.setattr(CPU, "accelerators", ("second", "first"), raising=False)
    for layer in ("first", "second", "numpy"):
        monkeypatch.setitem(table.overrides, (name, layer), noting(layer))
    g, y = np.ones(2), np.full(2, 0.5)
    call = table.resolve(TABLE[name], CPU)
    before = table.declined.copy()
    np.testing.assert_array_equal(call(g, y), [0.25, 0.25])
    assert asked == ["first", "second", "numpy"]
    new = table.declined.copy() - before
    assert new == {(name, "first"): 1, (name, "second"): 1, (name, "numpy"): 1}
    declining.remove("second")
    served = table.served[name, "second"]
    assert call(g, y) is g and asked[3:] == ["first", "second"]
    assert table.served[name, "second"] == served + 1


def test_a_numba_that_cannot_be_imported_is_left_alone(monkeypatch) -> None:
    from tensorflow_lite_clone.backends.numba import layer

    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.warns(UserWarning, match="of no use"):
        assert not layer.is_there.__wrapped__()


# --- in the process with DEVICE=numba -----------------------------------------------------------


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


PLACES = np.arange(2400).reshape(40, 60) * 7 % 60


def added(F, x: np.ndarray, values: np.ndarray, axis: int = 1) -> np.ndarray:
    F.scatter_add_to(x, PLACES % x.shape[axis], values, axis=axis)
    return x


IMAGES, WINDOW = (6, 16, 12, 13), {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 0)}
DIRECT = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
NEEDS = {"needs": (True, True, True), "eps": 1e-5}
LSTM = (5, 6, 8), (28, 8), (28, 7), (28,), (6, 7), (6, 7)


def lstm_gradients(F) -> tuple:
    arrays = [random(*shape) for shape in LSTM]
    out, last, *kept = F.lstm_sequence(*arrays, backwards=True)
    return F.lstm_sequence_backward(
        out, last, *arrays, *kept, backwards=True, needs=(True,) * len(LSTM)
    )


SHARED = {
    "softmax": lambda F: F.softmax(random(50, 70), axis=1),
    "gelu_backward": lambda F: F.gelu_backward(random(50, 70), random(50, 70)),
    "layer_norm_backward": lambda F: F.layer_norm_backward(
        random(50, 70), random(50, 70), random(70), *np.ones((2, 50, 1), "f"), ndim=1, **NEEDS
    ),
    "group_norm_backward": lambda F: F.group_norm_backward(
        random(*IMAGES), random(*IMAGES), random(16), *np.ones((2, 24, 1), "f"), groups=4, **NEEDS
    ),
    "batch_norm": lambda F: F.batch_norm(
        random(*IMAGES), random(16), None, None, None, momentum=0.1, eps=1e-5
    ),
    "max_pool": lambda F: F.max_pool(random(*IMAGES), **WINDOW, dilation=(1, 2), ceil_mode=True),
    "lstm_sequence": lambda F: F.lstm_sequence(*[random(*s) for s in LSTM], backwards=False)[:2],
    "lstm_sequence_backward": lstm_gradients,
    "scatter_add_to": lambda F: added(F, random(40, 60), random(40, 60)),
    "embedding_backward": lambda F: F.embedding_backward(
        random(90, 30), np.arange(90) % 11, rows=20, padding=3, by_frequency=False
    ),
    "conv_backward_weight": lambda F: F.conv_backward_weight(
        random(*IMAGES), random(*IMAGES), kernel=(3, 3), stride=(1, 1), padding=(1, 1),
        dilation=(1, 1), groups=16,
    ),
    "conv": lambda F: F.conv(random(*IMAGES), random(7, 16, 3, 3), random(7), **DIRECT),
    "conv_backward_input": lambda F: F.conv_backward_input(
        random(6, 7, 12, 13), random(7, 16, 3, 3), size=(12, 13), **DIRECT
    ),
    "conv_backward_weight of all channels": lambda F: F.conv_backward_weight(
        random(50, 7, 12, 13), random(50, 16, 12, 13), kernel=(3, 3), **DIRECT
    ),
}  # fmt: skip


@compiled
@pytest.mark.parametrize("name", SHARED)
def test_results_do_not_depend_on_the_number_of_threads(name: str, monkeypatch) -> None:

    monkeypatch.setattr(tuning, "compiled_per_thread", 1)
    op = name.partition(" ")[0], "numba"
    before = table.served[op]
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(flags, "threads", threads)
        result = SHARED[name](CPU.F)
        results.append(result if isinstance(result, tuple) else (result,))
    assert table.served[op] == before + 3
    for others in zip(*results, strict=True):
        for other in others[1:]:
            np.testing.assert_array_equal(other, others[0])


CONVOLUTIONS = [  # images, channels, size, outputs, kernel, stride, padding, dilation
    *[
        (*sizes, (3, 3), (1, 1), padding, (1, 1))
        for padding in [(0, 0), (1, 1), (2, 2), (0, 2), (2, 1), (1, 0)]
        for sizes in [
            (13, 5, (5, 8), 7), (1, 3, (40, 33), 16), (70, 1, (4, 9), 1), (40, 16, (4, 4), 4),
            (3, 2, (70, 65), 5),
        ]
    ],
    (8, 6, (16, 14), 9, (3, 3), (2, 2), (1, 1), (1, 1)),
    (8, 6, (15, 17), 9, (3, 3), (2, 2), (1, 1), (1, 1)),
    (8, 6, (16, 14), 9, (1, 1), (2, 2), (0, 0), (1, 1)),
    (3, 3, (40, 37), 8, (7, 7), (2, 2), (3, 3), (1, 1)),
    (3, 4, (24, 20), 8, (4, 4), (2, 2), (1, 1), (1, 1)),
    (5, 3, (18, 23), 4, (2, 5), (3, 1), (0, 4), (2, 1)),
    (5, 3, (18, 23), 4, (2, 3), (2, 3), (6, 0), (3, 2)),  # windows that see padding alone
    (5, 3, (18, 23), 4, (2, 2), (4, 3), (0, 0), (1, 1)),  # and places that no window sees
]  # fmt: skip


@compiled
@pytest.mark.parametrize("room", [1 << 17, 1 << 10])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_direct_convolutions(case: tuple, room: int, monkeypatch) -> None:
    """Odd outputs, groups of images that are not equally large, one image, bands of its rows."""

    images, channels, size, outputs, kernel, stride, padding, dilation = case
    monkeypatch.setattr(flags, "threads", 2)
    monkeypatch.setattr(tuning, "compiled_lines", room)
    numbers = {"stride": stride, "padding": padding, "dilation": dilation, "groups": 1}
    x, w = random(images, channels, *size), random(outputs, channels, *kernel)
    bias = random(outputs)
    y = CPU.F.conv(x.astype(float), w.astype(float), bias.astype(float), **numbers)
    g = random(*y.shape)
    names = "conv", "conv_backward_input", "conv_backward_weight"
    before = table.served.copy()
    for name, arrays, others in [
        ("conv", (x, w, bias), {}),
        ("conv", (x, w, None), {}),
        ("conv_backward_input", (g, w), {"size": size}),
        ("conv_backward_weight", (g, x), {"kernel": kernel}),
    ]:
        op = getattr(CPU.F, name)
        wide = [None if array is None else array.astype(float) for array in arrays]
        expected = op(*wide, **numbers, **others)
        got = op(*arrays, **numbers, **others)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    new = table.served.copy() - before
    assert [new[name, "numba"] for name in names] == [2, 1, 1]


@compiled
def test_convolutions_that_are_left_to_matrix_products(monkeypatch) -> None:

    serve = table.overrides["conv", "numba"]
    x, w = random(4, 8, 9, 9), random(8, 8, 3, 3)
    assert serve(CPU.F, x, w, None, **DIRECT) is not NotImplemented
    assert serve(CPU.F, random(4, 16, 9, 9), w, None, **{**DIRECT, "groups": 2}) is NotImplemented
    one_by_one = {**DIRECT, "padding": (0, 0)}
    assert serve(CPU.F, x, random(8, 8, 1, 1), None, **one_by_one) is NotImplemented
    assert serve(CPU.F, x, random(8, 8, 9, 9), None, **one_by_one) is NotImplemented
    for limit, many, served in [
        ("compiled_weights_of_few_pixels", 1, True),
        ("compiled_weights", 4, False),
    ]:
        monkeypatch.setattr(tuning, limit, w.size - 1)
        images = random(many, 8, 25, 25)
        assert (serve(CPU.F, images, w, None, **DIRECT) is not NotImplemented) == served
    assert serve(CPU.F, x, w, None, **DIRECT) is NotImplemented  # of few pixels


@compiled
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("size", [(8, 10), (9, 11), (2, 130), (3, 2)])
def test_the_gradient_of_pools_of_two_by_two(size, ceil_mode) -> None:
    """Equal values, infinities, several NaNs in a window, and what is in none."""
    values = np.array([-np.inf, -1, 0, 0, 2, 2, np.inf, np.nan], np.float32)
    x = np.random.default_rng(1).choice(values, (20, 10, *size))
    window = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
    y, hint = CPU.F.max_pool(x, **window, ceil_mode=ceil_mode)
    g = random(*y.shape)
    before = table.served["max_pool_backward", "numba"]
    got = CPU.F.max_pool_backward(g, x, y, hint, **window)
    assert table.served["max_pool_backward", "numba"] == before + 1
    expected = np.zeros_like(x)
    for place in np.ndindex(g.shape):
        corner = tuple(2 * i for i in place[2:])
        pixels = (*place[:2], *[slice(i, i + 2) for i in corner])
        seen = x[pixels].ravel()
        nans = np.flatnonzero(np.isnan(seen))
        winner = nans[-1] if nans.size else seen.argmax()
        expected[pixels].flat[winner] = g[place]
    np.testing.assert_array_equal(got, expected)


@compiled
@pytest.mark.parametrize("axis", [0, 1])
def test_reads_and_sums_at_places(axis: int) -> None:
    x, places = random(40, 60), PLACES % (40, 60)[axis]
    before = table.served.copy()
    found = CPU.F.gather(x, places, axis=axis, shape=x.shape)
    np.testing.assert_array_equal(found, np.take_along_axis(x, places, axis))
    expected = x.astype(float)
    rows, columns = np.indices(x.shape)
    np.add.at(expected, (places, columns) if axis == 0 else (rows, places), found)
    got = added(CPU.F, x, found, axis)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    names = ("gather", "numba"), ("scatter_add_to", "numba")
    assert table.served.copy() - before == dict.fromkeys(names, 1)


@compiled
def test_places_that_were_written_to_after_they_were_read() -> None:
    places = np.zeros((64, 64), np.int64)
    places[3, 3] = 1 << 40
    numbers = {"axis": 1, "shape": (64, 64)}
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        CPU.F.gather_backward(random(64, 64), places, **numbers)
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        CPU.F.scatter_add_to(random(64, 64), places, random(64, 64), axis=1)


@compiled
@pytest.mark.parametrize("axis", [0, 1])
def test_other_sums_at_places(axis: int) -> None:
    x, places = random(40, 60), PLACES % (40, 60)[axis]
    rows, columns = np.indices(x.shape)
    at = (places, columns) if axis == 0 else (rows, places)
    before = table.served.copy()
    src = random(40, 120)[:, ::2]  # with gaps
    expected = x.astype(float)
    np.add.at(expected, at, src)
    got = CPU.F.scatter_add(x, places, src, axis=axis, checks=True)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x, random(40, 60))
    expected = np.zeros(x.shape)
    np.add.at(expected, at, x)
    got = CPU.F.gather_backward(x, places, axis=axis, shape=x.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    for bad in (-1, 60):
        places = places.copy()
        places[3, 4] = bad
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dim"):
            CPU.F.gather(x, places, axis=axis, shape=x.shape, checks=True)
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dim"):
            CPU.F.scatter_add(x, places, src, axis=axis, checks=True)
    names = "scatter_add", "gather_backward"
    assert table.served.copy() - before == {(name, "numba"): 1 for name in names}


@compiled
@pytest.mark.parametrize("index", [np.arange(90) % 11, np.arange(11), np.zeros(1, int)])
def test_sums_of_rows(index: np.ndarray) -> None:
    g = random(index.size, 30)
    expected = np.zeros((20, 30))
    np.add.at(expected, index, g)
    before = table.served.copy()
    got = CPU.F.index_select_backward(g, index, axis=0, shape=(20, 30))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    numbers = {"rows": 20, "by_frequency": False}
    got = CPU.F.embedding_backward(g, index, padding=None, **numbers)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    expected[3] = 0
    got = CPU.F.embedding_backward(g, index, padding=3, **numbers)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    new = table.served.copy() - before
    assert new == {("index_select_backward", "numba"): 1, ("embedding_backward", "numba"): 2}
    serve = table.overrides["index_select_backward", "numba"]
    assert serve(CPU.F, g, index - 20, axis=0, shape=(20, 30)) is NotImplemented


SGD = {"lr": 0.1, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "first": [False, True]}
ADAM = {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "steps": [3.0, 1.0], "amsgrad": False}
STEPS = [
    ("sgd_step", {**SGD, "weight_decay": 0.2, "maximize": True}),
    ("sgd_step", {**SGD, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("sgd_step", {**SGD, "momentum": 0.9, "nesterov": True}),
    ("adam_step", {**ADAM, "weight_decay": 0.2}),
    ("adam_step", {**ADAM, "decoupled_weight_decay": True, "weight_decay": 0.2, "maximize": True}),
]


@compiled
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("name", "numbers"), STEPS)
def test_steps_of_optimizers(name: str, numbers: dict, threads: int, monkeypatch) -> None:

    monkeypatch.setattr(tuning, "compiled_per_thread", 8)
    monkeypatch.setattr(flags, "threads", threads)
    numbers = {"weight_decay": 0.0, "decoupled_weight_decay": False, "maximize": False, **numbers}
    shapes = [(7, 9), (30,)]
    lists = [[np.abs(random(i, *shape))[0] for shape in shapes] for i in (1, 2, 3, 4)]
    lists = lists[: 3 if name == "sgd_step" else 4]
    read_only = [g.copy() for g in lists[1]]
    empty = [[]] if name == "adam_step" else []
    wide = [[array.astype(float) for array in arrays] for arrays in lists]
    expected = TABLE[name](CPU.F, *wide, *empty, **numbers)
    assert table.overrides[name, "numba"](CPU.F, *lists, *empty, **numbers) is None
    written = [lists[0], *lists[2:]] if len(expected[1]) else [lists[0]]
    for mine, theirs in zip(written, expected, strict=False):
        for got, true in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(got, true, rtol=2e-6, atol=1e-6)
    for g, before in zip(lists[1], read_only, strict=True):
        np.testing.assert_array_equal(g, before)


def in_units(got: np.ndarray, true: np.ndarray) -> float:
    """The largest error in units of the last place of the true values."""
    return float((np.abs(got - true) / np.spacing(np.abs(true).astype(np.float32))).max())


@compiled
def test_elementary_functions() -> None:
    from tensorflow_lite_clone.backends.numba.kernels import elementary

    def over(function, x):
        return np.array([function(value) for value in x], np.float64)

    x = np.linspace(-87, 88.7, 20_001, dtype=np.float32)
    assert in_units(over(elementary.exp, x), np.exp(x.astype(float))) <= 1
    x = np.linspace(-10, 10, 20_001, dtype=np.float32)
    assert in_units(over(elementary.tanh, x), np.tanh(x.astype(float))) <= 3
    true = [0.5 * math.erfc(-value / math.sqrt(2)) for value in x.astype(float)]
    got = over(lambda value: elementary.normal(value, elementary.bell(value)), x)
    assert np.abs(got - true).max() <= 3e-7
    special = np.array([-np.inf, np.inf, np.nan, -103, 90], np.float32)
    got = over(elementary.exp, special)
    np.testing.assert_array_equal(got[[0, 1, 2, 4]], [0, np.inf, np.nan, np.inf])
    assert 0 < got[3] < 1e-44
    np.testing.assert_array_equal(over(elementary.tanh, special), [-1, 1, np.nan, -1, 1])
    numbers = np.array([-np.inf, -2, -0.0, 1e-40, 3, np.inf, np.nan], np.float32)
    places = [elementary.ordered(value) for value in numbers]
    assert places == sorted(places)
    np.testing.assert_array_equal([elementary.unordered(p) for p in places], numbers)


def _doubled(start: int, stop: int, x: np.ndarray) -> None:
    for i in range(start, stop):
        x[i] *= 2


@compiled
def test_machine_code_is_kept_as_long_as_no_file_of_kernels_changes(monkeypatch) -> None:
    from tensorflow_lite_clone.backends.numba.kernels import jit

    found = []
    for text in ("before", "before", "after"):
        monkeypatch.setattr(jit, "_texts", lambda text=text: text)
        made = jit.kernel(_doubled)
        x = np.ones(2, np.float32)
        made(0, 2, x)
        assert x.tolist() == [2, 2]
        found.append(sum(made.stats.cache_hits.values()))
    assert found == [found[0], 1, 0]
