"""Smooth activations and their gradients on the CPU, in blocks that stay in a cache."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.activation import LIGHT, number, zeros_like
from tensorflow_lite_clone.backends.numpy.blocks import blockwise
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.table import override

_HALF, _ONE = number(0.5), number(1)


@override("tanh_backward", backend="numpy")
def tanh_backward(F: Any, g: Any, y: Any) -> Any:
    return (
        NotImplemented
        if y.size < tuning.small_elementwise
        else blockwise(_tanh_backward, g, y, least=LIGHT)
    )


def _tanh_backward(out: Any, g: Any, y: Any) -> None:
    np.multiply(y, y, out)
    np.subtract(_ONE, out, out)
    np.multiply(out, g, out)


@override("sigmoid_backward", backend="numpy")
def sigmoid_backward(F: Any, g: Any, y: Any) -> Any:
    return (
        NotImplemented
        if y.size < tuning.small_elementwise
        else blockwise(_sigmoid_backward, g, y, least=LIGHT)
    )


def _sigmoid_backward(out: Any, g: Any, y: Any) -> None:
    np.subtract(_ONE, y, out)
    np.multiply(out, y, out)
    np.multiply(out, g, out)


@cache
def _to_base_2() -> np.ndarray | None:
    """-log2(e), if NumPy has exp2 of float32 in vectors: it takes half the time of exp then.

    So it has on processors with AVX-512.
    """
    introspect = getattr(np.lib, "introspect", None)  # since NumPy 2.2
    found = introspect.opt_func_info("^exp2$", "float32").get("exp2", {}) if introspect else {}
    fast = any([not loop["current"].startswith("baseline") for loop in found.values()])
    return number(-math.log2(math.e)) if fast else None


def _exp_of_negative(x: Any, out: Any) -> None:
    """Write exp(-x) into `out`, of float32 off by what rounding x once more would change."""
    factor = _to_base_2() if out.dtype.char == "f" else None
    if factor is None:
        np.negative(x, out)
        np.exp(out, out)
    else:
        np.multiply(x, factor, out)
        np.exp2(out, out)


def _sigmoid(out: Any, x: Any) -> None:
    _exp_of_negative(x, out)
    np.add(out, _ONE, out)
    np.divide(_ONE, out, out)


@override("sigmoid", backend="numpy")
def sigmoid(F: Any, x: Any) -> Any:
    return NotImplemented if x.size < tuning.small_elementwise else blockwise(_sigmoid, x)


def _silu(out: Any, x: Any) -> None:
    _exp_of_negative(x, out)
    np.add(out, _ONE, out)
    np.divide(x, out, out)


@override("silu", backend="numpy")
def silu(F: Any, x: Any) -> Any:
    return NotImplemented if x.size < tuning.small_elementwise else blockwise(_silu, x)


def _silu_backward(out: Any, g: Any, x: Any, s: Any) -> None:
    _sigmoid(s, x)
    np.subtract(_ONE, s, out)
    np.multiply(out, x, out)
    np.add(out, _ONE, out)
    np.multiply(out, s, out)
    np.multiply(out, g, out)


@override("silu_backward", backend="numpy")
def silu_backward(F: Any, g: Any, x: Any) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    return blockwise(_silu_backward, g, x, buffers=1)


# erf(x / sqrt(2)) = tanh(x P(x^2 / 2) / sqrt(2)) with P(s) = a + b s + c / ((s + d)^2 + e). P is
# fitted to atanh(erf(z)) / z at 3000 Chebyshev points of z in [0, 4.6], weighted with what erf
# changes by: a, b, c by Lawson's iteration for the least maximum, d and e by a simplex search
# around it. So fitted erf is off by 2.7e-7 at most, half of which the distribution is off by; past
# 4.6 all is 1. Five numbers suffice as P grows like a square root, where a polynomial needs six.
_A, _B, _C, _D, _E = 1.52773917, 0.05602025, -30.37923455, 4.45380992, 56.23302553
# The same in t = x^2, with 1 / sqrt(2) in a, b and c.
_SHIFT, _LEAST = number(2 * _D), number(4 * _E)  # (t + 2 d)^2 + 4 e = 4 ((s + d)^2 + e)
_LEVEL, _SLOPE, _TIMES = [number(math.sqrt(0.5) * value) for value in (_A, _B / 2, _C * 4)]


def _erf_and_square(out: Any, square: Any, x: Any) -> None:
    """erf(x / sqrt(2)) and x squared."""
    np.multiply(x, x, square)
    np.add(square, _SHIFT, out)
    np.multiply(out, out, out)
    np.add(out, _LEAST, out)
    np.divide(_TIMES, out, out)
    np.add(out, _LEVEL, out)
    np.multiply(square, _SLOPE, square)
    np.add(out, square, out)
    np.multiply(out, x, out)
    np.tanh(out, out)


def _gelu(out: Any, x: Any, square: Any) -> None:
    _erf_and_square(out, square, x)
    np.add(out, _ONE, out)
    np.multiply(out, _HALF, out)
    np.multiply(out, x, out)


@override("gelu", backend="numpy")
def gelu(F: Any, x: Any) -> Any:
    if x.dtype.char != "f":
        return NotImplemented
    return blockwise(_gelu, x, buffers=1, least=1 << 17)


_FROM_SQUARE = number(-0.5 / _SLOPE)  # times the square that is left it is -x^2 / 2
_PEAK = number(math.sqrt(2 / math.pi))


def _gelu_backward(out: Any, g: Any, x: Any, density: Any) -> None:
    _erf_and_square(out, density, x)
    np.multiply(density, _FROM_SQUARE, density)
    np.exp(density, density)
    np.multiply(density, _PEAK, density)
    np.multiply(density, x, density)
    np.add(out, density, out)
    np.add(out, _ONE, out)
    np.multiply(out, g, out)
    np.multiply(out, _HALF, out)


@override("gelu_backward", backend="numpy")
def gelu_backward(F: Any, g: Any, x: Any) -> Any:
    if x.dtype.char != "f":
        return NotImplemented
    return blockwise(_gelu_backward, g, x, buffers=1, least=1 << 17)


_RATE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


@override("gelu_tanh", backend="numpy")
def gelu_tanh(F: Any, x: Any) -> Any:
    return NotImplemented if x.size < tuning.small_elementwise else blockwise(_gelu_tanh, x)


def _gelu_tanh(out: Any, x: Any) -> None:
    _tanh_of_cubic(out, x)
    np.add(out, 1, out)
    np.multiply(out, 0.5, out)
    np.multiply(out, x, out)


def _tanh_of_cubic(out: Any, x: Any) -> None:
    np.multiply(x, x, out)
    np.multiply(out, _RATE * _CUBIC, out)
    np.add(out, _RATE, out)
    np.multiply(out, x, out)
    np.tanh(out, out)


@override("gelu_tanh_backward", backend="numpy")
def gelu_tanh_backward(F: Any, g: Any, x: Any) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    return blockwise(_gelu_tanh_backward, g, x, buffers=1)


def _gelu_tanh_backward(out: Any, g: Any, x: Any, slope: Any) -> None:
    """g / 2 times (1 + t) + (1 - t) (1 + t) u' x, for t = tanh(u).

    The factors that are zero come first: u' x may overflow.
    """
    _tanh_of_cubic(out, x)
    np.multiply(x, x, slope)
    np.multiply(slope, 3 * _RATE * _CUBIC, slope)
    np.add(slope, _RATE, slope)
    np.multiply(slope, np.subtract(1, out), slope)
    np.add(out, 1, out)
    np.multiply(slope, out, slope)
    np.multiply(slope, x, slope)
    np.add(out, slope, out)
    np.multiply(out, g, out)
    np.multiply(out, 0.5, out)


def _log1p_of_exp(out: Any, e: Any, w: Any) -> None:
    """Write log(1 + exp(e)) into out; e and w are lost.

    With w = 1 + exp(e) rounded it is log(w) + (exp(e) - (w - 1)) / w: numpy.log1p, which has no
    vector form, takes three times as long. The difference w - 1 is exact, where exp(e) is small
    as well.
    """
    np.exp(e, e)
    np.add(e, 1, w)
    np.subtract(w, 1, out)
    np.subtract(e, out, e)
    np.divide(e, w, e)
    np.log(w, out)
    np.add(out, e, out)


@override("softplus", backend="numpy")
def softplus(F: Any, x: Any, *, beta: float, threshold: float) -> Any:
    if (
        x.size < tuning.small_elementwise
        or not (threshold >= 18 and beta > 0)
        or x.dtype.char != "f"
    ):
        return NotImplemented  # where the maximum with x is not what lies past the threshold

    def kernel(out: Any, x: Any, z: Any, w: Any) -> None:
        np.multiply(x, beta, z)
        np.minimum(z, 80, out=z)  # whose exponential is finite
        _log1p_of_exp(out, z, w)
        np.divide(out, beta, out)
        np.maximum(out, x, out=out)

    return blockwise(kernel, x, buffers=2)


@override("softplus_backward", backend="numpy")
def softplus_backward(F: Any, g: Any, x: Any, *, beta: float, threshold: float) -> Any:
    if x.size < tuning.small_elementwise or threshold < 18 or x.dtype.char != "f":
        return NotImplemented  # where the sigmoid past the threshold is not 1 in float32

    def kernel(out: Any, g: Any, x: Any) -> None:
        np.multiply(x, -beta, out)
        np.exp(out, out)
        np.add(out, 1, out)
        np.divide(g, out, out)

    return blockwise(kernel, g, x)


@override("log_sigmoid", backend="numpy")
def log_sigmoid(F: Any, x: Any) -> Any:
    return (
        NotImplemented
        if x.size < tuning.small_elementwise
        else blockwise(_log_sigmoid, x, buffers=2)
    )


def _log_sigmoid(out: Any, x: Any, z: Any, w: Any) -> None:
    np.abs(x, z)
    np.negative(z, z)
    _log1p_of_exp(out, z, w)
    np.minimum(x, zeros_like(x), out=z)
    np.subtract(z, out, out)


@override("log_sigmoid_backward", backend="numpy")
def log_sigmoid_backward(F: Any, g: Any, x: Any) -> Any:
    return (
        NotImplemented
        if x.size < tuning.small_elementwise
        else blockwise(_log_sigmoid_backward, g, x)
    )


def _log_sigmoid_backward(out: Any, g: Any, x: Any) -> None:
    np.exp(x, out)
    np.add(out, 1, out)
    np.divide(g, out, out)
