"""Random numbers on a CUDA device: Philox by counter, seed and offset in device memory.

Every draw first takes a ticket, in a kernel of one thread: the seed and the offset are copied into
16 fresh bytes, and the offset moves on by as many counters as the draw needs. The kernel that
draws reads the ticket, so a draw captured in a graph gives new numbers at every replay, and a
gradient that keeps the ticket can draw the same numbers again. Nothing here waits for the device
but `get_state`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import aligned
from tensorflow_lite_clone.backends.cupy.device_asserts import check_range
from tensorflow_lite_clone.backends.cupy.device_facts import here
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.backends.numpy.random_checks import (
    check_deviation,
    check_multinomial,
    check_positive,
    check_probability,
    check_success,
    check_uniform_bounds,
    continuous,
)
from tensorflow_lite_clone.backends.numpy.random_integers import (
    check_permutation,
    integer_range,
    whole_range,
)
from tensorflow_lite_clone.backends.numpy.random_state import (
    DEFAULT_SEED,
    Shape,
    Stream,
    describe,
    expect_bytes,
    flatten,
    unsigned_seed,
    unsupported,
)
from tensorflow_lite_clone.core.dtypes import DType

_WORD = "unsigned long long"
_set_state = Kernel("random.cu", "set_state", params=("U",))
_take_ticket = Kernel("random.cu", "take_ticket", params=("U",))
_fill_real = Kernel("random.cu", "fill_real", params=("T", "A", "D"))
_fill_choices = Kernel("random.cu", "fill_choices", params=("T",))
_choose_each = Kernel("random.cu", "choose_each", params=("T", "A"))
_fill_integers = Kernel("random.cu", "fill_integers", params=("T", "BITS"))
_fill_poisson = Kernel("random.cu", "fill_poisson", params=("T", "A"))
_fill_binomial = Kernel("binomial.cu", "fill_binomial", params=("T", "A"))
_search_rows = Kernel("random.cu", "search_rows", params=("A",))
_NARROW_RANGE = 1 << 16  # integer ranges up to here take 32-bit words
_INVALID = "invalid multinomial distribution"
_NOTHING = f"{_INVALID} (sum of probabilities <= 0)"


def _here(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with the generator's device as CuPy's current one."""

    @wraps(method)
    def on_device(self: Generator, *args: Any, **kwargs: Any) -> Any:
        chain.flush()  # what is drawn from, and what is drawn over
        with self._backend.here():
            return method(self, *args, **kwargs)

    return on_device


