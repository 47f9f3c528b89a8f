"""Activations and their gradients, in blocks that stay in a cache, with the loops NumPy has fast.

Where numpy.maximum of an array and a number, numpy.where and products with masks take 0.2 to 4 ns
an element, a maximum of two arrays and operations on bits take a tenth of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import BLOCK, blockwise
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.table import override

_LIGHT = 1 << 19  # elements a thread should have of work on each that takes 0.3 ns
_BITS = {"f": np.dtype(np.int32), "d": np.dtype(np.int64)}


def _scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    """An operand that NumPy takes as it is: to convert one of Python's takes as long as a call.

    What is exact in float32 may stand beside float64 as well.
    """
    operand = np.array(value, dtype)
    operand.setflags(write=False)
    return operand


_SET = _scalar(1, np.int8)
_ZERO, _HALF, _ONE, _INFINITY = map(_scalar, (0, 0.5, 1, math.inf))


@cache
def _zeros(dtype: np.dtype) -> np.ndarray:
    zeros = np.zeros(BLOCK, dtype)
    zeros.setflags(write=False)
    return zeros


def _zeros_like(x: Any) -> Any:
    return _zeros(x.dtype)[: x.size].reshape(x.shape)


def _blockwise_override(name: str, **settings: int) -> Callable[..., Any]:
    """Override an op by ``kernel(out, *arrays, *buffers)``, but for arrays of few elements."""

    def register(kernel: Callable[..., object]) -> Callable[..., object]:
        @override(name, backend="numpy")
        def run(F: Any, *arrays: Any) -> Any:
            if arrays[0].size < tuning.small_elementwise:
                return NotImplemented
            return blockwise(kernel, *arrays, **settings)

        return kernel

    return register


def _relu(out: Any, x: Any) -> None:
    if x.size < 1 << 16:
        np.maximum(x, _zeros_like(x), out=out)
    else:  # what does not stay in a cache is faster read alone
        x.clip(_ZERO, _INFINITY, out)


@cache
def _zero(dtype: np.dtype) -> np.ndarray:
    return np.zeros((), dtype)


@override("relu", backend="numpy", declines=False)
def relu(F: Any, x: Any) -> Any:
    if x.size >= tuning.small_elementwise:
        y = blockwise(_relu, x, least=_LIGHT)
        if y is not NotImplemented:
            return y
    return np.maximum(x, _zero(x.dtype))


def _keep(out: Any, g: Any, dropped: Any) -> None:
    """g where `dropped` (booleans, which it overwrites) is false, zero elsewhere."""
    kept = dropped.view(np.int8)
    np.subtract(kept, _SET, kept)  # all bits set where it is false
    bits = _BITS[out.dtype.char]
    mask = out.view(bits)
    np.copyto(mask, kept)
    np.bitwise_and(mask, g.view(bits), mask)


def _outside(x: Any, low: Any, high: Any) -> Any:
    """Where x is not between two bounds."""
    inside = x > low
    inside &= x < high
    return np.logical_not(inside, inside)


def _choose(out: Any, chosen: Any, value: Any) -> None:
    """Write `value` into `out` where `chosen` (booleans) is true."""
    bits = _BITS[out.dtype.char]
    written, other = out.view(bits), value.view(bits)
    mask = np.negative(chosen.view(np.int8)).astype(bits)
    np.bitwise_and(mask, np.bitwise_xor(written, other), mask)
    np.bitwise_xor(written, mask, written)


@override("threshold_backward", backend="numpy")
def threshold_backward(F: Any, g: Any, x: Any, *, threshold: float) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    level = F.backend.constant(threshold, x.dtype)
    return blockwise(lambda out, g, x: _keep(out, g, x <= level), g, x, least=_LIGHT)


@override("hardtanh_backward", backend="numpy")
def hardtanh_backward(F: Any, g: Any, x: Any, *, low: float, high: float) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    low, high = F.backend.constant(low, x.dtype), F.backend.constant(high, x.dtype)

    return blockwise(lambda out, g, x: _keep(out, g, _outside(x, low, high)), g, x, least=_LIGHT)


@override("leaky_relu", backend="numpy")
def leaky_relu(F: Any, x: Any, *, slope: float) -> Any:
    if x.size < tuning.small_elementwise or not 0 < slope <= 1 or x.dtype.char not in "fd":
        return NotImplemented
    factor = x.dtype.type(slope)

    def kernel(out: Any, x: Any) -> None:
        np.multiply(x, factor, out)
        np.maximum(x, out, out=out)

    return blockwise(kernel, x, least=_LIGHT)


@override("leaky_relu_backward", backend="numpy")
def leaky_relu_backward(F: Any, g: Any, x: Any, *, slope: float) -> Any:
    if x.size < tuning.small_elementwise or x.dtype.char not in "fd":
        return NotImplemented
    bits = _BITS[x.dtype.char]
    low, high = np.array([slope, 1], x.dtype).view(bits)
    step = high - low

    def kernel(out: Any, g: Any, x: Any) -> None:
        factor = out.view(bits)  # the bits of the slope or of 1
        np.copyto(factor, x > 0)
        np.multiply(factor, step, factor)
        np.add(factor, low, factor)
        np.multiply(out, g, out)

    return blockwise(kernel, g, x, least=_LIGHT)


@_blockwise_override("hardsigmoid", least=_LIGHT)
def _hardsigmoid(out: Any, x: Any) -> None:
    np.add(x, 3, out)
    np.clip(out, 0, 6, out)
    np.divide(out, 6, out)


@_blockwise_override("hardsigmoid_backward", buffers=1, least=_LIGHT)
def _hardsigmoid_backward(out: Any, g: Any, x: Any, sixth: Any) -> None:
    np.divide(g, 6, sixth)
    _keep(out, sixth, _outside(x, -3, 3))


@_blockwise_override("hardswish", least=_LIGHT)
def _hardswish(out: Any, x: Any) -> None:
    np.add(x, 3, out)
    np.clip(out, 0, 6, out)
    np.multiply(out, x, out)
    np.divide(out, 6, out)


@_blockwise_override("hardswish_backward", buffers=1, least=_LIGHT)
def _hardswish_backward(out: Any, g: Any, x: Any, slope: Any) -> None:
    np.multiply(x, 1 / 3, slope)
    np.add(slope, 0.5, slope)
    np.multiply(slope, g, slope)
    _choose(slope, x >= 3, g)
    _keep(out, slope, x <= -3)


@override("elu", backend="numpy")
def elu(F: Any, x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    if x.size < tuning.small_elementwise or x.dtype.char != "f":
        return NotImplemented

    def kernel(out: Any, x: Any, positive: Any) -> None:
        zeros = _zeros_like(x)
        np.minimum(x, zeros, out=out)
        _multiply(out, rate)
        np.expm1(out, out)
        _multiply(out, scale * alpha)
        np.maximum(x, zeros, out=positive)
        _multiply(positive, scale)
        np.add(out, positive, out)  # one of the two is zero

    return blockwise(kernel, x, buffers=1)


@override("elu_backward", backend="numpy")
def elu_backward(F: Any, g: Any, x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    if x.size < tuning.small_elementwise or x.dtype.char != "f":
        return NotImplemented
    smooth = alpha * rate == 1  # the slope of the exponential ends in that of the line

    def kernel(out: Any, g: Any, x: Any, *positive: Any) -> None:
        np.minimum(x, _zeros_like(x), out=out)
        _multiply(out, rate)
        np.exp(out, out)
        _multiply(out, scale * alpha * rate)
        np.multiply(out, g, out)
        if not smooth:
            np.multiply(g, scale, positive[0])
            _choose(out, x > 0, positive[0])

    return blockwise(kernel, g, x, buffers=0 if smooth else 1)


def _multiply(x: Any, factor: float) -> None:
    """x *= factor, where that changes anything."""
    if factor != 1:
        np.multiply(x, factor, x)


@_blockwise_override("tanh_backward", least=_LIGHT)
def _tanh_backward(out: Any, g: Any, y: Any) -> None:
    np.multiply(y, y, out)
    np.subtract(_ONE, out, out)
    np.multiply(out, g, out)


@_blockwise_override("sigmoid_backward", least=_LIGHT)
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
    return _scalar(-math.log2(math.e)) if fast else None


def _exp_of_negative(x: Any, out: Any) -> None:
    """Write exp(-x) into `out`, of float32 off by what rounding x once more would change."""
    factor = _to_base_2() if out.dtype.char == "f" else None
    if factor is None:
        np.negative(x, out)
        np.exp(out, out)
    else:
        np.multiply(x, factor, out)
        np.exp2(out, out)


@_blockwise_override("sigmoid")
def _sigmoid(out: Any, x: Any) -> None:
    _exp_of_negative(x, out)
    np.add(out, _ONE, out)
    np.divide(_ONE, out, out)


@_blockwise_override("silu")
def _silu(out: Any, x: Any) -> None:
    _exp_of_negative(x, out)
    np.add(out, _ONE, out)
    np.divide(x, out, out)


@_blockwise_override("silu_backward", buffers=1)
def _silu_backward(out: Any, g: Any, x: Any, s: Any) -> None:
    _sigmoid(s, x)
    np.subtract(_ONE, s, out)
    np.multiply(out, x, out)
    np.add(out, _ONE, out)
    np.multiply(out, s, out)
    np.multiply(out, g, out)


# erf(x / sqrt(2)) = tanh(x P(x^2 / 2) / sqrt(2)) with P(s) = a + b s + c / ((s + d)^2 + e). P is
# fitted to atanh(erf(z)) / z at 3000 Chebyshev points of z in [0, 4.6], weighted with what erf
# changes by: a, b, c by Lawson's iteration for the least maximum, d and e by a simplex search
# around it. So fitted erf is off by 2.7e-7 at most, half of which the distribution is off by; past
# 4.6 all is 1. Five numbers suffice as P grows like a square root, where a polynomial needs six.
_A, _B, _C, _D, _E = 1.52773917, 0.05602025, -30.37923455, 4.45380992, 56.23302553
# The same in t = x^2, with 1 / sqrt(2) in a, b and c.
_SHIFT, _LEAST = _scalar(2 * _D), _scalar(4 * _E)  # (t + 2 d)^2 + 4 e = 4 ((s + d)^2 + e)
_LEVEL, _SLOPE, _TIMES = [_scalar(math.sqrt(0.5) * value) for value in (_A, _B / 2, _C * 4)]


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


_FROM_SQUARE = _scalar(-0.5 / _SLOPE)  # times the square that is left it is -x^2 / 2
_PEAK = _scalar(math.sqrt(2 / math.pi))


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


@_blockwise_override("gelu_tanh")
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


@_blockwise_override("gelu_tanh_backward", buffers=1)
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


@_blockwise_override("log_sigmoid", buffers=2)
def _log_sigmoid(out: Any, x: Any, z: Any, w: Any) -> None:
    np.abs(x, z)
    np.negative(z, z)
    _log1p_of_exp(out, z, w)
    np.minimum(x, _zeros_like(x), out=z)
    np.subtract(z, out, out)


@_blockwise_override("log_sigmoid_backward")
def _log_sigmoid_backward(out: Any, g: Any, x: Any) -> None:
    np.exp(x, out)
    np.add(out, 1, out)
    np.divide(g, out, out)
