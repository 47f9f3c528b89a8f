"""The state of one CPU random stream: the Mersenne Twister, its seeding and its saved form.

The stream is PyTorch's: mt19937 seeded with the low 32 bits of the seed, a 64-bit word made of two
draws (the first one is the high half), and a saved state of 5056 bytes that either library reads.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tensorflow_lite_clone.core.dtypes import DType, dtype_by_name

DEFAULT_SEED = 67280421310721  # what a new generator starts with
BLOCK = 1 << 15  # draws handled at a time: the temporaries of one block stay in the cache

_WORDS = 624  # words of mt19937's state, hence draws between two refills
_LOW_HALF = 0 if sys.byteorder == "little" else 1  # where a 64-bit draw keeps its 32 bits
_HIGH_21_BITS = np.uint64((1 << 21) - 1)
_SHIFT_32 = np.uint64(32)
_MASK_24 = np.int32((1 << 24) - 1)
_SCALE_24 = np.float32(2.0**-24)

# The byte layout of `torch.get_rng_state()`. `normal_y` is the cached second normal of a pair;
# nothing on the CPU uses the float one, but a saved state may hold it.
_LAYOUT = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "words"]
        + ["normal_y", "has_normal_y", "normal_float", "has_normal_float"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", (_WORDS,)), "<f8", "<i4", "<f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)


# A floating dtype's largest finite value, and how many bits of an integer it holds exactly.
LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}

Shape = int | tuple[int, ...]


@lru_cache
def describe(native: Any) -> tuple[np.dtype, DType]:
    """Anything NumPy takes for a dtype, as NumPy's dtype and as ours."""
    dtype = np.dtype(native)
    if dtype.names is not None:
        raise unsupported("random", dtype_by_name(dtype[0].name))
    return dtype, dtype_by_name(dtype.name)


def unsupported(operation: str, dtype: DType) -> NotImplementedError:
    """PyTorch's error for a dtype that a kernel does not serve."""
    return NotImplementedError(f"\"{operation}\" not implemented for '{dtype.short_name}'")


def flatten(shape: Shape) -> tuple[tuple[int, ...], int]:
    """A shape as a tuple, and its number of elements."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    return shape, math.prod(shape)


def blocks(count: int) -> Iterator[slice]:
    """Slices of BLOCK elements (the last may be shorter) that cover `count`."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def store(out: np.ndarray, values: np.ndarray) -> None:
    """out[...] = values; on the way to a 16-bit float a wider value is first rounded to 32 bits."""
    if out.itemsize == 2 and values.itemsize > 4 and out.dtype.kind not in "iu":
        values = values.astype(np.float32)
    out[...] = values


def narrow(value: float, dtype: np.dtype) -> np.ndarray:
    """A number rounded to `dtype`, as a zero-dimensional array."""
    out = np.empty((), dtype)
    store(out, np.asarray(value))
    return out


def nondeterministic_seed() -> int:
    """64 random bits from the operating system."""
    return int.from_bytes(os.urandom(8), "little")


def unsigned_seed(seed: Any) -> int:
    if isinstance(seed, (bool, float)) or not hasattr(seed, "__index__"):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    number = operator.index(seed)
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"Overflow when unpacking long long: seed {number}")
    return number % (1 << 64)


def expect_bytes(state: Any) -> None:
    """Raise TypeError for a saved state that is no array of bytes."""
    if not isinstance(state, np.ndarray):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state.dtype != np.uint8:
        raise TypeError(f"RNG state must be a torch.ByteTensor, but its dtype is {state.dtype}")


