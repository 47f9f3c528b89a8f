"""Work in blocks and on threads gives what work on the whole does, whatever the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy import activations, blocks, threads
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.ops.pointwise import _pointwise

F = tlc.nn.functional
SHAPE = (60, 130)


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small blocks, on three threads however little there is to do."""

    def parallel_for(work: Callable, size: int, least: int, **kwargs: bool) -> None:
        threads.parallel_for(work, size, 1, **kwargs)

    monkeypatch.setattr(tuning, "block_elements", 3000)
    monkeypatch.setattr(blocks, "parallel_for", parallel_for)
    before, flags.threads = flags.threads, 3
    yield
    flags.threads = before


def labels(x: Any) -> Any:
    return tlc.arange(len(x)) * 7 % x.shape[1]


def channels(x: Any) -> Any:
    return x.reshape(5, 12, 130)


def long_channels(x: Any) -> Any:
    return x.reshape(3, 4, 650)


def weights(x: Any, size: int) -> tuple[Any, Any]:
    """A weight and a bias whose gradients reach x, so that they are seen too."""
    return x.reshape(-1)[:size] * 2 + 1, x.reshape(-1)[-size:]


def batch_norm(x: Any) -> Any:
    return F.batch_norm(x, None, None, *weights(x, x.shape[1]), training=True)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    name: getattr(F, name)
    for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "softplus")
    + ("logsigmoid", "hardswish", "hardsigmoid", "sigmoid", "tanh")
} | {
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "cross_entropy": lambda x: F.cross_entropy(x, labels(x)),
    "each_cross_entropy": lambda x: F.cross_entropy(x, labels(x), reduction="none"),
    "layer_norm": lambda x: F.layer_norm(x, (130,), *weights(x, 130)),
    "layer_norm_long": lambda x: F.layer_norm(x.reshape(12, 650), (650,), *weights(x, 650)),
    "rms_norm": lambda x: F.rms_norm(x, (130,), weights(x, 130)[0]),
    "rms_norm_long": lambda x: F.rms_norm(x.reshape(12, 650), (650,), weights(x, 650)[0]),
    "group_norm": lambda x: F.group_norm(channels(x), 3, *weights(x, 12)),
    "group_norm_long": lambda x: F.group_norm(long_channels(x), 2, *weights(x, 4)),
    "batch_norm": lambda x: batch_norm(channels(x)),
    "batch_norm_long": lambda x: batch_norm(long_channels(x)),
    "batch_norm_flat": batch_norm,
}