class Generator(Stream):
    """A stream of random numbers on one device, and the distributions made of it.

    Methods are those of `backends.numpy.random.Generator`, on CuPy's arrays. Parameters that are
    numbers raise the same errors; those that are arrays are not looked at.
    """

    _target: Any = None  # what the next draw is to fill

    def __init__(self, backend: Any, seed: int = DEFAULT_SEED) -> None:
        self._backend = backend
        with backend.here():
            # Memory of its own: captured graphs hold the address, and a pool could be theirs.
            memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(16), 0)
            self._state = cupy.ndarray((2,), np.uint64, memory)
        self.manual_seed(seed)

    # ---- the state

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream; see the CPU's generator for what a seed may be."""
        self._restart(unsigned_seed(seed), 0)
        return self

    @_here
    def _restart(self, seed: int, offset: int) -> None:
        self._seed = seed
        _set_state[_WORD](1, 1, seed, offset, self._state)

    @_here
    def get_state(self) -> np.ndarray:
        """Seed and offset as 16 bytes of the host, little endian; waits for the device."""
        return self._state.get().astype("<u8").view(np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Continue from bytes that `get_state` gave.

        Raises TypeError for anything but a uint8 array, RuntimeError for a wrong size.
        """
        expect_bytes(state)
        if state.size != 16:
            raise RuntimeError(f"RNG state is wrong size: expected 16 bytes, found {state.size}")
        seed, offset = np.ascontiguousarray(state).reshape(-1).view("<u8").tolist()
        self._restart(seed, offset)

    def clone_state(self) -> Generator:
        """A new generator that goes on as this one would."""
        clone = type(self)(self._backend)
        clone.set_state(self.get_state())
        return clone

    @_here
    def ticket(self, counters: int) -> Any:
        """Seed and first counter, uint64 of shape (2,) on the device, of `counters` reserved ones.

        A counter gives four 32-bit words.
        """
        ticket = cupy.empty(2, np.uint64)
        _take_ticket[_WORD](1, 1, self._state, counters, ticket)
        return ticket

    def into(self, array: Any) -> Generator:
        """This stream, whose next draw goes into `array` where shape and dtype are the array's.

        Kernels write packs: an array that does not begin at a multiple of 16 bytes is left alone.
        """
        here = copy(self)
        here._target = array
        return here

    def _new(self, shape: tuple, dtype: np.dtype) -> Any:
        target = self._target
        fits = target is not None and target.shape == shape and target.dtype == dtype
        if fits and aligned(target):
            self._target = None
            chain.wrote(target)
            return target
        return cupy.empty(shape, dtype)

    def _draw(self, instance: Any, y: Any, each: int, *arguments: Any) -> Any:
        """Fill `y` by a kernel that takes a counter for each `each` elements."""
        if y.size:
            groups = -(-y.size // each)
            most = 16 * here().processors  # blocks, each of which draws several times
            blocks = min(blocks_for(groups, 256), most)
            instance(blocks, 256, self.ticket(groups), *arguments, y.size, y)
        return y

    # ---- real numbers

    def _real(self, shape: Shape, dtype: np.dtype, name: str, a: float, b: float = 0.0) -> Any:
        wide = dtype.itemsize == 8
        instance = _fill_real[dtype, "double" if wide else "float", name]
        y = self._new(flatten(shape)[0], dtype)
        return self._draw(instance, y, 2 if wide else 4, a, b)

    def _complex(self, method: Any, shape: Shape, dtype: Any, info: DType, *args: Any) -> Any:
        shape, count = flatten(shape)
        real = np.dtype(info.to_real().name)
        return method(2 * count, real, *args).view(dtype).reshape(shape)

    @_here
    def uniform(
        self, shape: Shape, dtype: Any = np.float32, low: float = 0.0, high: float = 1.0
    ) -> Any:
        """low + u (high - low) in [low, high), of 24 bits, for float64 53; complex: both parts."""
        dtype, info = describe(dtype)
        if info.is_complex:
            return self._complex(self.uniform, shape, dtype, info, low, high)
        check_uniform_bounds(low, high, info)
        return self._real(shape, dtype, "Uniform", low, high)

    @_here
    def normal(
        self,
        shape: Shape,
        dtype: Any = np.float32,
        mean: Any = 0.0,
        std: Any = 1.0,
        *,
        contiguous: bool = True,
    ) -> Any:
        """sample * std + mean, where arrays broadcast; complex: both parts, std / sqrt(2)."""
        if isinstance(mean, cupy.ndarray) or isinstance(std, cupy.ndarray):
            sample = self.normal(shape, dtype)
            return (sample * std + mean).astype(sample.dtype, copy=False)
        check_deviation(std)
        dtype, info = describe(dtype)
        if info.is_complex:
            return self._complex(self.normal, shape, dtype, info, mean, std / math.sqrt(2))
        if not info.is_floating_point:
            if not flatten(shape)[1]:
                return cupy.empty(shape, dtype)
            raise unsupported("normal_kernel_cuda", info)
        return self._real(shape, dtype, "Normal", mean, std)

    @_here
    def log_normal(
        self, shape: Shape, dtype: Any = np.float32, mean: float = 1.0, std: float = 2.0
    ) -> Any:
        """exp(normal)."""
        check_positive("log_normal_", "std", std)
        dtype, info = describe(dtype)
        if not info.is_floating_point:
            raise unsupported("log_normal_cuda", info)
        return self._real(shape, dtype, "LogNormal", mean, std)

    @_here
    def exponential(self, shape: Shape, dtype: Any = np.float32, lambd: float = 1.0) -> Any:
        """-log(u) / lambd, never 0 for lambd 1."""
        check_positive("exponential_", "lambda", lambd)
        dtype = continuous("Exponential", dtype)
        return self._real(shape, dtype, "Exponential", lambd)

    @_here
    def cauchy(
        self, shape: Shape, dtype: Any = np.float32, median: float = 0.0, sigma: float = 1.0
    ) -> Any:
        """median + sigma tan(pi (u - 1/2))."""
        check_positive("cauchy_", "sigma", sigma)
        dtype = continuous("Cauchy", dtype)
        return self._real(shape, dtype, "Cauchy", median, sigma)

    @_here
    def geometric(self, shape: Shape, dtype: Any = np.float32, p: float = 0.5) -> Any:
        """ceil(log(u) / log(1 - p)): how many trials until the first success."""
        check_success(p)
        dtype, info = describe(dtype)
        if info.is_complex or info.kind == "b":
            raise unsupported("geometric_cuda", info)
        return self._real(shape, dtype, "Geometric", 1.0 / math.log1p(-p))

    # ---- choices

    @_here
    def bernoulli(self, p: Any, shape: Shape | None = None, dtype: Any = np.float32) -> Any:
        """Ones where u < p, for a number or an array of p; any real dtype and bool."""
        dtype, info = describe(dtype)
        if isinstance(p, cupy.ndarray):
            return self._bernoulli_array(p, p.shape if shape is None else shape, dtype, info)
        check_probability(p)
        if info.is_complex:
            raise unsupported("bernoulli_scalar_cuda_", info)
        y = self._new(() if shape is None else flatten(shape)[0], dtype)
        return self._draw(_fill_choices[dtype], y, 4, threshold(p))

    def _bernoulli_array(self, p: Any, shape: Shape, dtype: np.dtype, info: DType) -> Any:
        if info.is_complex:
            raise unsupported("bernoulli_tensor_cuda_self_", info)
        kind = describe(p.dtype)[1]
        if not kind.is_floating_point:
            raise unsupported("bernoulli_tensor_cuda_p_", kind)
        wide = kind.name == "float64"
        shape = flatten(shape)[0]
        p = p if wide else p.astype(np.float32, copy=False)
        p = cupy.ascontiguousarray(cupy.broadcast_to(p, shape))
        check_range(p, 0.0, 1.0, "Expected p_in >= 0 && p_in <= 1 to be true, but got false")
        instance = _choose_each[dtype, "double" if wide else "float"]
        return self._draw(instance, cupy.empty(shape, dtype), 2 if wide else 4, p)

    @_here
    def poisson(self, rates: Any) -> Any:
        """Counts with these expected values, of their shape and dtype."""
        dtype, info = describe(rates.dtype)
        if not info.is_floating_point:
            raise unsupported("poisson_cuda", info)
        means = cupy.ascontiguousarray(rates)
        message = "invalid Poisson rate, expected rate to be non-negative"
        check_range(means, 0.0, math.inf, message)
        return self._draw(_fill_poisson[dtype, "double"], cupy.empty(rates.shape, dtype), 1, means)

    @_here
    def binomial(self, count: Any, prob: Any) -> Any:
        """Successes among `count` trials of probability `prob` (of one shape and dtype, float32 or
        float64; NotImplementedError for others). Where either is no more than 0 the result is 0,
        where `prob` is 1 or more it is `count`; NaN gives NaN."""
        dtype, info = describe(count.dtype)
        if info.name not in ("float32", "float64"):
            raise unsupported("binomial_cuda", info)
        parameters = [cupy.ascontiguousarray(x) for x in (count, prob)]
        instance = _fill_binomial[dtype, "double"]
        return self._draw(instance, cupy.empty(count.shape, dtype), 1, *parameters)

    @_here
    def standard_gamma(self, shape_parameter: Any) -> Any:
        """Gamma numbers of rate 1, of the parameter's shape and dtype (float32 or float64), at
        least the dtype's smallest normal number.

        Marsaglia and Tsang (2000) as on the CPU, in float64. Nothing is read back: each of 16
        attempts, of which one in 20 fails at most, is made for all elements.
        """
        dtype, info = describe(shape_parameter.dtype)
        if info.name not in ("float32", "float64"):
            raise unsupported("gamma_cuda", info)
        values = self._gammas(shape_parameter.astype(np.float64)).astype(dtype)
        return cupy.fmax(values, np.finfo(dtype).tiny)

    def _gammas(self, alpha: Any) -> Any:
        shape = alpha.shape
        raised = cupy.where(alpha < 1, alpha + 1, alpha)
        d = raised - 1 / 3
        c = 1 / cupy.sqrt(9 * d)
        samples = d
        done = cupy.zeros(shape, np.bool_)
        for _ in range(16):
            normal = self.normal(shape, np.float64)
            v = (1 + c * normal) ** 3
            u = 1 - self.uniform(shape, np.float64)
            accepted = v > 0
            v = cupy.where(accepted, v, 1)
            accepted &= cupy.log(u) < 0.5 * normal * normal + d * (1 - v + cupy.log(v))
            samples = cupy.where(accepted & ~done, d * v, samples)
            done |= accepted
        boost = (1 - self.uniform(shape, np.float64)) ** (1 / cupy.where(alpha < 1, alpha, 1))
        return cupy.where(alpha < 1, boost * samples, samples)

    dirichlet = _here(Stream.dirichlet)

    @_here
    def multinomial(self, probabilities: Any, num_samples: int, replacement: bool = False) -> Any:
        """Indices drawn in proportion to weights: (n,) or (rows, n) to int64 (..., num_samples).

        Without replacement, or for one sample: the largest of weight / q with q exponential. Else
        a search of the cumulative sums.
        """
        info = describe(probabilities.dtype)[1]
        check_multinomial(probabilities, num_samples, replacement, info)
        shape = (*probabilities.shape[:-1], num_samples)
        if not probabilities.size:
            if math.prod(shape):
                raise RuntimeError(_NOTHING)
            return cupy.empty(shape, np.int64)
        real = np.dtype(np.float64 if info.name == "float64" else np.float32)
        weights = cupy.ascontiguousarray(probabilities).astype(real, copy=False)
        limits: Any = np.finfo(real)
        check_range(weights, 0.0, float(limits.max), f"{_INVALID} (an entry < 0, infinity or NaN)")
        check_range(weights.sum(-1), float(limits.tiny), math.inf, _NOTHING)
        if replacement and num_samples > 1:
            samples = cupy.empty(shape, np.int64)
            sums = cupy.cumsum(weights, axis=-1)
            n = weights.shape[-1]
            rows = weights.size // n
            blocks = blocks_for(samples.size, 256)
            ticket = self.ticket(samples.size)
            _search_rows[real](blocks, 256, ticket, weights, sums, rows, n, num_samples, samples)
            return samples
        finish = weights / self.exponential(weights.shape, real)
        if num_samples == 1:
            return cupy.argmax(finish, axis=-1, keepdims=True)
        order = cupy.argsort(-finish, axis=-1)
        return cupy.ascontiguousarray(order[..., :num_samples])

    # ---- integers

    def _integers(self, shape: Shape, dtype: np.dtype, low: int, size: int | None) -> Any:
        """low + an integer of [0, size); None is all that 64 bits hold."""
        narrow = size is not None and size <= _NARROW_RANGE
        if size is None or size >= 1 << 64:
            size = 0
        y = self._new(flatten(shape)[0], dtype)
        bits = 32 if narrow else 64
        return self._draw(_fill_integers[dtype, bits], y, 128 // bits, low, size)

    @_here
    def random(self, shape: Shape, dtype: Any = np.int64) -> Any:
        """Integers over all of [0, largest]; floating dtypes: [0, 2**digits]."""
        dtype, info = describe(dtype)
        return self._integers(shape, dtype, 0, whole_range(dtype, info))

    @_here
    def randint(self, low: int, high: int | None, shape: Shape, dtype: Any = np.int64) -> Any:
        """Integers of [low, high), or with `high=None` from `low` to the dtype's largest."""
        dtype, info = describe(dtype)
        return self._integers(shape, dtype, *integer_range(low, high, dtype, info))

    @_here
    def permutation(self, n: int, dtype: Any = np.int64) -> Any:
        """A random order of 0, ..., n - 1: where 64-bit words lie when sorted."""
        dtype, info = describe(dtype)
        check_permutation(n, dtype, info)
        keys = self._integers(n, np.dtype(np.int64), 0, None)
        return cupy.argsort(keys).astype(dtype, copy=False)


def threshold(p: float) -> int:
    """A 32-bit word is below it with probability `p`."""
    return math.ceil(p * 2.0**32)
