"""The table of cases, and what they are made of.

Every process makes the tensors of all (`given`), so each can compute with NumPy what a collective
must give, and compares: exactly, as the values are small whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tensorflow_lite_clone.distributed import ReduceOp

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
NUMBERS = {
    ReduceOp.SUM: numpy.add,
    ReduceOp.PRODUCT: numpy.multiply,
    ReduceOp.MIN: numpy.minimum,
    ReduceOp.MAX: numpy.maximum,
}
BITS = {
    ReduceOp.BAND: numpy.bitwise_and,
    ReduceOp.BOR: numpy.bitwise_or,
    ReduceOp.BXOR: numpy.bitwise_xor,
}
CASES: dict[str, Callable[[int, int], None]] = {}


def case(name: str, function: Callable[..., None], *args: Any) -> None:
    """Add a row to the table."""
    assert name not in CASES, name
    CASES[name] = partial(function, *args)


def plain(function: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """A row without arguments, by its function's name."""
    case(function.__name__, function)
    return function


def run(rank: int, size: int, name: str) -> None:
    """Run the case of a name in one process; tensors are made where the world's engine works."""
    with tlc.device("cuda" if d.get_backend() == "nccl" else "cpu"):
        CASES[name](rank, size)


def numbers(rank: int, shape: tuple[int, ...] = (2, 3), seed: int = 0) -> numpy.ndarray:
    """What a rank gives: whole numbers between -3 and 4."""
    return numpy.random.default_rng([rank, seed]).integers(-3, 5, shape)


def typed(array: numpy.ndarray, dtype: str) -> tlc.Tensor:
    """An array as a tensor: bools are odd numbers, unsigned ones absolute, complex ones have both
    parts.
    """
    if dtype == "bool":
        array = array % 2
    elif dtype.startswith("uint"):
        array = abs(array)
    elif dtype.startswith("complex"):
        array = array + 1j * (array - 1)
    return tlc.tensor(array.tolist(), dtype=getattr(tlc, dtype)).view(array.shape)


def given(
    rank: int, dtype: str = "float32", shape: tuple[int, ...] = (2, 3), seed: int = 0
) -> tlc.Tensor:
    """The tensor that a rank gives."""
    return typed(numbers(rank, shape, seed), dtype)


def wide(tensor: tlc.Tensor) -> numpy.ndarray:
    """A tensor's values as NumPy computes with them."""
    narrow = tensor.dtype in (tlc.float16, tlc.bfloat16)
    return (tensor.to(tlc.float32) if narrow else tensor).cpu().numpy()


def reduced(tensors: list[tlc.Tensor], op: ReduceOp) -> tlc.Tensor:
    """What a reduction is, by definition."""
    arrays = [wide(tensor) for tensor in tensors]
    step = {**NUMBERS, **BITS}.get(op, numpy.add)
    total = arrays[0]
    for array in arrays[1:]:
        total = step(total, array)
    if op is ReduceOp.AVG:
        total = total / len(arrays)
    return tlc.from_numpy(numpy.asarray(total)).to(tensors[0].dtype)


def expect(found: tlc.Tensor, expected: tlc.Tensor) -> None:
    """AssertionError unless both are the same tensor."""
    assert found.dtype is expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.tolist() == expected.tolist(), f"{found} is not {expected}"


def everyone(size: int, dtype: str = "float32", **options: Any) -> list[tlc.Tensor]:
    """What all ranks give."""
    return [given(rank, dtype, **options) for rank in range(size)]


def like(size: int, tensor: tlc.Tensor) -> list[tlc.Tensor]:
    """Places for tensors of all ranks."""
    return [tlc.zeros_like(tensor) for _ in range(size)]
