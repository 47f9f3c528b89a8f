"""Binomial numbers: the sampler's model anywhere, the kernel on a GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.binomial import binomial, pairs, tail
from tests.kernels.gpu import why_not

REASON = why_not()
SEED = 1234
# Inversion and rejection, their border at n min(p, 1 - p) = 10, both halves of p, few and many.
CASES = [(1, 0.3), (7, 0.5), (40, 0.2), (1000, 0.0099), (1e9, 3e-9), (60, 0.9)]
CASES += [(20, 0.5), (1000, 0.0101), (200, 0.37), (50, 0.8), (10**6, 0.25), (10**9, 0.999)]


def on_gpu(test: Any) -> Any:
    return pytest.mark.cuda(pytest.mark.skipif(bool(REASON), reason=str(REASON))(test))


def distribution(n: float, p: float) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that have a chance, and the chance of being no larger."""
    mean, deviation = n * p, math.sqrt(n * p * (1 - p))
    least = max(0, math.floor(mean - 12 * deviation - 12))
    most = min(int(n), math.ceil(mean + 12 * deviation + 40))
    k = np.arange(least, most + 1)
    ways = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k.tolist()]
    chances = np.exp(np.array(ways) + k * math.log(p) + (n - k) * math.log1p(-p))
    return k, np.minimum(np.cumsum(chances) / chances.sum(), 1.0)


def check(drawn: np.ndarray, n: float, p: float) -> None:
    """Compare the cumulative frequencies with the chances: of all numbers, and of those beyond two
    deviations on either side, whose frequencies are conditional on how many there are.

    Each difference is above its bound once in 10^12 times at most: P(sup |F_n - F| > e) is below
    2 exp(-2 n e^2) for every distribution (Massart, "The tight constant in the
    Dvoretzky-Kiefer-Wolfowitz inequality" (1990)). All of this file together: below 1e-9.
    """
    values, below = distribution(n, p)
    mean, deviation = n * p, math.sqrt(n * p * (1 - p))
    assert (drawn == np.floor(drawn)).all() and drawn.min() >= 0 and drawn.max() <= n
    for low, high in (
        (-np.inf, np.inf),
        (-np.inf, mean - 2 * deviation),
        (mean + 2 * deviation, np.inf),
    ):
        part = np.sort(drawn[(drawn >= low) & (drawn <= high)])
        inside = (values >= low) & (values <= high)
        if not len(part) or not inside.any():
            continue
        first = int(inside.argmax())
        start = below[first - 1] if first else 0.0
        chance = (below[inside] - start) / (below[inside][-1] - start)
        seen = np.searchsorted(part, values[inside], side="right") / len(part)
        allowed = math.sqrt(math.log(2e12) / (2 * len(part)))
        assert np.abs(seen - chance).max() <= allowed, (n, p, low, high)


# ---- the model


@pytest.mark.parametrize("n, p", CASES)
def test_model(n: float, p: float) -> None:
    check(np.array([binomial(n, p, source) for source in pairs(SEED, 0, 4000)]), n, p)


@pytest.mark.parametrize("k", [0, 1, 5, 9, 10, 11, 100])
def test_tail_of_stirling_s_series(k: int) -> None:
    whole = (k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi) + tail(k)
    assert abs(whole - math.lgamma(k + 1)) < 1e-9


def test_a_wrong_sampler_is_noticed() -> None:
    n, p = 200, 0.37
    drawn = np.array([binomial(n, p, source) for source in pairs(SEED, 0, 4000)])
    check(drawn, n, p)
    with pytest.raises(AssertionError):
        check(drawn, n, p + 0.01)
    with pytest.raises(AssertionError):  # a tail that is too short
        check(np.minimum(drawn, math.ceil(n * p + 2 * math.sqrt(n * p * (1 - p)))), n, p)


# ---- the kernel


@pytest.fixture
def generator() -> Any:
    from tensorflow_lite_clone import backends

    return backends.load("cuda:0").make_generator().manual_seed(SEED)


def drawn(generator: Any, count: Any, prob: Any, dtype: Any = np.float64) -> np.ndarray:
    import cupy

    count, prob = np.broadcast_arrays(np.asarray(count, dtype), np.asarray(prob, dtype))
    y = generator.binomial(cupy.asarray(count), cupy.asarray(prob))
    assert y.dtype == dtype and y.shape == count.shape
    return y.get()


@on_gpu
@pytest.mark.parametrize("n, p", CASES)
def test_kernel(generator: Any, n: float, p: float) -> None:
    check(drawn(generator, np.full(2_000_000, n), p), n, p)


