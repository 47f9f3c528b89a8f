"""Special functions against values to the last digit, and SciPy's against the kit's own."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys

import numpy as np
import pytest

from tensorflow_lite_clone.backends.numpy import primitives, with_scipy
from tensorflow_lite_clone.backends.numpy.primitives import incomplete_gamma
from tests.backends.scipy_switch import needs_scipy, without_scipy
from tests.backends.special_references import POINTS, TABLE, exact

needs_mpmath = pytest.mark.skipif(
    importlib.util.find_spec("mpmath") is None, reason="mpmath is not installed"
)
# How far a result may be from the exact one, relatively; 2e-15 where nothing is said.
TOLERANCE = {
    # Waves: the tolerance is of their amplitude, see `amplitude`.
    "airy_ai": 2e-14,  # zeta = 1e5 at -3000 is a sum of two numbers, good to 20 digits
    "igamma": 1e-13,  # the logarithm of x^a e^-x / Gamma(a + 1) has a size of up to 30
    "igammac": 1e-13,
    "chebyshev_t": 1e-13,  # of U_n and V_n beyond 1, which a change of x by one bit changes more
    "chebyshev_u": 1e-13,
    "chebyshev_v": 1e-13,
    "chebyshev_w": 1e-13,
    "shifted_chebyshev_t": 1e-13,
    "hermite_h": 1e-14,
    "hermite_he": 1e-14,
    "laguerre_l": 1e-14,
    "legendre_p": 1e-13,
}
SINGLE = {
    "erf": np.linspace(-6, 6, 301),
    "erfcx": np.linspace(-5, 30, 301),
    "erfinv": np.array([*np.linspace(-1, 1, 301), 1 - 1e-12, 1e-300, 2.0, np.nan]),
    "ndtri": np.array([*np.linspace(0, 1, 301), 1e-300, 1 - 1e-12, -1.0, 2.0, np.nan]),
    "log_ndtr": np.array([*np.linspace(-30, 8, 301), -1e5, np.inf, -np.inf, np.nan]),
    "digamma": np.array([*np.linspace(-4.95, 12, 301), 0.0, -0.0, -3.0, 1e10, np.inf, -np.inf]),
}


ODD = [0.0, -0.0, 1e-45, 1e-30, 3e38, -3e38, np.inf, -np.inf, np.nan, -1.0, -2.0, -2.5, -1e30]
NARROW = {
    "erfc": np.array([*np.linspace(-6, 12, 301), *ODD], np.float32),
    "lgamma": np.array([*np.linspace(-9.95, 40, 301), *(1 + np.logspace(-6, -1, 50)), *ODD]),
}
# Shape parameters on either side of the bounds in which SciPy is asked, arguments around them.
SHAPES = np.array([*np.logspace(-5, 2.5, 150), 19.9, 20.0, 20.1])[:, None]
RATIOS = np.array([1e-8, 0.01, 0.3, 0.7, 0.95, 1.0, 1.05, 1.4, 3.0, 20.0])


def columns(word: str) -> list[np.ndarray]:
    """The arguments of a word's points, an array each."""
    return list(np.array(POINTS[word], np.float64).reshape(len(POINTS[word]), -1).T)


def call(word: str, *arguments: np.ndarray) -> np.ndarray:
    if hasattr(primitives, word):
        return getattr(primitives, word)(*arguments)
    return primitives.polynomial(*arguments, kind=word)


def amplitude(word: str, x: np.ndarray) -> np.ndarray:
    """What an error beside a function's further zeros is measured by; 0 elsewhere."""
    size = np.abs(x)
    if word in ("j0", "j1", "y0", "y1"):
        beyond = 3.0 if word == "y0" else 5.0
        return np.where(x >= beyond, np.sqrt(2 / (np.pi * size)), 0.0)
    if word == "airy_ai":
        return np.where(x < -5, 1 / (np.sqrt(np.pi) * size**0.25), 0.0)
    return np.where(size <= 1, 1.0, 0.0) if word in ("legendre_p", "chebyshev_t") else 0 * size


@pytest.mark.parametrize("word", TABLE)
def test_values(word: str) -> None:
    arguments, wanted = columns(word), np.array(TABLE[word])
    error = np.abs(call(word, *arguments) - wanted)
    scale = np.maximum(np.abs(wanted), amplitude(word, arguments[0]))
    worst = np.max(error / scale)
    assert worst <= TOLERANCE.get(word, 2e-15), (word, worst)


