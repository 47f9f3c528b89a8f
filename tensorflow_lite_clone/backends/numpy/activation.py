"""Activations in pieces linear, and their gradients, with the loops that NumPy has fast.

Where numpy.maximum of an array and a number, numpy.where and products with masks take 0.2 to 4 ns
an element, a maximum of two arrays and operations on bits take a tenth of one.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import BLOCK, blockwise
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.table import override

LIGHT = 1 << 19  # elements a thread should have of work on each that takes 0.3 ns
_BITS = {"f": np.dtype(np.int32), "d": np.dtype(np.int64)}


def number(value: float, dtype: Any = np.float32) -> np.ndarray:
    """An operand that NumPy takes as it is: to convert one of Python's takes as long as a call.

    What is exact in float32 may stand beside float64 as well.
    """
    operand = np.array(value, dtype)
    operand.setflags(write=False)
    return operand


_SET = number(1, np.int8)
_ZERO, _INFINITY = map(number, (0, math.inf))


@cache
def _zeros(dtype: np.dtype) -> np.ndarray:
    zeros = np.zeros(BLOCK, dtype)
    zeros.setflags(write=False)
    return zeros


def zeros_like(x: Any) -> Any:
    return _zeros(x.dtype)[: x.size].reshape(x.shape)


def _relu(out: Any, x: Any) -> None:
    if x.size < 1 << 16:
        np.maximum(x, zeros_like(x), out=out)
    else:  # what does not stay in a cache is faster read alone
        x.clip(_ZERO, _INFINITY, out)


@cache
def _zero(dtype: np.dtype) -> np.ndarray:
    return np.zeros((), dtype)


@override("relu", backend="numpy", declines=False)
def relu(F: Any, x: Any) -> Any:
    if x.size >= tuning.small_elementwise:
        y = blockwise(_relu, x, least=LIGHT)
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
    mine, other = out.view(bits), value.view(bits)
    mask = np.negative(chosen.view(np.int8)).astype(bits)
    np.bitwise_and(mask, np.bitwise_xor(mine, other), mask)
    np.bitwise_xor(mine, mask, mine)


@override("threshold_backward", backend="numpy")
def threshold_backward(F: Any, g: Any, x: Any, *, threshold: float) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    level = F.backend.constant(threshold, x.dtype)
    return blockwise(lambda out, g, x: _keep(out, g, x <= level), g, x, least=LIGHT)


@override("hardtanh_backward", backend="numpy")
def hardtanh_backward(F: Any, g: Any, x: Any, *, low: float, high: float) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    low, high = F.backend.constant(low, x.dtype), F.backend.constant(high, x.dtype)

    return blockwise(lambda out, g, x: _keep(out, g, _outside(x, low, high)), g, x, least=LIGHT)


@override("leaky_relu", backend="numpy")
def leaky_relu(F: Any, x: Any, *, slope: float) -> Any:
    if x.size < tuning.small_elementwise or not 0 < slope <= 1 or x.dtype.char not in "fd":
        return NotImplemented
    factor = x.dtype.type(slope)

    def kernel(out: Any, x: Any) -> None:
        np.multiply(x, factor, out)
        np.maximum(x, out, out=out)

    return blockwise(kernel, x, least=LIGHT)


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

    return blockwise(kernel, g, x, least=LIGHT)


@override("hardsigmoid", backend="numpy")
def hardsigmoid(F: Any, x: Any) -> Any:
    return (
        NotImplemented
        if x.size < tuning.small_elementwise
        else blockwise(_hardsigmoid, x, least=LIGHT)
    )


def _hardsigmoid(out: Any, x: Any) -> None:
    np.add(x, 3, out)
    np.clip(out, 0, 6, out)
    np.divide(out, 6, out)


@override("hardsigmoid_backward", backend="numpy")
def hardsigmoid_backward(F: Any, g: Any, x: Any) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    return blockwise(_hardsigmoid_backward, g, x, buffers=1, least=LIGHT)


def _hardsigmoid_backward(out: Any, g: Any, x: Any, sixth: Any) -> None:
    np.divide(g, 6, sixth)
    _keep(out, sixth, _outside(x, -3, 3))


@override("hardswish", backend="numpy")
def hardswish(F: Any, x: Any) -> Any:
    return (
        NotImplemented
        if x.size < tuning.small_elementwise
        else blockwise(_hardswish, x, least=LIGHT)
    )


def _hardswish(out: Any, x: Any) -> None:
    np.add(x, 3, out)
    np.clip(out, 0, 6, out)
    np.multiply(out, x, out)
    np.divide(out, 6, out)


@override("hardswish_backward", backend="numpy")
def hardswish_backward(F: Any, g: Any, x: Any) -> Any:
    if x.size < tuning.small_elementwise:
        return NotImplemented
    return blockwise(_hardswish_backward, g, x, buffers=1, least=LIGHT)


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
        zeros = zeros_like(x)
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
        np.minimum(x, zeros_like(x), out=out)
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
