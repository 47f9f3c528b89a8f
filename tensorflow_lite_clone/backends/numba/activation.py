"""Smooth activations and the rectifier, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)

_kernels = Kernels("activation")
_LEAST = 1 << 10
_LEAST_LINEAR = 1 << 12  # what NumPy does in a pass or two


def _unary(name: str, least: int) -> None:
    @compiled(name, least=least)
    def forward(x: np.ndarray) -> np.ndarray:
        y = np.empty_like(x)
        run(getattr(_kernels, name), x.size, 1, x.reshape(-1), y.reshape(-1))
        return y


def _gradient(name: str, least: int) -> None:
    """The gradient from g and what the forward saved."""

    @compiled(name, least=least)
    def backward(g: np.ndarray, x: np.ndarray) -> Any:
        if g.shape != x.shape or not row_major(x):
            return NotImplemented
        gx = np.empty_like(x)
        run(getattr(_kernels, name), x.size, 1, g.reshape(-1), x.reshape(-1), gx.reshape(-1))
        return gx


for _name in ("gelu", "gelu_tanh", "silu"):
    _unary(_name, _LEAST)
    _gradient(f"{_name}_backward", _LEAST)
_unary("sigmoid", _LEAST)
_unary("relu", _LEAST_LINEAR)
_gradient("sigmoid_backward", _LEAST_LINEAR)
_gradient("tanh_backward", _LEAST_LINEAR)


@compiled("threshold_backward", least=_LEAST_LINEAR)
def threshold_backward(g: np.ndarray, x: np.ndarray, *, threshold: float) -> Any:
    if g.shape != x.shape or not row_major(x):
        return NotImplemented
    gx = np.empty_like(x)
    run(_kernels.threshold_backward, x.size, 1, g.reshape(-1), x.reshape(-1), float(threshold),
        gx.reshape(-1))  # fmt: skip
    return gx
