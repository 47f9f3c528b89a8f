"""Activations as one kernel each beside the generic forms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.kernels import gpu
from tests.kernels.gpu import Laid, needs_gpu, run_formula

pytestmark = needs_gpu
check = partial(gpu.check, run=run_formula)
ELU = {"alpha": 1.3, "scale": 1.1, "rate": 0.7}
FORWARD: dict[str, dict[str, Any]] = {
    "relu": {},
    "threshold": {"threshold": 0.5, "value": -2.0},
    "hardtanh": {"low": -1.0, "high": 2.0},
    "leaky_relu": {"slope": 0.1},
    "elu": ELU,
    "celu": ELU,
    "hardsigmoid": {},
    "hardswish": {},
    "hardshrink": {"lambd": 0.5},
    "softshrink": {"lambd": 0.5},
    "gelu": {},
    "gelu_tanh": {},
    "silu": {},
    "mish": {},
    "softplus": {"beta": 1.5, "threshold": 20.0},
    "log_sigmoid": {},
    "sigmoid": {},
    "tanh": {},
}
BACKWARD = {
    "threshold_backward": {"threshold": 0.5},
    "shrink_backward": {"lambd": 0.5},
} | {
    f"{name}_backward": parameters
    for name, parameters in FORWARD.items()
    if name not in ("relu", "threshold", "celu", "hardshrink", "softshrink")
}
SIZES = (1, 3, 7, 8, 255, 4099)


def values(*shape: int, scale: float = 4.0) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, scale, shape)


def kept(name: str, *shape: int) -> np.ndarray:
    """What the gradient is of: of sigmoid and tanh the output."""
    x = values(*shape)
    return {"sigmoid_backward": 1 / (1 + np.exp(-x)), "tanh_backward": np.tanh(x)}.get(name, x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORWARD)
def test_forward(name: str, size: int) -> None:
    check(name, [values(size)], FORWARD[name])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name: str, size: int) -> None:
    # Terms cancel: the largest of few gradients may be smaller than what was rounded.
    check(name, [values(size, scale=1.0), kept(name, size)], BACKWARD[name], slack=24)


@pytest.mark.parametrize("name", ["gelu", "relu"])
@pytest.mark.parametrize("size", [(1 << 18) - 2, 1 << 18, (1 << 18) + 4098])
def test_large(name: str, size: int) -> None:
    """The border of the variants with several packs a thread."""
    check(name, [values(size)], {}, ("float32", "bfloat16"))
    other = "threshold" if name == "relu" else name
    parameters = {"threshold": 0} if name == "relu" else {}
    g = values(size, scale=1.0)
    check(f"{other}_backward", [g, values(size)], parameters, ("float32", "bfloat16"))


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "sliced", "offset", "expanded"])
def test_layouts(layout: str) -> None:
    x, g = values(3, 8, 5, 16), values(3, 8, 5, 16, scale=1.0)
    for name in ("silu", "hardswish"):
        check(name, [Laid(x, layout)], {})
        check(f"{name}_backward", [Laid(g, layout), Laid(x, layout)], {})
        check(f"{name}_backward", [g, Laid(x, layout)], {})
        check(f"{name}_backward", [Laid(g, layout), x], {})


def test_results_are_channels_last_where_the_input_is() -> None:
    import cupy

    x = cupy.ones((2, 5, 6, 8), np.float32).transpose(0, 3, 1, 2)
    assert run_formula("gelu", [x], {}).strides == x.strides
    g = cupy.ones(x.shape, np.float32)
    assert run_formula("gelu_backward", [g, x], {}).strides == x.strides


@pytest.mark.parametrize("name", FORWARD)
def test_values_without_a_number(name: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 100.0, -100.0, 20.0, 21.0, -30.0])
    check(name, [x], FORWARD[name], ("float32", "float64"))


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_at_extremes(name: str) -> None:
    x = np.array([0.0, -0.0, 100.0, -100.0, 20.0, 21.0, 30.0, -30.0, 3.0, -3.0, 0.5, -0.5])
    if name in ("sigmoid_backward", "tanh_backward"):
        x = np.tanh(x)
    check(name, [np.ones(12), x], BACKWARD[name], ("float32", "float64"))


@pytest.mark.parametrize("shape", [(6,), (4, 6, 5, 8), (3, 64), (2, 2, 3)])
def test_glu(shape: tuple) -> None:
    for axis in range(len(shape)):
        if shape[axis] % 2:
            continue
        half = list(shape)
        half[axis] //= 2
        gpu.check("glu", [values(*shape)], {"axis": axis})
        gpu.check("glu", [Laid(values(*shape), "offset")], {"axis": axis})
        gpu.check("glu_backward", [values(*half, scale=1.0), values(*shape)], {"axis": axis})


def test_a_single_number() -> None:
    check("gelu", [np.array(0.7)], {})
    check("gelu_backward", [np.array(0.7), np.array(-0.3)], {})


def test_glu_of_what_is_declined() -> None:
    """Integers and empty arrays are the generic form's."""
    import cupy

    for x in (cupy.ones(4, np.int64), cupy.ones((0, 4), np.float32)):
        assert gpu.run_override("glu", [x], {"axis": 0}) is NotImplemented