@pytest.mark.parametrize("word", TABLE)
def test_float32_is_rounded_once(word: str) -> None:
    arguments = [column.astype(np.float32) for column in columns(word)]
    got = call(word, *arguments)
    assert got.dtype == np.float32
    wanted = call(word, *[column.astype(np.float64) for column in arguments])
    np.testing.assert_array_equal(got, wanted.astype(np.float32))


def test_without_scipy() -> None:
    with without_scipy():
        served = [*with_scipy.UFUNCS, *with_scipy.NARROW, *with_scipy.PAIRS]
        assert not any(
            with_scipy.ufunc(word, narrow) for word in served for narrow in (True, False)
        )
        x = np.array([0.5, -2.0])
        np.testing.assert_allclose(primitives.erf(x), [math.erf(0.5), math.erf(-2.0)])


def test_every_word_of_scipy_is_compared() -> None:
    assert set(SINGLE) == set(with_scipy.UFUNCS) and set(NARROW) == set(with_scipy.NARROW)
    assert {"igamma", "igammac"} == set(with_scipy.PAIRS)


def both_ways(word: str, *arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """SciPy's values and the kit's own."""
    with without_scipy():
        ours = call(word, *arguments)
    return call(word, *arguments), ours


@needs_scipy
@pytest.mark.parametrize("word", SINGLE)
def test_scipy_gives_the_same(word: str) -> None:
    assert with_scipy.ufunc(word) is not None
    theirs, ours = both_ways(word, SINGLE[word])
    np.testing.assert_allclose(theirs, ours, rtol=2e-13, atol=1e-15)


@needs_scipy
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("word", NARROW)
def test_scipy_gives_the_same_to_float32(word: str, dtype: str) -> None:
    assert with_scipy.ufunc(word) is None is not with_scipy.ufunc(word, True)
    with np.errstate(over="ignore"):
        theirs, ours = both_ways(word, NARROW[word].astype(dtype))
    assert theirs.dtype == ours.dtype == dtype
    np.testing.assert_allclose(theirs, ours, rtol=np.finfo(dtype).eps, atol=1e-45)
    theirs, ours = both_ways(word, NARROW[word].astype(np.float64))
    np.testing.assert_array_equal(theirs, ours)  # float64 is left alone


@needs_scipy
@pytest.mark.parametrize("word", ["igamma", "igammac"])
def test_scipy_gives_the_same_incomplete_gamma_functions(word: str) -> None:
    assert with_scipy.ufunc(word) is not None
    theirs, ours = both_ways(word, *np.broadcast_arrays(SHAPES, SHAPES * RATIOS))
    np.testing.assert_allclose(theirs, ours, rtol=2e-13, atol=1e-300)
    odd = np.array([-1.0, -0.0, 0.0, 1e-310, 0.5, 3.0, np.inf, -np.inf, np.nan])
    theirs, ours = both_ways(word, *np.meshgrid(odd, odd))
    np.testing.assert_allclose(theirs, ours, rtol=2e-13)


def test_scipy_is_asked_for_some_shape_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    def ones(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        assert (a > 0).all() and (x > 0).all()
        return np.ones_like(x)

    monkeypatch.setattr(incomplete_gamma, "ufunc", lambda word: ones)
    shapes = np.array([0.5, 19.9, 20.0, 300.0, 1e-310, np.inf, -1.0])
    np.testing.assert_array_equal(primitives.igamma(shapes, np.full(7, 5.0))[:2], 1)
    assert (primitives.igamma(shapes, np.full(7, 5.0))[2:4] < 1e-4).all()


@needs_scipy
def test_scipy_is_imported_on_first_use() -> None:
    code = (
        "import sys, tensorflow_lite_clone as torch; assert 'scipy' not in sys.modules; "
        "x = torch.ones(3, dtype=torch.float64); torch.exp(x).sum(); "
        "assert 'scipy' not in sys.modules; torch.erfinv(x); assert 'scipy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_mpmath
@pytest.mark.parametrize("word", TABLE)
def test_the_table_is_what_it_says(word: str) -> None:
    points = [point if isinstance(point, tuple) else (point,) for point in POINTS[word]]
    assert [exact(word, *point) for point in points] == list(TABLE[word])
