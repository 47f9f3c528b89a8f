"""PyTorch's random streams on the CPU: the same seed gives the same numbers.

Which draws a function takes, and in which order, is part of its contract, so every method says so
("24-bit": one draw an element; "53-bit": two). Elements are filled in the order of memory.
PyTorch's compiler fuses `x * y + z` into one rounding; where that changes results, so do we.
What can differ is the last bits of logarithms, sines and the like: randn by 3.5e-7 at most, times
the value where that is above one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.random_checks import (
    check_deviation,
    check_multinomial,
    check_positive,
    check_probability,
    check_success,
    check_uniform_bounds,
    continuous,
)
from tensorflow_lite_clone.backends.numpy.random_rejection import RejectionGenerator
from tensorflow_lite_clone.backends.numpy.random_state import (
    Shape,
    blocks,
    describe,
    flatten,
    narrow,
    nondeterministic_seed,
    store,
    unsupported,
)
from tensorflow_lite_clone.core.dtypes import DType

# Moves 8 values of 4 or 8 bytes at a time.
_EIGHT = {itemsize: np.dtype((np.void, 8 * itemsize)) for itemsize in (4, 8)}


def _fused(x: np.ndarray, y: float, z: float) -> np.ndarray:
    """x * y + z in float64, as good as rounded once: the errors of the product and of the sum are
    computed exactly and added at the end."""
    product = x * y
    total = product + z
    if abs(y) > 1e250:  # the splitting would overflow
        return total
    # The product's error: each factor is split into two halves of 26 bits, by 2**27 + 1.
    split = 134217729.0 * y
    high_y = split - (split - y)
    low_y = y - high_y
    high_x = 134217729.0 * x
    high_x -= high_x - x
    low_x = x - high_x
    error = high_x * high_y
    error -= product
    high_x *= low_y
    error += high_x
    error += low_x * high_y
    low_x *= low_y
    error += low_x
    # The sum's error: what each operand lost.
    part = total - product
    product -= total - part
    error += product
    np.subtract(z, part, out=part)
    error += part
    total += error
    return total


def _box_muller(uniform: np.ndarray) -> None:
    """In place, blocks of 16 uniforms to normals: u1 of the first 8, u2 of the last 8;
    radius sqrt(-2 log(1 - u1)), angle 2 pi u2; first the 8 cosines, then the 8 sines."""
    eight = _EIGHT[uniform.itemsize]
    halves = uniform.view(eight).reshape(-1, 2)
    radius = halves[:, 0].copy().view(uniform.dtype)
    angle = halves[:, 1].copy().view(uniform.dtype)
    np.subtract(1.0, radius, out=radius)
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle *= 2.0 * math.pi
    halves[:, 0] = (radius * np.cos(angle)).view(eight)
    halves[:, 1] = (radius * np.sin(angle)).view(eight)


def _affine(normals: np.ndarray, mean: float, std: float) -> np.ndarray:
    """normals * std + mean, rounded once, in the dtype of `normals` (float32 or float64)."""
    if mean == 0.0:
        return normals if std == 1.0 else normals * normals.dtype.type(std)
    if normals.dtype == np.float64:
        return _fused(normals, std, mean)
    wide = normals.astype(np.float64)  # holds the product of two float32 exactly
    wide *= float(np.float32(std))
    wide += float(np.float32(mean))
    return wide.astype(np.float32)


class Generator(RejectionGenerator):
    """A stream of random numbers, and the distributions made of it.

    Every method takes a `shape` (an int or a tuple) and a NumPy `dtype` (bfloat16: `ml_dtypes`) and
    returns a new C-contiguous array. RuntimeError: parameters outside the distribution's domain;
    NotImplementedError: a dtype that PyTorch does not draw either."""

    __slots__ = ()

    # ---- real numbers

    def uniform(
        self, shape: Shape, dtype: Any = np.float32, low: float = 0.0, high: float = 1.0
    ) -> np.ndarray:
        """low + u (high - low) in [low, high): u 24-bit, for float64 53-bit.

        Complex dtypes: both parts, the real one first."""
        dtype, info = describe(dtype)
        shape, count = flatten(shape)
        if info.is_complex:
            real = info.to_real().name
            return self.uniform(2 * count, real, low, high).view(dtype).reshape(shape)
        check_uniform_bounds(low, high, info)
        out = np.empty(count, dtype)
        wide = info.name == "float64"
        shift, span = float(low), float(high) - float(low)
        if not wide:
            shift = float(np.float32(low))
            span = float(np.float32(high) - np.float32(low))
        first, end = narrow(low, dtype), narrow(high, dtype)
        for part in blocks(count):
            length = part.stop - part.start
            values = self._uniform53(length) if wide else self._uniform24(length)
            if (shift, span) != (0.0, 1.0):
                values = _affine(values, shift, span)
            store(out[part], values)
            if dtype.itemsize == 2 or (shift, span) != (0.0, 1.0):
                np.copyto(out[part], first, where=out[part] == end)  # it was rounded up to `high`
        return out.reshape(shape)

    def normal(
        self,
        shape: Shape,
        dtype: Any = np.float32,
        mean: float | np.ndarray = 0.0,
        std: float | np.ndarray = 1.0,
        *,
        contiguous: bool = True,
    ) -> np.ndarray:
        """sample * std + mean, where array means and deviations broadcast to `shape`.

        16 elements or more: Box-Muller over blocks of 16 uniforms (24-bit, for float64 53-bit); a
        rest is covered by 16 new uniforms for the last 16 elements. Fewer elements, or
        `contiguous=False` (for filling a strided array): float64 pairs one after the other, where
        the second of a pair may be left for the next call. Complex: both parts, std / sqrt(2)."""
        if isinstance(std, np.ndarray):
            if std.dtype.kind == "c":
                raise RuntimeError("normal expects standard deviation to be non-complex")
            if std.size and not std.min() >= 0:
                raise RuntimeError("normal expects all elements of std >= 0.0")
            sample = self.normal(shape, dtype, contiguous=contiguous)
            np.multiply(sample, std, out=sample, casting="unsafe")
            if not isinstance(mean, np.ndarray):
                mean = narrow(mean, sample.dtype)
            return np.add(sample, mean, out=sample, casting="unsafe")
        if isinstance(mean, np.ndarray):
            sample = self.normal(shape, dtype, 0.0, std, contiguous=contiguous)
            return np.add(sample, mean, out=sample, casting="unsafe")
        check_deviation(std)
        dtype, info = describe(dtype)
        shape, count = flatten(shape)
        if count and info.is_complex:
            real, std = info.to_real().name, std / math.sqrt(2)
            parts = self.normal(2 * count, real, mean, std, contiguous=contiguous)
            return parts.view(dtype).reshape(shape)
        if count and not info.is_floating_point:
            raise unsupported("normal_kernel_cpu", info)
        out = np.empty(count, dtype)
        if count >= 16 and contiguous:
            self._fill_normal(out, float(mean), float(std))
        else:
            store(out, _affine(self._single_normals(count), float(mean), float(std)))
        return out.reshape(shape)

    def _fill_normal(self, out: np.ndarray, mean: float, std: float) -> None:
        uniforms = self._uniform53 if out.itemsize == 8 else self._uniform24
        rest = out.size % 16
        for part in blocks(out.size - rest):
            values = uniforms(part.stop - part.start)
            _box_muller(values)
            out[part] = _affine(values, mean, std)
        if rest:
            if out.itemsize > 2:  # 16-bit dtypes draw block by block and never draw the rest
                uniforms(rest)
            values = uniforms(16)
            _box_muller(values)
            out[-16:] = _affine(values, mean, std)

    def log_normal(
        self, shape: Shape, dtype: Any = np.float32, mean: float = 1.0, std: float = 2.0
    ) -> np.ndarray:
        """exp(normal), from float64 pairs one after the other."""
        check_positive("log_normal_", "std", std)
        dtype, info = describe(dtype)
        shape, count = flatten(shape)
        if not info.is_floating_point:
            raise unsupported("log_normal_cpu", info)
        out = np.empty(count, dtype)
        store(out, np.exp(_affine(self._single_normals(count), float(mean), float(std))))
        return out.reshape(shape)

    def exponential(self, shape: Shape, dtype: Any = np.float32, lambd: float = 1.0) -> np.ndarray:
        """-log(1 - u) / lambd, 53-bit."""
        check_positive("exponential_", "lambda", lambd)
        dtype = continuous("Exponential", dtype)
        return self._from_uniform53(shape, dtype, lambda u: -1.0 / float(lambd) * np.log1p(-u))

    def cauchy(
        self, shape: Shape, dtype: Any = np.float32, median: float = 0.0, sigma: float = 1.0
    ) -> np.ndarray:
        """median + sigma tan(pi (u - 1/2)), 53-bit."""
        check_positive("cauchy_", "sigma", sigma)
        dtype = continuous("Cauchy", dtype)
        return self._from_uniform53(
            shape,
            dtype,
            lambda u: _affine(np.tan(math.pi * (u - 0.5)), float(median), float(sigma)),
        )

    def geometric(self, shape: Shape, dtype: Any = np.float32, p: float = 0.5) -> np.ndarray:
        """ceil(log(u) / log(1 - p)): how many trials until the first success; 53-bit."""
        check_success(p)
        dtype, info = describe(dtype)
        if info.is_complex or info.kind == "b":
            raise unsupported("geometric_cpu", info)
        scale = math.log1p(-p)

        def trials(u: np.ndarray) -> np.ndarray:
            values = np.ceil(np.log(u) / scale)
            return values if info.is_floating_point else values.astype(np.int64)

        return self._from_uniform53(shape, dtype, trials)

    def _from_uniform53(
        self, shape: Shape, dtype: np.dtype, transform: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        shape, count = flatten(shape)
        out = np.empty(count, dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            for part in blocks(count):
                store(out[part], transform(self._uniform53(part.stop - part.start)))
        return out.reshape(shape)

    # ---- choices

    def bernoulli(
        self, p: float | np.ndarray, shape: Shape | None = None, dtype: Any = np.float32
    ) -> np.ndarray:
        """Ones where u < p. A number p: 53-bit; an array (it broadcasts to `shape`, by default its
        own): 24-bit, or 53-bit where it is float64. Any real dtype and bool."""
        dtype, info = describe(dtype)
        if isinstance(p, np.ndarray):
            return self._bernoulli_array(p, p.shape if shape is None else shape, dtype, info)
        check_probability(p)
        if info.is_complex:
            raise unsupported("bernoulli_scalar_cpu_", info)
        shape, count = flatten(() if shape is None else shape)
        out = np.empty(count, dtype)
        threshold = math.ceil(p * 2.0**53)
        for part in blocks(count):
            out[part] = self._below53(threshold, part.stop - part.start)
        return out.reshape(shape)

    def _bernoulli_array(
        self, p: np.ndarray, shape: Shape, dtype: np.dtype, info: DType
    ) -> np.ndarray:
        if info.is_complex:
            raise unsupported("bernoulli_tensor_cpu_self_", info)
        kind = describe(p.dtype)[1]
        if not kind.is_floating_point:
            raise unsupported("bernoulli_tensor_cpu_p_", kind)
        shape, count = flatten(shape)
        out = np.empty(count, dtype)
        wide = kind.name == "float64"
        p = np.broadcast_to(p if wide else p.astype(np.float32), shape).reshape(-1)
        if count and not (p.min() >= 0 and p.max() <= 1):
            raise RuntimeError(
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false: probabilities "
                f"from {p.min():g} to {p.max():g}"
            )
        for part in blocks(count):
            length = part.stop - part.start
            out[part] = (self._uniform53(length) if wide else self._uniform24(length)) < p[part]
        return out.reshape(shape)

    def multinomial(
        self, probabilities: np.ndarray, num_samples: int, replacement: bool = False
    ) -> np.ndarray:
        """Indices drawn in proportion to weights: (n,) or (rows, n) to int64 (..., num_samples).

        Without replacement, or for one sample: the largest of weight / q with q exponential, a
        53-bit uniform each. Else a search of the cumulative sums, a 53-bit uniform a sample."""
        dtype, info = describe(probabilities.dtype)
        check_multinomial(probabilities, num_samples, replacement, info)
        if replacement and num_samples > 1:
            return self._multinomial_by_search(probabilities, num_samples)
        if not (probabilities >= 0).all() or not (probabilities < np.inf).all():
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        if (probabilities.sum(-1, dtype=np.float64) == 0).any():
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        # The noise takes the layout of the weights, and is drawn in the order of memory.
        shape, strides = probabilities.shape, probabilities.strides
        if len(shape) == 2 and 0 < strides[0] < strides[1]:
            noise = self.exponential(shape[::-1], dtype).T
        else:
            noise = self.exponential(shape, dtype)
        with np.errstate(divide="ignore", over="ignore"):
            race = np.negative((probabilities / noise).astype(dtype, copy=False))
        if dtype.itemsize == 2:
            race = race.astype(np.float32)
        if num_samples == 1:
            return race.argmin(-1, keepdims=True) if race.size else np.empty((0, 1), np.int64)
        if num_samples * 8 < race.shape[-1]:
            nearest = np.argpartition(race, num_samples - 1, -1)[..., :num_samples]
            nearest.sort(-1)
            race = np.take_along_axis(race, nearest, -1)
            return np.take_along_axis(nearest, race.argsort(-1, kind="stable"), -1)
        return np.ascontiguousarray(race.argsort(-1, kind="stable")[..., :num_samples])

    def _multinomial_by_search(self, probabilities: np.ndarray, num_samples: int) -> np.ndarray:
        if not (probabilities >= 0).all():
            raise RuntimeError(
                "invalid multinomial distribution (encountering probability entry < 0)"
            )
        if not np.isfinite(probabilities).all():
            raise RuntimeError(
                "invalid multinomial distribution "
                "(encountering probability entry = infinity or NaN)"
            )
        sums = np.atleast_2d(probabilities)
        if sums.dtype.itemsize == 2:
            sums = sums.astype(np.float32)
        sums = np.cumsum(sums, -1)  # one after the other, in the dtype of the weights
        if not sums.shape[-1] or not (sums[:, -1] > 0).all():
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        sums /= sums[:, -1:].copy()
        sums[:, -1] = 1
        uniforms = self._uniform53(len(sums) * num_samples).reshape(len(sums), num_samples)
        samples = np.empty(uniforms.shape, np.int64)
        for row, (bounds, u) in enumerate(zip(sums.astype(np.float64, copy=False), uniforms)):
            samples[row] = np.searchsorted(bounds, u)
        return samples.reshape(*probabilities.shape[:-1], num_samples)


#: What the functions draw from when no generator is named; seeded at random, like PyTorch's.
default_generator = Generator(nondeterministic_seed())
