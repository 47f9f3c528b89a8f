"""Random numbers on the GPU: Philox's own test vectors, states, and what the numbers are like."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import needs_gpu
from tests.kernels.philox import words

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

N = 20011
SOURCE = """\
#include "common.cuh"
#include "philox.cuh"
template <typename U>
__global__ void draw(U seed, U counter, U stream, unsigned int* __restrict__ out) {
  const Words words = philox(seed, counter, stream);
  for (int i = 0; i < 4; ++i) out[i] = words.word[i];
}
"""


@pytest.fixture
def generator():
    from tensorflow_lite_clone import backends

    return backends.load("cuda:0").make_generator().manual_seed(1234)


def test_philox_known_answers_are_reproduced(tmp_path):
    from tensorflow_lite_clone.backends.cupy.kernel import Kernel

    file = tmp_path / "words.cu"
    file.write_text(SOURCE)
    draw = Kernel(file, "draw", params=("U",))["unsigned long long"]
    out, ones = cupy.zeros(4, np.uint32), 2**64 - 1
    for inputs, expected in (
        ((0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ones, ones, ones), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ):
        draw(1, 1, *inputs, out)
        assert " ".join(f"{word:08x}" for word in out.get()) == expected
    assert f"{words(0, 0, 1)[0]:08x}" == "6627e8d5"


# ---- states


def test_generator_offsets_advance_by_what_is_used(generator):
    first, second = generator.ticket(5), generator.ticket(2**40)
    assert first.get().tolist() == [1234, 0]
    assert second.get().tolist() == [1234, 5]
    assert generator.get_state().view("<u8").tolist() == [1234, 5 + 2**40]


def test_philox_counters_follow_each_other(generator):
    drawn = [generator.uniform(n) for n in (1, 4, 5, 1000)]
    offset = 0
    for y in drawn:
        expected = (words(1234, offset, y.size) >> 8).astype(np.float32) * np.float32(2.0**-24)
        np.testing.assert_array_equal(y.get(), expected)
        offset += -(-y.size // 4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8])
def test_samples_are_written_into_given_memory(generator, dtype):
    """Into the array itself where packs can be written there, else into new memory."""
    memory = cupy.zeros(101, dtype)
    method = generator.uniform if np.dtype(dtype).kind == "f" else generator.random
    for start in (0, 1):
        state, target = generator.get_state(), memory[start:]
        expected = method(target.shape, dtype)
        generator.set_state(state)
        source = generator.into(target)
        drawn = getattr(source, method.__name__)(target.shape, dtype)
        assert (drawn is target) == (start == 0)
        np.testing.assert_array_equal(drawn.get(), expected.get())


def test_generator_state_restored_repeats_samples(generator):
    address = generator._state.data.ptr
    generator.normal(10)
    state = generator.get_state()
    assert state.dtype == np.uint8 and state.shape == (16,)
    a = generator.uniform(7).get()
    clone = generator.clone_state()
    generator.set_state(state)
    np.testing.assert_array_equal(generator.uniform(7).get(), a)
    np.testing.assert_array_equal(generator.uniform(3).get(), clone.uniform(3).get())
    generator.manual_seed(-1)
    assert generator.initial_seed() == 2**64 - 1 == int(generator.get_state().view("<u8")[0])
    assert generator.seed() == generator.initial_seed()
    assert generator._state.data.ptr == address
    with pytest.raises(RuntimeError):
        generator.set_state(state[:8])
    with pytest.raises(TypeError):
        generator.set_state(state.view(np.int8))


def test_captured_samples_are_new_at_every_replay(generator):
    stream = cupy.cuda.Stream(non_blocking=True)
    memory = cupy.cuda.MemoryPool()
    with stream, cupy.cuda.using_allocator(memory.malloc):
        for _ in range(2):  # so that the pool holds what the capture needs
            kept = (
                generator.normal(1000),
                generator.bernoulli(0.5, 1000),
                generator.randint(0, 9, 50),
            )
            del kept
        stream.begin_capture()
        y = generator.normal(1000)
        graph = stream.end_capture()
        seen = []
        for _ in range(3):
            graph.launch(stream)
            stream.synchronize()
            seen.append(y.get())
    assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[1], seen[2])


# ---- distributions


def far(x, distribution) -> float:
    """Kolmogorov and Smirnov's distance times sqrt(n): above 2.2 once in 10,000 times."""
    x = np.sort(x.astype(np.float64).ravel())
    below = distribution(x)
    steps = np.arange(x.size + 1) / x.size
    return max((below - steps[:-1]).max(), (steps[1:] - below).max()) * math.sqrt(x.size)