class Stream:
    """What the generators of all devices do alike."""

    __slots__ = ()

    manual_seed: Any
    bernoulli: Any
    standard_gamma: Any
    _seed: int

    def into(self, array: Any) -> Any:
        """The same stream, whose next draw may lie in `array` instead of in new memory."""
        return self

    def seed(self) -> int:
        """Restart the stream from a random 64-bit seed, and return the seed."""
        self.manual_seed(nondeterministic_seed())
        return self._seed

    def initial_seed(self) -> int:
        """The seed the stream was started with, in [0, 2**64)."""
        return self._seed

    def dropout_mask(self, p: float, shape: Shape, dtype: Any = np.bool_) -> Any:
        """What dropout with probability `p` of a zero keeps: `bernoulli(1 - p)`."""
        return self.bernoulli(1.0 - p, shape, dtype)

    def dirichlet(self, concentration: Any) -> Any:
        """Points of the simplex over the last axis, strictly inside it: gamma numbers, drawn in
        float64, divided by their sums. On the CPU PyTorch's, but for the last bits."""
        dtype, info = describe(concentration.dtype)
        if info.name not in ("float32", "float64"):
            raise unsupported("dirichlet", info)
        gammas = self.standard_gamma(concentration.astype(np.float64))
        axis = -1 if gammas.ndim else None
        points = (gammas / gammas.sum(axis=axis, keepdims=True)).astype(dtype)
        one = np.ones((), dtype)
        return points.clip(np.finfo(dtype).tiny, np.nextafter(one, 0 * one))


