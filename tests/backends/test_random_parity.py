"""The CPU's random streams against PyTorch's: the same numbers from the same seed.

Every case also compares the whole state afterwards, so a wrong number of draws cannot pass.
Exact are all integers, uniforms and choices. Where a logarithm, sine, tangent or exponential is
involved, NumPy's may differ from the C library's (or PyTorch's AVX code's) in the last bits:
float32 normals by 3.5e-7 max(1, |x|), float64 values by a few ulp, 16-bit values by one ulp.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tensorflow_lite_clone.backends.numpy import random_integers
from tensorflow_lite_clone.backends.numpy.random import Generator
from tests.backends.streams import check_same, check_stream, host, native, pair

SIZES = (0, 1, 7, 15, 16, 17, 31, 33, 1000, 100003)
HALVES, FLOATS = ("float16", "bfloat16"), ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")

Filler = Callable[[Any, Any], Any]


# name: (dtypes, exact, draw with our generator, fill a tensor with torch's)
FILLERS: dict[str, tuple[tuple[str, ...], bool, Callable[..., Any], Filler]] = {
    "random": (
        ("bool", *INTEGERS, *FLOATS),
        True,
        lambda g, n, d: g.random(n, d),
        lambda x, g: x.random_(generator=g),
    ),
    "randint": (
        (*INTEGERS, *FLOATS),
        True,
        lambda g, n, d: g.randint(3, 100, n, d),
        lambda x, g: x.random_(3, 100, generator=g),
    ),
    "randint_two": (
        ("bool", *INTEGERS, *FLOATS),
        True,
        lambda g, n, d: g.randint(0, 2, n, d),
        lambda x, g: x.random_(0, 2, generator=g),
    ),
    "randint_negative": (
        ("int8", "int64", "float16", "bfloat16", "float32"),
        True,
        lambda g, n, d: g.randint(-100, 28, n, d),
        lambda x, g: x.random_(-100, 28, generator=g),
    ),
    "randint_open": (
        ("bool", *INTEGERS, *FLOATS),
        True,
        lambda g, n, d: g.randint(1, None, n, d),
        lambda x, g: x.random_(1, None, generator=g),
    ),
    "randint_everything": (
        ("int64", "bfloat16", "float32", "float64"),
        True,
        lambda g, n, d: g.randint(-(2**63), None, n, d),
        lambda x, g: x.random_(-(2**63), None, generator=g),
    ),
    "uniform": (
        (*FLOATS, *COMPLEX),
        True,
        lambda g, n, d: g.uniform(n, d),
        lambda x, g: x.uniform_(generator=g),
    ),
    "uniform_between": (
        (*FLOATS, *COMPLEX),
        True,
        lambda g, n, d: g.uniform(n, d, -0.37, 0.512),
        lambda x, g: x.uniform_(-0.37, 0.512, generator=g),
    ),
    "normal": (
        (*FLOATS, *COMPLEX),
        False,
        lambda g, n, d: g.normal(n, d),
        lambda x, g: x.normal_(generator=g),
    ),
    "normal_scaled": (
        (*FLOATS, *COMPLEX),
        False,
        lambda g, n, d: g.normal(n, d, 0.3, 0.7),
        lambda x, g: x.normal_(0.3, 0.7, generator=g),
    ),
    "log_normal": (
        FLOATS,
        False,
        lambda g, n, d: g.log_normal(n, d, 0.2, 0.6),
        lambda x, g: x.log_normal_(0.2, 0.6, generator=g),
    ),
    "exponential": (
        FLOATS,
        False,
        lambda g, n, d: g.exponential(n, d, 1.7),
        lambda x, g: x.exponential_(1.7, generator=g),
    ),
    "cauchy": (
        FLOATS,
        False,
        lambda g, n, d: g.cauchy(n, d, 0.3, 0.7),
        lambda x, g: x.cauchy_(0.3, 0.7, generator=g),
    ),
    "geometric": (
        (*INTEGERS, *FLOATS),
        True,
        lambda g, n, d: g.geometric(n, d, 0.3),
        lambda x, g: x.geometric_(0.3, generator=g),
    ),
    "bernoulli": (
        ("bool", *INTEGERS, *FLOATS),
        True,
        lambda g, n, d: g.bernoulli(0.3, n, d),
        lambda x, g: x.bernoulli_(0.3, generator=g),
    ),
    "bernoulli_never": (
        ("float32",),
        True,
        lambda g, n, d: g.bernoulli(0.0, n, d),
        lambda x, g: x.bernoulli_(0.0, generator=g),
    ),
    "bernoulli_always": (
        ("float32",),
        True,
        lambda g, n, d: g.bernoulli(1.0, n, d),
        lambda x, g: x.bernoulli_(1.0, generator=g),
    ),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "name, dtype", [(name, dtype) for name, row in FILLERS.items() for dtype in row[0]]
)
def test_fill(name: str, dtype: str, size: int) -> None:
    _, exact, draw, fill = FILLERS[name]
    ours, theirs = pair(size)
    for _ in range(2):
        actual = draw(ours, size, native(dtype))
        check_same(actual, fill(torch.empty(size, dtype=getattr(torch, dtype)), theirs), not exact)
        check_stream(ours, theirs)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("high", [2**24, 2**28 - 1, 2**28, 2**28 + 1, 3 * 2**29, 2**40, 2**63 - 1])
def test_randint_takes_64_bits_for_wide_ranges(high: int, dtype: str) -> None:
    if dtype == "int32" and high > 2**31:
        pytest.skip("beyond int32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # float32 does not hold all of these integers
        for low in (0, 1, -5):
            ours, theirs = pair()
            expected = torch.empty(1000, dtype=getattr(torch, dtype))
            expected.random_(low, high, generator=theirs)
            check_same(ours.randint(low, high, 1000, native(dtype)), expected)
            check_stream(ours, theirs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "low, high",
    [
        (0, 65504),
        (-3001, 3001),
        (2049, 5000),
        (257, 300),
        (-(2**15), 2**15 + 1),
        (2**24 + 1, 2**24 + 9),
    ],
)
def test_randint_moves_bounds_a_float_cannot_hold(low: int, high: int, dtype: str) -> None:
    ours, theirs = pair()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = torch.empty(1000, dtype=getattr(torch, dtype))
        try:
            expected.random_(low, high, generator=theirs)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                ours.randint(low, high, 1000, native(dtype))
            return
        check_same(ours.randint(low, high, 1000, native(dtype)), expected)
    check_stream(ours, theirs)


def test_randint_warns_of_values_a_float_cannot_hold() -> None:
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        Generator().randint(0, 2**25, 3, np.float32)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_bernoulli_of_an_array(size: int, dtype: str) -> None:
    probabilities = torch.rand(size, generator=torch.Generator().manual_seed(1))
    probabilities = probabilities.to(getattr(torch, dtype))
    ours, theirs = pair()
    expected = torch.bernoulli(probabilities, generator=theirs)
    check_same(ours.bernoulli(host(probabilities), dtype=native(dtype)), expected)
    expected = torch.empty(3, size, dtype=torch.bool).bernoulli_(probabilities, generator=theirs)
    check_same(ours.bernoulli(host(probabilities), (3, size), np.bool_), expected)
    check_stream(ours, theirs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p: float, dtype: str) -> None:
    x = torch.ones(7, 143, dtype=getattr(torch, dtype))
    torch.manual_seed(3)
    expected = torch.nn.functional.dropout(x, p) != 0
    ours = Generator(3)
    check_same(ours.dropout_mask(p, (7, 143)), expected)
    check_stream(ours, torch.default_generator)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_normal_with_array_parameters(size: int, dtype: str) -> None:
    kind = getattr(torch, dtype)
    mean = torch.linspace(-1, 1, size).to(kind)
    std = torch.linspace(0, 2, size).to(kind)
    ours, theirs = pair()
    expected = torch.normal(mean, std, generator=theirs)
    check_same(ours.normal(size, native(dtype), host(mean), host(std)), expected, True, 4.0)
    expected = torch.normal(mean, 0.6, generator=theirs)
    check_same(ours.normal(size, native(dtype), host(mean), 0.6), expected, True, 4.0)
    expected = torch.normal(0.4, std, generator=theirs)
    check_same(ours.normal(size, native(dtype), 0.4, host(std)), expected, True, 4.0)
    check_stream(ours, theirs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_of_strided_memory(dtype: str) -> None:
    ours, theirs = pair()
    expected = torch.empty(20, 10, dtype=getattr(torch, dtype)).t().normal_(generator=theirs)
    actual = ours.normal((20, 10), native(dtype), contiguous=False)
    check_same(actual, expected.t(), close=True)
    check_stream(ours, theirs)


def test_few_normals_are_exact() -> None:
    """Fewer than 16 are computed by the same functions of the same C library."""
    for dtype in ("float32", "float64"):
        for size in range(16):
            ours, theirs = pair(size)
            kind = getattr(torch, dtype)
            expected = torch.randn(size, dtype=kind, generator=theirs)
            check_same(ours.normal(size, native(dtype)), expected)
            expected = torch.empty(size, dtype=kind).normal_(-1.3, 0.7, generator=theirs)
            check_same(ours.normal(size, native(dtype), -1.3, 0.7), expected)


def test_most_normals_are_exact() -> None:
    ours, theirs = pair()
    expected = torch.randn(1_000_000, generator=theirs).numpy()
    difference = np.abs(ours.normal(1_000_000) - expected)
    assert (difference <= 3.5e-7 * np.maximum(1, np.abs(expected))).all()
    assert (difference <= 2.4e-7).mean() > 0.999
    assert (difference == 0).mean() > 0.8


def test_shapes() -> None:
    ours, theirs = pair()
    check_same(ours.uniform(()), torch.rand((), generator=theirs))
    check_same(ours.normal((2, 0)), torch.randn(2, 0, generator=theirs))
    check_same(ours.randint(0, 9, (2, 3, 4)), torch.randint(9, (2, 3, 4), generator=theirs))
    expected = torch.randn(3, 5, dtype=torch.complex64, generator=theirs)
    check_same(ours.normal((3, 5), np.complex64), expected, close=True)
    check_stream(ours, theirs)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, *SIZES[2:-1], 60000, 100003])
def test_permutation(size: int, dtype: str) -> None:
    ours, theirs = pair(size)
    expected = torch.randperm(size, dtype=getattr(torch, dtype), generator=theirs)
    check_same(ours.permutation(size, native(dtype)), expected)
    check_stream(ours, theirs)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float16", "bfloat16"])
def test_permutation_of_narrow_dtypes(dtype: str) -> None:
    ours, theirs = pair()
    expected = torch.randperm(128, dtype=getattr(torch, dtype), generator=theirs)
    check_same(ours.permutation(128, native(dtype)), expected)
    check_stream(ours, theirs)


def test_large_permutation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too large to draw here. PyTorch 2.13 at n = 214748364: the place of value i is the last
    64-bit word that is i modulo its number; one word for every element."""
    monkeypatch.setattr(random_integers, "_LARGE_PERMUTATION", 40)
    ours = Generator(3)
    draws = Generator(3)._draw(2 * 100).tolist()
    words = [(high << 32) | low for high, low in zip(draws[::2], draws[1::2])]
    expected: list[int] = []
    for value, word in enumerate(words):
        place = word % (value + 1)
        expected.append(value)
        expected[place], expected[value] = value, expected[place]
    np.testing.assert_array_equal(ours.permutation(100), expected)
    last = max(value for value, word in enumerate(words) if word % (value + 1) == 0)
    assert expected[0] == last


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("shape", [(1,), (10,), (1000,), (1, 10), (5, 33), (0, 3), (200, 7)])
def test_multinomial(shape: tuple[int, ...], replacement: bool, dtype: str) -> None:
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weights = weights.to(getattr(torch, dtype))
    weights[..., :1] += 0.5
    for samples in (1, 2, 5, 7, 40, 1000):
        if samples > shape[-1] and not replacement:
            continue
        if dtype in HALVES and samples > 1 and weights.numel() > 10 and not replacement:
            continue  # 16-bit values come out equal, and PyTorch's order of equals is unknown
        ours, theirs = pair(samples)
        expected = torch.multinomial(weights, samples, replacement, generator=theirs)
        check_same(ours.multinomial(host(weights), samples, replacement), expected)
        check_stream(ours, theirs)


@pytest.mark.parametrize("samples", [1, 2])
def test_multinomial_of_other_layouts(samples: int) -> None:
    """The numbers go with the order of the weights in memory, not with that of the rows."""
    weights = torch.arange(1.0, 41).reshape(5, 8)
    for given in (weights.T, weights[:, ::2], weights.T[::2], weights[0].expand(4, 8)):
        ours, theirs = pair(3)
        expected = torch.multinomial(given, samples, generator=theirs)
        assert ours.multinomial(given.numpy(), samples).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES[:-1])
def test_poisson(size: int, dtype: str) -> None:
    rates = torch.linspace(0, 60, size).to(getattr(torch, dtype))
    ours, theirs = pair(size)
    check_same(ours.poisson(host(rates)), torch.poisson(rates, generator=theirs))
    check_stream(ours, theirs)