def normal(x):
    return np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)))(x)


CONTINUOUS = {
    "uniform": ((-2.0, 3.0), lambda x: (x + 2) / 5),
    "normal": ((1.0, 2.0), lambda x: normal((x - 1) / 2)),
    "log_normal": ((0.5, 0.25), lambda x: normal((np.log(x) - 0.5) / 0.25)),
    "exponential": ((2.0,), lambda x: 1 - np.exp(-2 * x)),
    "cauchy": ((1.0, 2.0), lambda x: 0.5 + np.arctan((x - 1) / 2) / np.pi),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_samples_match_their_distribution(generator, name, dtype):
    arguments, distribution = CONTINUOUS[name]
    y = getattr(generator, name)((N,), dtype, *arguments)
    assert y.dtype == dtype and y.shape == (N,)
    y = y.get()
    assert np.isfinite(y).all() and len(np.unique(y)) > 0.99 * N
    assert far(y, distribution) < 2.2
    assert abs(np.corrcoef(y[:-1] > np.median(y), y[1:] > np.median(y))[0, 1]) < 4 / math.sqrt(N)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_samples_match_their_distribution(generator, dtype):
    native = host_dtype(dtype)
    y = generator.uniform((N,), native, 0.0, 1.0).get().astype(np.float64)
    assert y.min() >= 0 and y.max() < 1 and abs(y.mean() - 0.5) < 4 * 0.289 / math.sqrt(N)
    y = generator.uniform((N,), native, 1.0, 1.0 + 2.0**-7).get().astype(np.float64)
    assert y.max() < 1 + 2.0**-7
    y = generator.normal((N,), native, 1.0, 2.0).get().astype(np.float64)
    assert abs(y.mean() - 1) < 8 / math.sqrt(N) + 0.01 and abs(y.std() - 2) < 0.05
    assert (generator.exponential((N,), native).get().astype(np.float64) > 0).all()


def host_dtype(name: str):
    from tensorflow_lite_clone.backends.cupy.native import NATIVE

    return next(native for dtype, native in NATIVE.items() if dtype.name == name)


def test_sample_moments_match_the_distribution(generator):
    y = generator.normal((300, 1001)).get().astype(np.float64)
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((y**power).mean() - expected) < 4.5 * math.sqrt(variance / y.size)


def test_complex_samples_match_their_distribution(generator):
    z = generator.normal((N,), np.complex64, 0.0, 1.0).get()
    assert abs(z.real.std() - math.sqrt(0.5)) < 0.02 > abs(z.imag.std() - math.sqrt(0.5))
    assert generator.uniform((3, 2), np.complex128).shape == (3, 2)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_geometric_samples_match_their_distribution(generator, dtype):
    y = generator.geometric((N,), dtype, 0.3).get()
    assert y.dtype == dtype and y.min() == 1
    for k in (1, 2, 3):
        chance = 0.3 * 0.7 ** (k - 1)
        assert abs((y == k).mean() - chance) < 4.5 * math.sqrt(chance / N)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_bernoulli_samples_match_their_distribution(generator, dtype):
    y = generator.bernoulli(0.3, (7, 1003), dtype).get()
    assert y.dtype == dtype and set(np.unique(y)) == {0, 1}
    assert abs(y.astype(float).mean() - 0.3) < 4.5 * math.sqrt(0.21 / y.size)
    assert not generator.bernoulli(0.0, (99,), dtype).any()
    assert generator.bernoulli(1.0, (99,), dtype).all()
    p = cupy.linspace(0, 1, N)
    y = generator.bernoulli(p.astype(np.float32), None, dtype).get().astype(float)
    assert y[0] == 0 and y[-1] == 1 and abs((y - p.get()).mean()) < 4.5 * 0.41 / math.sqrt(N)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "float16"])
def test_integer_samples_match_their_distribution(generator, dtype):
    y = generator.randint(3, 11, (N,), dtype).get()
    assert y.dtype == dtype
    counts = np.bincount(y.astype(int), minlength=11)
    assert counts[:3].sum() == 0 and len(counts) == 11
    assert ((counts[3:] - N / 8) ** 2).sum() / (N / 8) < 33  # chi squared of 7: 1 in 40,000