class GeneratorState(Stream):
    """Seeding, saving and restoring of a stream, and its raw words, uniforms and single normals."""

    __slots__ = ("_bits", "_next_double", "_next_float", "_seed", "_seed_pending", "_spent_next")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._bits: Any = None
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Self:
        """Restart the stream. `seed`: an int in [-2**63, 2**64), negative ones count from 2**64.

        Raises RuntimeError if `seed` is not an int, ValueError if it needs more than 64 bits."""
        self._seed = unsigned_seed(seed)
        self._seed_pending = True
        self._next_double: float | None = None
        self._next_float: float | None = None
        return self

    def get_state(self) -> np.ndarray:
        """The whole state as uint8, shape (5056,): the bytes of `torch.Generator.get_state()`."""
        engine = self._engine().state["state"]
        saved = np.zeros(1, _LAYOUT)
        record = saved[0]
        spent = engine["pos"] == _WORDS
        record["seed"] = self._seed
        record["left"] = 1 if spent else _WORDS + 1 - engine["pos"]
        record["seeded"] = 1
        record["next"] = self._spent_next if spent else engine["pos"]
        record["words"] = engine["key"]
        if self._next_double is not None:
            record["normal_y"], record["has_normal_y"] = self._next_double, 1
        if self._next_float is not None:
            record["normal_float"], record["has_normal_float"] = self._next_float, 1
        return saved.view(np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Continue from bytes that `get_state` gave, here or in PyTorch.

        Raises TypeError for anything but a uint8 array, RuntimeError for a wrong size or an
        impossible state."""
        expect_bytes(state)
        if state.size != _LAYOUT.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_LAYOUT.itemsize} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.ascontiguousarray(state).reshape(-1).view(_LAYOUT)[0]
        left, position = int(record["left"]), int(record["next"])
        possible = record["seeded"] != 0 and 1 <= left <= _WORDS and position <= _WORDS
        # One draw left before a refill: the position is not read (it is 0 in a fresh stream).
        if not possible or (left != 1 and left + position != _WORDS + 1):
            raise RuntimeError(f"Invalid mt19937 state: left={left}, next={position}")
        self._seed = int(record["seed"])
        self._engine().state = {
            "bit_generator": "MT19937",
            "state": {
                "key": record["words"].astype(np.uint32),
                "pos": _WORDS if left == 1 else position,
            },
        }
        self._spent_next = position
        self._next_double = float(record["normal_y"]) if record["has_normal_y"] else None
        self._next_float = float(record["normal_float"]) if record["has_normal_float"] else None

    def clone_state(self) -> Self:
        """A new generator that goes on as this one would."""
        clone = type(self)()
        clone.set_state(self.get_state())
        return clone

    def _engine(self) -> Any:
        if self._seed_pending:
            if self._bits is None:
                # The first touch of `np.random` imports it (10 ms, a tenth of what the package
                # may take to start), so it waits until somebody draws. With the 0 no entropy is
                # gathered.
                self._bits = np.random.MT19937(0)
            self._bits._legacy_seeding(self._seed & 0xFFFFFFFF)
            self._spent_next = 0
            self._seed_pending = False
        return self._bits

    def _draw(self, count: int) -> np.ndarray:
        """The next `count` 32-bit draws, as uint64."""
        engine = self._engine()
        if count:
            self._spent_next = _WORDS
        return engine.random_raw(count)

    def _skip(self, count: int) -> None:
        for start in range(0, count, BLOCK):
            self._draw(min(BLOCK, count - start))

    def _words32(self, count: int) -> np.ndarray:
        """The next `count` draws, as uint32 (a view with gaps)."""
        return self._draw(count).view(np.uint32)[_LOW_HALF::2]

    def _words64(self, count: int) -> np.ndarray:
        """`count` 64-bit words of two draws each, as uint64."""
        draws = self._draw(2 * count)
        words = draws[0::2] << _SHIFT_32
        words |= draws[1::2]
        return words

    def _words53(self, count: int) -> np.ndarray:
        """The low 53 bits of `count` 64-bit words, as uint64."""
        draws = self._draw(2 * count)
        words = draws[0::2] & _HIGH_21_BITS
        words <<= _SHIFT_32
        words |= draws[1::2]
        return words

    def _below53(self, threshold: int, count: int) -> np.ndarray:
        """Whether the low 53 bits of `count` 64-bit words are below a number up to 2^53."""
        draws = self._draw(2 * count)
        high, low = divmod(threshold, 1 << 32)
        words = draws[0::2] & _HIGH_21_BITS
        below = words < np.uint64(high)
        if low:  # the second draws decide about a few
            places = np.flatnonzero(words == np.uint64(high))
            below[places] = draws[1::2][places] < np.uint64(low)
        return below

    def _uniform24(self, count: int) -> np.ndarray:
        """float32 in [0, 1), 24 bits of one draw each."""
        uniform = (self._words32(count).view(np.int32) & _MASK_24).astype(np.float32)
        uniform *= _SCALE_24
        return uniform

    def _uniform53(self, count: int) -> np.ndarray:
        """float64 in [0, 1), 53 bits of two draws each."""
        uniform = self._words53(count).view(np.int64).astype(np.float64)
        uniform *= 2.0**-53
        return uniform

    def _single_normals(self, count: int) -> np.ndarray:
        """`count` standard normals in float64, made in pairs; the second of a pair may be left for
        the next call. Radius sqrt(-2 log(1 - u2)), angle 2 pi u1, first cos, then sin."""
        normals = np.empty(count, np.float64)
        if count == 0:
            return normals
        filled = 0
        if self._next_double is not None:
            normals[0] = self._next_double
            self._next_double = None
            filled = 1
        pairs = (count - filled) // 2
        # NumPy's vector functions may differ from the C library's in the last bit, so the few
        # values of a small tensor are computed with `math`: bit for bit what PyTorch computes.
        while pairs >= 16:
            part = min(pairs, BLOCK)
            u1, u2 = self._uniform53(2 * part).reshape(-1, 2).T
            radius = np.sqrt(-2.0 * np.log1p(-u2))
            angle = (2.0 * math.pi) * u1
            np.multiply(radius, np.cos(angle), out=normals[filled : filled + 2 * part : 2])
            np.multiply(radius, np.sin(angle), out=normals[filled + 1 : filled + 2 * part : 2])
            filled += 2 * part
            pairs -= part
        uniforms = iter(self._uniform53((count - filled + 1) // 2 * 2).tolist())
        for u1, u2 in zip(uniforms, uniforms, strict=True):
            radius = math.sqrt(-2.0 * math.log1p(-u2))
            angle = 2.0 * math.pi * u1
            normals[filled] = radius * math.cos(angle)
            if filled + 1 < count:
                normals[filled + 1] = radius * math.sin(angle)
            else:
                self._next_double = radius * math.sin(angle)
            filled += 2
        return normals


class Lookahead:
    """Float64 uniforms one at a time, for samplers that cannot say beforehand how many they need.

    Draws by the block; on leaving, the stream is put where the last uniform taken has left it."""

    def __init__(self, generator: GeneratorState, block: int) -> None:
        self._generator = generator
        self._block = min(max(block, 16), BLOCK)

    def __enter__(self) -> Iterator[float]:
        self._start = self._generator.get_state()
        self._drawn = 0
        self._rest: Iterator[float] = iter(())
        return self._uniforms()

    def _uniforms(self) -> Iterator[float]:
        while True:
            self._rest = iter(self._generator._uniform53(self._block).tolist())
            self._drawn += self._block
            yield from self._rest

    def __exit__(self, *exception: object) -> None:
        unused = sum(1 for _ in self._rest)
        self._generator.set_state(self._start)
        self._generator._skip(2 * (self._drawn - unused))
