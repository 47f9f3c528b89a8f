"""The `fft` extension against array-api-strict."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.domains import FLOATING, strictly
from tests.array_api.judge import COMPLEX, FLOATS, few, strict
from tests.array_api.strategies import xp, xps
from tests.array_api.test_linalg import drawn, same

NORMS = ("backward", "ortho", "forward")
#: The transforms, and the dtypes that they take.
LINES = {
    "fft": COMPLEX, "ifft": COMPLEX, "rfft": FLOATS, "irfft": COMPLEX,
    "hfft": COMPLEX, "ihfft": FLOATS,
}  # fmt: skip
GRIDS = {"fftn": COMPLEX, "ifftn": COMPLEX, "rfftn": FLOATS, "irfftn": COMPLEX}
SHAPES = xps.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=4)


def both(name: str, *operands: Any, **options: Any) -> None:
    wanted = getattr(strict.fft, name)(*map(strictly, operands), **options)
    same(getattr(xp.fft, name)(*operands, **options), wanted)


@pytest.mark.parametrize("name", LINES)
@given(data=st.data())
@few
def test_lines(name: str, data: Any) -> None:
    x = drawn(data.draw(SHAPES), data.draw(st.sampled_from(LINES[name])))
    options: dict[str, Any] = {"norm": data.draw(st.sampled_from(NORMS))}
    if data.draw(st.booleans()):
        options["axis"] = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if data.draw(st.booleans()):
        options["n"] = data.draw(st.integers(2, 6))
    both(name, x, **options)
    both(name, x)


@pytest.mark.parametrize("name", GRIDS)
@given(data=st.data())
@few
def test_grids(name: str, data: Any) -> None:
    x = drawn(data.draw(SHAPES), data.draw(st.sampled_from(GRIDS[name])))
    options: dict[str, Any] = {"norm": data.draw(st.sampled_from(NORMS))}
    if data.draw(st.booleans()):
        axes = data.draw(st.permutations(range(x.ndim)))
        count = data.draw(st.integers(1, x.ndim))
        options["axes"] = [axis - x.ndim * data.draw(st.booleans()) for axis in axes[:count]]
        if data.draw(st.booleans()):
            sizes = [data.draw(st.sampled_from([-1, 2, 3, 5])) for _ in range(count)]
            # Of -1 for the last axis NumPy's irfftn does not use all elements.
            options["s"] = [*sizes[:-1], 4] if name == "irfftn" else sizes
    both(name, x, **options)
    both(name, x)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@given(data=st.data())
@few
def test_shifts(name: str, data: Any) -> None:
    x = drawn(data.draw(SHAPES), data.draw(st.sampled_from(FLOATING)))
    one = st.integers(-x.ndim, x.ndim - 1)
    some = st.sets(st.integers(0, x.ndim - 1), min_size=1).map(tuple)
    both(name, x, axes=data.draw(st.none() | one | some))


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@given(n=st.integers(1, 9), d=st.floats(0.1, 3.0))
@few
def test_frequencies(name: str, n: int, d: float) -> None:
    function = getattr(xp.fft, name)
    wanted = np.asarray(getattr(strict.fft, name)(n, d=d)._array)
    for dtype in FLOATS:
        found = function(n, d=d, dtype=getattr(xp, dtype), device=xp.zeros(1).device)
        same(found, wanted.astype(dtype))
    assert function(n).dtype is xp.__array_namespace_info__().default_dtypes()["real floating"]


@pytest.mark.parametrize("dtype", COMPLEX)
@given(data=st.data())
@few
def test_there_and_back(dtype: str, data: Any) -> None:
    x = drawn(data.draw(SHAPES), dtype)
    norm = data.draw(st.sampled_from(NORMS))
    same(xp.fft.ifftn(xp.fft.fftn(x, norm=norm), norm=norm), np.asarray(x))
    real = xp.real(x)
    back = xp.fft.irfft(xp.fft.rfft(real, norm=norm), n=x.shape[-1], norm=norm)
    same(back, np.asarray(real))


def test_names_and_signatures() -> None:
    assert set(xp.fft.__all__) == {*LINES, *GRIDS, "fftshift", "ifftshift", "fftfreq", "rfftfreq"}
    for name in xp.fft.__all__:
        found = inspect.signature(getattr(xp.fft, name)).parameters.values()
        wanted = inspect.signature(getattr(strict.fft, name)).parameters.values()
        assert [(p.name, p.kind, p.default) for p in found] == [
            (p.name, p.kind, p.default) for p in wanted
        ], name


@pytest.mark.parametrize("name", [*LINES, *GRIDS])
def test_gradients(name: str) -> None:
    dtype = tlc.float64 if {**LINES, **GRIDS}[name] is FLOATS else tlc.complex128
    x = tlc.randn(2, 4, dtype=dtype, requires_grad=True)
    assert tlc.autograd.gradcheck(getattr(xp.fft, name), x)
