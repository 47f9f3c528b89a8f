"""Winograd's convolutions against sums of products in float64, and how far they are off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy import convolution
from tensorflow_lite_clone.backends.numpy import convolution_winograd as winograd
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.op import TABLE
from tests.device import ACCELERATED

F: Any = backends.load("cpu").F
GENERIC = {name: TABLE[name].forward for name in TABLE if name.startswith("conv")}  # type: ignore[union-attr]
PLAIN: dict[str, Any] = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
KINDS = ["matrix products", *["compiled"] * ACCELERATED]  # that in the process of test_numba.py


@pytest.fixture(params=KINDS)
def transforms(request: pytest.FixtureRequest) -> Iterator[winograd.Transforms]:
    """Both ways to transform, for what is small as well, in two threads."""
    used = winograd.Transforms()
    if request.param == "compiled":
        from tensorflow_lite_clone.backends.numba.winograd import CompiledTransforms

        used = CompiledTransforms()
    with (
        mock.patch.object(winograd, "transforms", used),
        mock.patch.object(tuning, "winograd_windows", 1),
        mock.patch.object(tuning, "winograd_gradient_windows", 1),
        mock.patch.object(tuning, "winograd_thread_ns", 1),
        mock.patch.object(flags, "threads", 2),
    ):
        yield used


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def error(op: str, arrays: tuple, options: dict) -> float:
    """The largest error of an op, beside its largest result."""
    # The layer with Numba is above NumPy's, whose own function is meant.
    result = getattr(convolution, op)(F, *arrays, **options)
    wide = [None if a is None else a.astype(np.float64) for a in arrays]
    expected = GENERIC[op](F, *wide, **options)
    assert result.shape == expected.shape and result.dtype == np.float32
    assert result.flags.c_contiguous
    return float(np.abs(result - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize(("shape", "outputs", "padding", "bias"), [
    ((5, 64, 8, 8), 64, (1, 1), True),
    ((2, 66, 21, 35), 64, (0, 2), False),  # pieces side by side, some half outside
    ((5, 130, 7, 9), 65, (2, 0), True),
    ((1, 64, 40, 4), 64, (1, 1), True),
    ((9, 65, 2, 3), 64, (2, 2), False),  # results from padding alone
])  # fmt: skip
@pytest.mark.parametrize("budget", [1 << 12, 1])  # several samples or one of a piece
def test_winograd_matches_direct_convolution(
    shape: tuple, outputs: int, padding: tuple, bias: bool, budget: int, transforms: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(tuning, "winograd_waste", 99)
    monkeypatch.setattr(tuning, "winograd_tile_elements", budget)
    monkeypatch.setattr(tuning, "winograd_weight_block", budget)
    monkeypatch.setattr(tuning, "winograd_gradient_block", budget)
    monkeypatch.setattr(tuning, "winograd_single_piece", budget << 6)
    x, w, b = numbers(shape, (outputs, shape[1], 3, 3), (outputs,))
    options = {**PLAIN, "padding": padding}
    served = mock.Mock(wraps=winograd._products)
    monkeypatch.setattr(winograd, "_products", served)
    assert error("conv", (x, w, b if bias else None), options) < 3e-6
    y = convolution.conv(F, x, w, None, **options)
    (g,) = numbers(y.shape)
    assert error("conv_backward_input", (g, w), {**options, "size": shape[2:]}) < 3e-6
    calls = served.call_count
    assert calls >= 3
    assert error("conv_backward_weight", (g, x), {**options, "kernel": (3, 3)}) < 3e-6
    last = [np.moveaxis(np.moveaxis(a, 1, -1).copy(), -1, 1) for a in (x, w)]
    assert error("conv", (*last, None), options) < 3e-6


@pytest.mark.parametrize("channels", [64, 512])
def test_winograd_error_is_bounded(channels: int, transforms: Any) -> None:
    """What the module's docstring says of normal data."""
    x, w = numbers((1, channels, 16, 16), (64, channels, 3, 3))
    assert error("conv", (x, w, None), PLAIN) < (2e-6 if channels == 64 else 4e-6)


def test_winograd_keeps_nan_in_its_tile(transforms: Any) -> None:
    """Or in what is one matrix product with it: four tiles each way."""
    x, w = numbers((2, 64, 16, 32), (64, 64, 3, 3))
    expected = convolution.conv(F, x, w, None, **PLAIN)
    x[0, 3, 9, 9] = np.nan
    y = convolution.conv(F, x, w, None, **PLAIN)
    assert np.isnan(y[0, :, 8:11, 8:11]).all()
    near = slice(0, 16) if type(transforms) is winograd.Transforms else slice(8, 12)
    y[0, :, near, near] = expected[0, :, near, near]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("outputs", "dtype", "more"), [
    (8, "float32", {}), (64, "float64", {}), (64, "float32", {"dilation": (2, 1)}),
    (64, "float32", {"stride": (1, 2)}), (64, "float32", {"padding": (3, 1)}),
    (64, "float32", {"groups": 2}),
])  # fmt: skip
def test_winograd_declines_other_convolutions(
    outputs: int, dtype: str, more: dict, transforms: Any
) -> None:
    options = {**PLAIN, **more}
    x, w = numbers((3, 64, 9, 9), (outputs, 64 // options["groups"], 3, 3))
    with mock.patch.object(winograd, "_products") as products:
        convolution.conv(F, x.astype(dtype), w.astype(dtype), None, **options)
    assert not products.called
