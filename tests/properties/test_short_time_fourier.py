"""Short-time Fourier transforms of drawn lengths and options, and gradients, against torch."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.properties.test_fourier import assert_same, host, like, numbers, seldom, tensor

DTYPES = st.sampled_from(("float64", "complex128"))
MODES = st.sampled_from(("reflect", "constant", "replicate", "circular"))


def quiet(function, *args, **kwargs):
    """Call without advice about windows, which only one of the two may give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*args, **kwargs)


@st.composite
def geometry(draw):
    """n_fft, hop_length, win_length; now and then ones that torch refuses."""
    n_fft = draw(st.integers(1, 9))
    length = None if n_fft < 3 else draw(st.none() | st.integers(n_fft - 2, n_fft))
    hop = draw(st.integers(1, (length or n_fft) // 2 + 1))
    if draw(seldom()):
        hop = draw(st.sampled_from((None, 0, -1, 12)))
    if draw(seldom()):
        length = draw(st.sampled_from((0, n_fft + 1)))
    return n_fft, hop, length


def window_of(lib, kind, length):
    if kind is None:
        return None
    made = tensor(lib, 0.3 + np.abs(numbers((length,), kind, 7).real), "float64")
    return made.to(getattr(lib, kind)).requires_grad_()


def with_gradients(lib, result, *inputs):
    """The result, the inputs' gradients, and those of a sum over the gradients."""
    inputs = [x for x in inputs if x is not None]
    up = like(lib, result, 1).requires_grad_()
    first = lib.autograd.grad(result * result, inputs, up, create_graph=True)
    total = sum((g * like(lib, g, 2)).sum() for g in first)
    total = total.real if total.is_complex() else total
    return [result, *first, *lib.autograd.grad(total, (*inputs, up))]


@given(
    st.integers(0, 2), st.integers(4, 16), geometry(), DTYPES, st.none() | DTYPES, st.booleans(),
    MODES, st.booleans(), st.none() | st.booleans(), st.none() | st.booleans(),
)  # fmt: skip
def test_stft(batch, count, sizes, dtype, weights, center, mode, normalized, onesided, aligned):
    n_fft, _, length = sizes
    shape = (batch, count) if batch else (count,)
    if "complex128" in (dtype, weights) and onesided:
        onesided = None  # refused, in the table of rows

    def call(lib, _, x):
        window = window_of(lib, weights, n_fft if length is None else length)
        result = quiet(
            lib.stft, x.requires_grad_(), *sizes, window, center, mode, normalized, onesided,
            True, None if center else aligned,
        )  # fmt: skip
        return with_gradients(lib, result, x, window)

    assert_same(call, numbers(shape, dtype, 0), dtype)


@given(
    st.integers(0, 2), st.integers(2, 6), geometry(), st.none() | DTYPES, st.booleans(),
    st.booleans(), st.booleans(), st.none() | st.integers(1, 30), st.booleans(),
)  # fmt: skip
def test_istft(batch, count, sizes, weights, center, normalized, onesided, size, complexes):
    n_fft, _, length = sizes
    assume(n_fft > 1 or not center)  # torch then cuts its signal to nothing
    complexes = complexes or weights == "complex128"
    onesided = onesided and not complexes
    rows = n_fft // 2 + 1 if onesided else n_fft

    def call(lib, _, x):
        window = window_of(lib, weights, n_fft if length is None else length)
        result = quiet(
            lib.istft, x.requires_grad_(), *sizes, window, center, normalized, onesided, size,
            complexes,
        )  # fmt: skip
        return with_gradients(lib, result, x, window)

    shape = (rows, count) if batch == 0 else (batch, rows, count)
    assert_same(call, numbers(shape, "complex128", 0), "complex128")


@pytest.mark.parametrize("hop", (1, 3, 4, 8))
@pytest.mark.parametrize("length", (16, 21, 40))
def test_the_inverse_gives_the_signal_back(hop, length):
    array = numbers((2, length), "float64", 0)
    window = tlc.hamming_window(8, dtype=tlc.float64, device=DEVICE)
    x = tensor(tlc, array, "float64")
    spectrum = tlc.stft(x, 8, hop, window=window, return_complex=True)
    back = quiet(tlc.istft, spectrum, 8, hop, window=window)
    np.testing.assert_allclose(host(back), array[:, : back.shape[1]], atol=1e-13)
    assert length - back.shape[1] < hop


def test_two_numbers_for_a_complex_one():
    x = tensor(tlc, numbers((10,), "float64", 0), "float64")
    window = tlc.ones(4, dtype=tlc.float64, device=DEVICE)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = tlc.stft(x, 4, window=window, return_complex=False)
    wanted = host(tlc.stft(x, 4, window=window, return_complex=True))
    np.testing.assert_array_equal(host(pairs), np.stack([wanted.real, wanted.imag], -1))


def test_advice():
    """What PyTorch warns of, too."""
    x = tensor(tlc, numbers((10,), "float64", 0), "float64")
    with pytest.warns(UserWarning, match="no window was given"):
        spectrum = x.stft(4, return_complex=True)
    with pytest.warns(UserWarning, match="no window was given"):
        back = spectrum.istft(4)
    window = tlc.ones(4, dtype=tlc.float64, device=DEVICE)
    with pytest.warns(UserWarning, match="filled up with zeros"):
        longer = spectrum.istft(4, window=window, length=20)
    np.testing.assert_allclose(host(longer[:10]), host(back))
    assert host(longer[12:]).tolist() == [0.0] * 8


def test_empty_batch():
    """PyTorch's library for the CPU refuses it."""
    x = tensor(tlc, np.zeros((0, 13)), "float32")
    spectrum = quiet(tlc.stft, x, 7, 3, center=False, return_complex=True)
    assert tuple(spectrum.shape) == (0, 4, 3)


def test_autocast():
    """Two-byte floats are transformed in float32 under the CPU's autocast, as in PyTorch."""
    kinds = []
    for lib in (tlc, torch):
        x, window = (lib.ones(n, dtype=lib.float16) for n in (8, 4))
        with lib.autocast("cpu", dtype=lib.bfloat16):
            kinds.append(str(lib.stft(x, 4, window=window, return_complex=True).dtype))
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", ("stft", "istft"))
def test_signatures(name):
    parameters = inspect.signature(getattr(tlc, name)).parameters
    if name == "stft":
        assert list(parameters) == list(inspect.signature(torch.stft).parameters)
    else:  # as in its documentation
        head = torch.istft.__doc__.split(")")[0].removeprefix("istft(")
        assert list(parameters) == [word.split("=")[0].strip() for word in head.split(",")]