@on_gpu
@pytest.mark.parametrize("n, p", [case for case in CASES if case[0] <= 2**24])
def test_float32(generator: Any, n: float, p: float) -> None:
    y = drawn(generator, np.full(500_000, n), p, np.float32)
    check(y.astype(float), n, float(np.float32(p)))


@on_gpu
@pytest.mark.parametrize("n, p", CASES)
def test_kernel_follows_the_model(generator: Any, n: float, p: float) -> None:
    """Number for number, but where the GPU's logarithms round to the other side of a bound."""
    first = drawn(generator, np.full(5, 3.0), 0.5)
    assert first.size == 5  # five counters are gone
    got = drawn(generator, np.full(3000, n), p)
    expected = [binomial(n, p, source) for source in pairs(SEED, 5, 3000)]
    assert (got != expected).sum() <= 3


@on_gpu
def test_order_and_grid_do_not_matter(generator: Any) -> None:
    counts = np.arange(70_000.0) % 97
    probs = np.linspace(0, 1, counts.size)
    y = drawn(generator, counts, probs)
    generator.manual_seed(SEED)
    np.testing.assert_array_equal(drawn(generator, counts[:999], probs[:999]), y[:999])
    assert generator.get_state().view("<u8").tolist() == [SEED, 999]
    assert (y >= 0).all() and (y <= counts).all()
    assert (drawn(generator, counts, probs) != y).mean() > 0.5


@on_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges(generator: Any, dtype: str) -> None:
    nan, inf = math.nan, math.inf
    edges = [
        (5, 0.0, 0), (5, 1.0, 5), (0, 0.5, 0), (0, 0.0, 0), (0, 1.0, 0), (1e6, 0.0, 0),
        (1e6, 1.0, 1e6), (5, -0.1, 0), (5, 1.5, 5), (-3, 0.5, 0), (5, nan, nan), (nan, 0.5, nan),
        (nan, 0.0, 0), (0, nan, 0), (nan, 1.0, nan), (inf, 0.5, inf), (inf, 0.0, 0), (-inf, 0.5, 0),
    ]  # fmt: skip
    counts, probs, expected = np.array(edges).T
    for _ in range(20):
        got = drawn(generator, counts, probs, np.dtype(dtype))
        np.testing.assert_array_equal(got, expected.astype(dtype))


@on_gpu
def test_extreme_numbers_come_to_an_end(generator: Any) -> None:
    counts = [1e15, 2.0**53, 1e18, 1e30, 1e300, 5.0, 1e300]
    probs = [0.5, 1e-16, 0.999999, 0.3, 1e-299, 5e-324, 1e-300]
    y = drawn(generator, np.tile(counts, 1000), np.tile(probs, 1000)).reshape(1000, -1)
    assert (y >= 0).all() and (y <= counts).all()
    error = np.abs(y[:, :4].mean(0) / (np.array(counts) * probs)[:4] - 1)
    assert (error < 7 / np.sqrt(1000 * np.array(counts) * probs)[:4] + 1e-9).all()


@on_gpu
def test_fractions_of_trials(generator: Any) -> None:
    """Counts need not be whole, as on the CPU: numbers stay within them."""
    y = drawn(generator, np.full(10_000, 2.5), 0.7)
    assert y.min() >= 0 and y.max() <= 2.5


@on_gpu
def test_through_the_face() -> None:
    nine = tlc.full((3, 1), 9.0, device="cuda")
    assert tlc.binomial(nine, tlc.rand(4, device="cuda")).shape == (3, 4)
    count = tlc.full((1000,), 30.0, device="cuda")
    tlc.cuda.manual_seed(7)
    first = tlc.binomial(count, count / 60)
    tlc.cuda.manual_seed(7)
    assert tlc.equal(first, tlc.binomial(count, count / 60))
    sample = tlc.distributions.Binomial(count, probs=count / 60).sample((2,))
    assert sample.is_cuda and sample.shape == (2, 1000)
    with pytest.raises(NotImplementedError):
        tlc.binomial(count.half(), count.half())
    assert tlc.binomial(count[:0], count[:0]).shape == (0,)


@on_gpu
def test_captured_draws_are_new_at_every_replay() -> None:
    count = tlc.full((1000,), 30.0, device="cuda")
    out = tlc.empty_like(count)
    out.copy_(tlc.binomial(count, count / 60))
    graph = tlc.cuda.CUDAGraph()
    with tlc.cuda.graph(graph):
        out.copy_(tlc.binomial(count, count / 60))
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(out.cpu().numpy().copy())
    assert (seen[0] != seen[1]).mean() > 0.5 and (seen[1] != seen[2]).mean() > 0.5