def test_integer_samples_of_wide_ranges_cover_them(generator):
    for low, high in ((-(2**62), 2**62), (0, 2**40), (-5, 10**6)):
        y = generator.randint(low, high, (N,)).get().astype(np.float64)
        assert low <= y.min() and y.max() < high
        assert far((y - low) / (high - low), lambda x: x) < 2.2
    full = generator.randint(-(2**63), None, (N,)).get()
    assert abs((full >> 5 & 1).mean() - 0.5) < 0.02 > abs((full < 0).mean() - 0.5)
    for dtype, digits in (("float32", 24), ("float16", 11), ("float64", 53)):
        y = generator.random((N,), dtype).get().astype(np.float64)
        assert y.max() <= 2**digits and (y == np.floor(y)).all()
    assert generator.random((N,), np.int8).min() >= 0
    assert abs(float(generator.random((N,), bool).get().mean()) - 0.5) < 0.02


def test_permutations_have_each_number_once(generator):
    for n in (0, 1, 2, 1000):
        y = generator.permutation(n).get()
        np.testing.assert_array_equal(np.sort(y), np.arange(n))
    assert not np.array_equal(y, generator.permutation(1000).get())
    firsts = [int(generator.permutation(4)[0]) for _ in range(400)]
    assert min(np.bincount(firsts, minlength=4)) > 60


def test_multinomial_samples_match_their_distribution(generator):
    weights = cupy.asarray([[0.0, 1.0, 0.0, 3.0, 0.0], [2.0, 0.0, 1.0, 1.0, 0.0]], np.float32)
    for dtype in ("float32", "float64", "float16"):
        y = generator.multinomial(weights.astype(dtype), 5000, True).get()
        assert y.shape == (2, 5000) and y.dtype == np.int64
        for row, w in zip(y, weights.get()):
            seen = np.bincount(row, minlength=5) / 5000
            assert (seen[w == 0] == 0).all() and np.abs(seen - w / w.sum()).max() < 0.035
    y = generator.multinomial(cupy.ones((400, 6)), 4).get()
    assert all(len(set(row)) == 4 for row in y.tolist())
    assert min(np.bincount(y[:, 0], minlength=6)) > 35
    one = generator.multinomial(cupy.tile(weights[0], (4000, 1)), 1).get()
    assert one.shape == (4000, 1) and abs((one == 3).mean() - 0.75) < 0.035
    assert generator.multinomial(weights[0], 2).shape == (2,)


@pytest.mark.parametrize("mean", [0.0, 0.3, 9.5, 10.0, 40.0, 1e5])
def test_poisson_samples_match_their_distribution(generator, mean):
    y = generator.poisson(cupy.full(N, mean, np.float64)).get()
    assert (y == np.floor(y)).all() and y.min() >= 0
    assert abs(y.mean() - mean) <= 4.5 * math.sqrt(mean / N)
    assert abs(y.var() - mean) <= 5 * mean * math.sqrt((2 + 1 / max(mean, 1e-9)) / N)
    for k in range(int(mean) - 2, int(mean) + 3) if 0 < mean < 50 else ():
        chance = math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) if k >= 0 else 0
        assert abs((y == k).mean() - chance) <= 4.5 * math.sqrt(chance / N)


def test_poisson_of_invalid_rates_raises(generator):
    y = generator.poisson(cupy.asarray([-1.0, np.nan, np.inf, 0.0], np.float32)).get()
    assert np.isnan(y[:2]).all() and y[2] == np.inf and y[3] == 0
    with pytest.raises(tlc.AcceleratorError, match="Poisson rate"):
        tlc.cuda.synchronize()


def test_random_of_unsupported_dtypes_raises(generator):
    for error, call in (
        (NotImplementedError, lambda g: g.uniform(2, np.int64)),
        (RuntimeError, lambda g: g.uniform(2, np.float32, 2.0, 1.0)),
        (RuntimeError, lambda g: g.normal(2, np.float32, 0.0, -1.0)),
        (RuntimeError, lambda g: g.exponential(2, np.float32, 0.0)),
        (RuntimeError, lambda g: g.geometric(2, np.float32, 1.0)),
        (RuntimeError, lambda g: g.bernoulli(1.5, 2)),
        (RuntimeError, lambda g: g.randint(5, 5, 2)),
        (RuntimeError, lambda g: g.permutation(-1)),
        (RuntimeError, lambda g: g.multinomial(cupy.ones(3), 4)),
        (NotImplementedError, lambda g: g.poisson(cupy.ones(3, np.int64))),
    ):
        with pytest.raises(error):
            call(generator)


def test_random_of_empty_shapes_draws_nothing(generator):
    assert generator.uniform((0, 3)).shape == (0, 3)
    assert generator.randint(0, 5, 0).shape == (0,)
    assert generator.get_state().view("<u8").tolist() == [1234, 0]
