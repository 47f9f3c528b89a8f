"""Distributions whose samplers cannot say beforehand how many uniforms they take.

They run in a Python loop over 53-bit uniforms and agree with PyTorch's streams draw for draw; see
each method for how far the numbers agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tensorflow_lite_clone.backends.numpy.random_integers import IntegerGenerator
from tensorflow_lite_clone.backends.numpy.random_state import (
    Lookahead,
    describe,
    store,
    unsupported,
)

# PyTorch's constants have float32's precision in every dtype.
_THIRD = float(np.float32(1.0 / 3.0))
_SQUEEZE = float(np.float32(0.0331))


class RejectionGenerator(IntegerGenerator):
    """Poisson, binomial, gamma and Dirichlet numbers."""

    __slots__ = ()

    def poisson(self, rates: np.ndarray) -> np.ndarray:
        """Counts with these expected values, of their shape and dtype; 53-bit, in a Python loop."""
        dtype, info = describe(rates.dtype)
        if not info.is_floating_point:
            raise unsupported("poisson_cpu", info)
        means = rates.astype(np.float64).ravel()
        if not (means >= 0).all():
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        out = np.empty(rates.size, dtype)
        with Lookahead(self, 2 * rates.size) as uniforms:
            counts = [_poisson(mean, uniforms) for mean in means.tolist()]
        store(out, np.array(counts, np.float64))
        return out.reshape(rates.shape)

    def binomial(self, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
        """Successes among `count` trials of probability `prob` (of one shape and dtype, float32 or
        float64): PyTorch's numbers, except for float32 counts above 2**24. Where either is no more
        than 0 the result is 0, where `prob` is 1 or more it is `count`; NaN gives NaN.
        NotImplementedError: other dtypes."""
        dtype, info = describe(count.dtype)
        if info.name not in ("float32", "float64"):
            raise unsupported("binomial_cpu", info)
        # PyTorch computes in the dtype of the arguments up to the first number of float64.
        real = dtype.type
        pairs = zip(count.ravel().tolist(), prob.ravel().tolist())
        with Lookahead(self, 2 * count.size) as uniforms:
            samples = [_binomial(n, p, real, uniforms) for n, p in pairs]
        return np.array(samples, dtype).reshape(count.shape)

    def standard_gamma(self, shape_parameter: np.ndarray) -> np.ndarray:
        """Gamma numbers of rate 1, of the parameter's shape and dtype (float32 or float64), at
        least the dtype's smallest normal number: PyTorch's, but for the last bits.

        Marsaglia and Tsang, A simple method for generating gamma variables (2000), on the cube of
        a normal; below 1 the parameter is raised by 1 and the result multiplied by u^(1/alpha)."""
        dtype, info = describe(shape_parameter.dtype)
        if info.name not in ("float32", "float64"):
            raise unsupported("gamma_cpu", info)
        values = self._gammas(shape_parameter.ravel()).astype(dtype)
        # fmax: PyTorch has no NaN here either
        return np.fmax(values, np.finfo(dtype).tiny).reshape(shape_parameter.shape)

    def _gammas(self, alpha: np.ndarray) -> np.ndarray:
        small = alpha < 1
        # As PyTorch has it, up to here in the dtype of the parameter.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            d = (np.where(small, alpha + 1, alpha) - alpha.dtype.type(_THIRD)).astype(np.float64)
            c = 1.0 / np.sqrt(9.0 * d)
            power = np.where(small, np.where(alpha > 0, 1 / alpha, np.nan), 0).astype(np.float64)
        # Normals come in pairs, and the second one of the last pair stays for the next call, as
        # with `_single_normals`. Restoring the state would bring the first one's back.
        spare = self._next_double
        samples = []
        parameters = zip((alpha == 0).tolist(), d.tolist(), c.tolist(), power.tolist())
        with Lookahead(self, 4 * alpha.size) as uniforms:
            for zero, depth, slope, exponent in parameters:
                value = 0.0
                if not zero:
                    value, spare = _gamma(depth, slope, exponent, spare, uniforms)
                samples.append(value)
        self._next_double = spare
        return np.array(samples, np.float64)


def _poisson(mean: float, uniforms: Iterator[float]) -> int:
    """One Poisson count. Small means: uniforms are multiplied until they fall below exp(-mean).
    From 10 on: Hoermann's transformed rejection (1993), two uniforms an attempt."""
    if mean == 0:
        return 0
    if mean < 10:
        bound, product, count = math.exp(-mean), next(uniforms), 0
        while product > bound:
            product *= next(uniforms)
            count += 1
        return count
    log_mean = math.log(mean)
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    log_inverse_alpha = math.log(1.1239 + 1.1328 / (b - 3.4))
    box = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = next(uniforms) - 0.5
        v = next(uniforms)
        margin = 0.5 - abs(u)
        count = math.floor((2 * a / margin + b) * u + mean + 0.43) if margin else -1
        if margin >= 0.07 and v <= box:
            return count
        if count < 0 or (margin < 0.013 and v > margin):
            continue
        accept = math.log(v) + log_inverse_alpha - math.log(a / (margin * margin) + b)
        if accept <= -mean + count * log_mean - math.lgamma(count + 1):
            return count