def results(function: Callable, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Output and gradient of a function at some values."""
    x = tlc.from_numpy(values.copy()).requires_grad_()
    y = function(x)
    upstream = tlc.from_numpy(np.cos(np.arange(y.numel()), dtype=values.dtype)).reshape(y.shape)
    y.backward(upstream)
    return y.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_give_what_the_whole_in_float64_does(name: str, in_blocks: None) -> None:
    values = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    mine = results(FUNCTIONS[name], values)
    flags.threads = 1
    whole = results(FUNCTIONS[name], values.astype(np.float64))
    for a, b in zip(mine, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=4e-6 * max(1, np.abs(b).max()))


# Values at which formulas branch: sums of exponentials overflow or vanish, signs, bounds, no number
SPECIAL = [0.0, -0.0, 3.0, -3.0, 6.0, 21.0, -21.0, 87.0, 89.0, -89.0, -104.0, 1e4, -1e4]
BEYOND = [np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "norm" not in n])
def test_special_values_as_in_the_generic_form(name: str) -> None:
    beyond = [] if "entropy" in name or "softmax" in name else BEYOND
    values = np.resize(np.array(SPECIAL + beyond, np.float32), SHAPE)
    apart = np.zeros((SHAPE[0], 2 * SHAPE[1]), np.float32)[:, ::2]  # which the overrides decline
    apart[...] = values
    x, y = [tlc.from_numpy(array).requires_grad_() for array in (values, apart)]
    mine, generic = FUNCTIONS[name](x), FUNCTIONS[name](y)
    upstream = np.cos(np.arange(mine.numel()), dtype=np.float32).reshape(mine.shape)
    mine.backward(tlc.from_numpy(upstream))
    generic.backward(tlc.from_numpy(upstream))
    for a, b in ((mine.detach(), generic.detach()), (x.grad, y.grad)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_pointwise_functions_of_many_elements_are_shared(
    dtype: str, in_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = []
    parallel_for = blocks.parallel_for
    monkeypatch.setattr(blocks, "parallel_for", lambda *args: handed.append(parallel_for(*args)))
    monkeypatch.setitem(_pointwise._NAMES, "MANY", 1)
    a, b = np.random.default_rng(11).uniform(1, 50, (2, *SHAPE)).astype(dtype)
    x, y = tlc.from_numpy(a), tlc.from_numpy(b)
    pairs = [
        (x + y, a + b), (x - 3, a - 3), (x / y, a / b), (x.exp(), np.exp(a)), (x < y, a < b),
        (-x, -a),
    ]  # fmt: skip
    for mine, known in pairs:
        assert mine.shape == x.shape
        np.testing.assert_allclose(mine.numpy(), known, rtol=1e-6)
    assert len(handed) >= 5
    others = [(x.T + y.T, a.T + b.T), (x + y[:1], a + b[:1]), (x[:, ::2] * 2, a[:, ::2] * 2)]
    handed.clear()
    for mine, known in others:
        np.testing.assert_array_equal(mine.numpy(), known)
    assert not handed
    with pytest.raises(RuntimeError, match="must match the size"):
        x + y[:7]


def test_infinite_upstream_gradients_are_dropped_with_what_is_dropped() -> None:
    x = tlc.from_numpy(np.resize(np.float32([-1, 2]), SHAPE)).requires_grad_()
    x.relu().backward(tlc.full(SHAPE, float("inf")))
    assert x.grad.numpy()[0, :2].tolist() == [0, np.inf]


@pytest.mark.parametrize("level", [-200.0, -5.0, 0.0, 60.0, 200.0])
def test_softmax_and_losses_of_any_level(level: float) -> None:
    values = (np.random.default_rng(5).standard_normal(SHAPE) * 3).astype(np.float32) + level
    values = values.astype(np.float32)
    x = tlc.from_numpy(values)
    exact = special.log_softmax(values.astype(np.float64), 1)
    np.testing.assert_allclose(x.softmax(-1).numpy(), np.exp(exact), rtol=3e-6)
    rounding = float(np.spacing(np.float32(max(8, abs(level)))))
    np.testing.assert_allclose(x.log_softmax(-1).numpy(), exact, rtol=2e-7, atol=rounding)
    loss = F.cross_entropy(x, labels(x)).item()
    rows = np.arange(SHAPE[0])
    assert loss == pytest.approx(-exact[rows, labels(x).numpy()].mean(), abs=rounding)


@pytest.mark.parametrize("has_exp2", [True, False])
def test_small_sigmoids_are_relatively_exact(
    has_exp2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_exp2:
        monkeypatch.setattr(activations, "_to_base_2", lambda: None)
    values = np.linspace(-80, 20, 5000, dtype=np.float32)
    exact = special.expit(values.astype(np.float64))
    rounding = np.maximum(np.abs(values), 4) * 2.0**-23
    assert (np.abs(tlc.from_numpy(values).sigmoid().numpy() / exact - 1) <= rounding).all()


@pytest.mark.parametrize("count", [3, 12, 29])
def test_rows_together(count: int) -> None:
    x = np.random.default_rng(4).standard_normal((count, 650))
    out = np.empty_like(x)
    blocks.broadcast_row(np.subtract, x, x[1], out)
    np.testing.assert_array_equal(out, x - x[1])


def test_masked_rows() -> None:
    values = np.zeros(SHAPE, np.float32)
    values[:, 5:] = -np.inf
    y = tlc.from_numpy(values).softmax(-1).numpy()
    np.testing.assert_allclose(y[:, :5], 0.2, rtol=1e-6)
    assert not y[:, 5:].any()


@pytest.mark.parametrize("offset", [0.0, 3.0, 1000.0])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "norm" in name])
def test_means_far_larger_than_deviations(name: str, offset: float) -> None:
    """Sums of squares would say nothing of the variance where the mean is far from zero."""
    noise = np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)
    values = noise + np.float32(offset)
    form = FUNCTIONS[name]
    upstream = tlc.from_numpy(np.cos(noise * 5))

    def of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = tlc.from_numpy(values).requires_grad_()
        y = form(x) if "rms" in name else _normalized(name, x)
        y.backward(upstream.to(y.dtype).reshape(y.shape))
        return y.detach().numpy(), x.grad.numpy()

    for a, b in zip(of(values), of(values.astype(np.float64)), strict=True):
        size = np.abs(b).max()
        np.testing.assert_allclose(a / size, b / size, atol=2e-6 * (1 + abs(offset)))


@pytest.mark.parametrize("shape", [(8, 16, 700), (8, 16, 4, 4), (300, 16)])
def test_batches_of_one_number_are_normalized_to_zero(shape: tuple[int, ...]) -> None:
    x = tlc.full(shape, 1000.1)
    mean, variance = tlc.zeros(16), tlc.ones(16)
    y = F.batch_norm(x, mean, variance, training=True, momentum=1.0)
    assert y.abs().max() < 1e-4 and variance.max() < 1e-9
    np.testing.assert_array_equal(mean.numpy(), np.float32(1000.1))


@pytest.mark.parametrize("classes", [7, 130])
def test_gradients_of_losses_at_large_numbers(classes: int) -> None:
    """The logarithm of the sum is known to 1e-3 only."""
    values = np.random.default_rng(9).standard_normal((60, classes)).astype(np.float32) * 3 + 1e4
    x = tlc.from_numpy(values.astype(np.float32)).requires_grad_()
    F.cross_entropy(x, labels(x), reduction="sum").backward()
    exact = special.softmax(x.detach().numpy().astype(np.float64), 1)
    exact[np.arange(60), labels(x).numpy()] -= 1
    np.testing.assert_allclose(x.grad.numpy(), exact, atol=1e-6)
    weighted = tlc.from_numpy(x.detach().numpy().copy()).requires_grad_()
    F.cross_entropy(weighted, labels(x), tlc.ones(classes), reduction="sum").backward()
    np.testing.assert_allclose(weighted.grad.numpy(), exact, atol=1e-6)


def _normalized(name: str, x: Any) -> Any:
    if "layer" in name:
        rows = x.reshape(12, 650) if "long" in name else x
        return F.layer_norm(rows, rows.shape[1:])
    if "flat" in name:
        return F.batch_norm(x, None, None, training=True)
    x = long_channels(x) if "long" in name else channels(x)
    return F.group_norm(x, 2) if "group" in name else F.batch_norm(x, None, None, training=True)


def test_errors_of_gelu() -> None:
    """The normal distribution function that it is made of is off by 2e-7 at most."""
    x = np.linspace(-8, 8, 200_001, dtype=np.float32)
    exact = special.ndtr(x.astype(np.float64))
    y = F.gelu(tlc.from_numpy(x)).numpy()
    away = np.abs(x) > 0.5
    assert np.abs(y[away] / x[away].astype(np.float64) - exact[away]).max() < 2.5e-7
    assert np.abs(y - x * exact).max() < 1.2e-6


def test_small_values_of_softplus_are_kept() -> None:
    x = np.full(5000, -20, np.float32)
    want = np.log1p(np.exp(np.float64(-20)))
    np.testing.assert_allclose(F.softplus(tlc.tensor(x)).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(F.logsigmoid(tlc.tensor(-x)).numpy(), -want, rtol=1e-6)


def test_rows_of_large_equal_numbers() -> None:
    x = tlc.full((40, 128), 1000.1)
    w, ones = tlc.linspace(-1, 1, 128), tlc.ones(128)
    assert float((F.layer_norm(x, (128,), w, ones) - 1).abs().max()) < 1e-3
    want = -math.log(128)
    assert float((x.log_softmax(-1) - want).abs().max()) < 1e-6