def _gamma(
    d: float, c: float, power: float, spare: float | None, uniforms: Iterator[float]
) -> tuple[float, float | None]:
    """One gamma number of shape d + 1/3 times u^power, and the normal that is left over."""
    boost = 1.0 if power == 0 else (1.0 - next(uniforms)) ** power
    while True:
        root = 0.0
        while root <= 0:
            if spare is None:
                u1, u2 = next(uniforms), next(uniforms)
                radius = math.sqrt(-2.0 * math.log1p(-u2))
                angle = 2.0 * math.pi * u1
                normal, spare = radius * math.cos(angle), radius * math.sin(angle)
            else:
                normal, spare = spare, None
            root = 1.0 + c * normal
        v = root * root * root
        u = 1.0 - next(uniforms)
        square = normal * normal
        squeezed = u < 1.0 - _SQUEEZE * square * square
        if squeezed or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return boost * d * v, spare


def _binomial(count: float, prob: float, real: type, uniforms: Iterator[float]) -> float:
    """One count of successes; the rarer of success and failure is what is counted."""
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return count
    if not prob < 1 or count != count:
        return math.nan
    rare = prob if prob <= 0.5 else float(real(1.0) - real(prob))
    sample = _binomial_btrs if float(real(count) * real(rare)) >= 10 else _binomial_inversion
    samples = sample(count, rare, real, uniforms)
    return samples if prob <= 0.5 else count - samples


def _binomial_inversion(count: float, prob: float, real: type, uniforms: Iterator[float]) -> float:
    """How many geometric waiting times fit into `count` trials (Devroye, Non-uniform random
    variate generation, 1986, X.4.3)."""
    scale = float(np.log1p(-real(prob)))
    waited, successes = 0.0, 0.0
    while True:
        u = next(uniforms)
        waited += math.ceil(math.log(u) / scale) if u else math.inf
        if waited > count:
            return successes
        successes += 1.0


def _binomial_btrs(count: float, prob: float, real: type, uniforms: Iterator[float]) -> float:
    """Hoermann, The generation of binomial random variates (1993), algorithm BTRS."""
    n, p = real(count), real(prob)
    k: float
    deviation = math.sqrt(float(n * p * (1 - p)))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c = float(n * p) + 0.5
    box = 0.92 - 4.2 / b
    odds = float(p / (1 - p))
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor(float((n + 1) * p))
    at_mode = (
        (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
        + _stirling_tail(mode)
        + _stirling_tail(count - mode)
    )
    while True:
        u = next(uniforms) - 0.5
        v = next(uniforms)
        margin = 0.5 - abs(u)
        k = math.floor((2 * a / margin + b) * u + c) if margin else -1
        if k < 0 or k > count:
            continue
        if margin >= 0.07 and v <= box:
            return float(k)
        bound = (
            at_mode
            + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        accept = v * alpha / (a / (margin * margin) + b)
        if accept == 0 or math.log(accept) <= bound:
            return float(k)


def _stirling_tail(k: float) -> float:
    """log k! less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2 (Hoermann 1993)."""
    m = k + 1.0
    if k < 10:
        exact = math.lgamma(m)
        return exact - (k + 0.5) * math.log(m) + m - 0.5 * math.log(2 * math.pi)
    square = m * m
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / m
