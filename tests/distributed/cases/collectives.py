"""Each collective by itself: dtypes, reductions, roots, layouts and sizes."""

from __future__ import annotations

import numpy
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tensorflow_lite_clone.distributed import ReduceOp
from tests.distributed.cases.table import (
    BITS,
    COMPLEX,
    DTYPES,
    FLOATS,
    NUMBERS,
    case,
    everyone,
    expect,
    given,
    like,
    plain,
    reduced,
    wide,
)

# Reductions, of all dtypes.


def all_reduce(dtype: str, op: ReduceOp, rank: int, size: int) -> None:
    x = given(rank, dtype)
    assert d.all_reduce(x, op) is None
    expect(x, reduced(everyone(size, dtype), op))


def reduce(root: int, op: ReduceOp, rank: int, size: int) -> None:
    root %= size
    x = given(rank)
    d.reduce(x, root, op)
    if rank == root:
        expect(x, reduced(everyone(size), op))


def reduce_scatter(dtype: str, op: ReduceOp, rank: int, size: int) -> None:
    output = tlc.zeros(2, 3, dtype=getattr(tlc, dtype))
    d.reduce_scatter(output, [given(rank, dtype, seed=to) for to in range(size)], op)
    expect(output, reduced(everyone(size, dtype, seed=rank), op))


def reduce_scatter_tensor(dtype: str, op: ReduceOp, rank: int, size: int) -> None:
    output = tlc.zeros(2, 3, dtype=getattr(tlc, dtype))
    rows = given(rank, dtype, shape=(2 * size, 3))
    d.reduce_scatter_tensor(output, rows, op)
    parts = [x.chunk(size)[rank] for x in everyone(size, dtype, shape=(2 * size, 3))]
    expect(output, reduced(parts, op))


def ops(dtype: str) -> list[ReduceOp]:
    """The reductions that a dtype has."""
    if dtype in COMPLEX:
        return [ReduceOp.SUM, ReduceOp.AVG]
    return [*NUMBERS, *([ReduceOp.AVG] if dtype in FLOATS else BITS)]


for _dtype in DTYPES:
    for _op in ops(_dtype):
        case(f"all_reduce_{_dtype}_{_op.name}", all_reduce, _dtype, _op)
    for _op in (ReduceOp.SUM, ops(_dtype)[-1]):
        case(f"reduce_scatter_{_dtype}_{_op.name}", reduce_scatter, _dtype, _op)
        case(f"reduce_scatter_tensor_{_dtype}_{_op.name}", reduce_scatter_tensor, _dtype, _op)
for _op in ops("float32"):
    for _root in (0, 1, -1):
        case(f"reduce_to_{_root}_{_op.name}", reduce, _root, _op)


@plain
def reduce_leaves_others(rank: int, size: int) -> None:
    x = given(rank)
    d.reduce(x, 0)
    if rank:
        expect(x, given(rank))


@plain
def all_ranks_have_the_same_sum(rank: int, size: int) -> None:
    x = tlc.tensor(numpy.random.default_rng(rank).standard_normal(1000).tolist())
    own = x.clone()
    d.all_reduce(x)
    sums, parts = like(size, x), like(size, x)
    d.all_gather(sums, x)
    d.all_gather(parts, own)
    for each in sums:
        expect(each, x)
    exact = sum([wide(part).astype("f8") for part in parts])
    assert numpy.abs(wide(x) - exact).max() < 1e-5  # some roundings of numbers of about 1


@plain
def avg_of_integers(rank: int, size: int) -> None:
    with pytest.raises(RuntimeError):
        d.all_reduce(given(rank, "int64"), ReduceOp.AVG)


@plain
def bits_of_floats(rank: int, size: int) -> None:
    for op in BITS:
        with pytest.raises(RuntimeError, match=f"Cannot use ReduceOp.{op.name}"):
            d.all_reduce(given(rank), op)


@plain
def order_of_complex(rank: int, size: int) -> None:
    for op in (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT, ReduceOp.BAND):
        with pytest.raises((ValueError, RuntimeError)):
            d.all_reduce(given(rank, "complex64"), op)


# What only moves tensors, of all dtypes.


def broadcast(dtype: str, root: int, rank: int, size: int) -> None:
    root %= size
    x = given(rank, dtype)
    d.broadcast(x, root)
    expect(x, given(root, dtype))


def all_gather(dtype: str, rank: int, size: int) -> None:
    outputs = like(size, given(rank, dtype))
    d.all_gather(outputs, given(rank, dtype))
    for output, expected in zip(outputs, everyone(size, dtype), strict=True):
        expect(output, expected)


def all_gather_into_tensor(dtype: str, rank: int, size: int) -> None:
    for shape in ((size * 2, 3), (size, 2, 3)):
        output = tlc.zeros(shape, dtype=getattr(tlc, dtype))
        d.all_gather_into_tensor(output, given(rank, dtype))
        expect(output, tlc.cat(everyone(size, dtype)).view(shape))


def gather(dtype: str, root: int, rank: int, size: int) -> None:
    root %= size
    x = given(rank, dtype)
    outputs = like(size, x) if rank == root else None
    d.gather(x, outputs, dst=root)
    for output, expected in zip(outputs or [], everyone(size, dtype), strict=rank == root):
        expect(output, expected)


def scatter(dtype: str, root: int, rank: int, size: int) -> None:
    root %= size
    x = tlc.zeros(2, 3, dtype=getattr(tlc, dtype))
    d.scatter(x, everyone(size, dtype) if rank == root else None, src=root)
    expect(x, given(rank, dtype))


def all_to_all(dtype: str, rank: int, size: int) -> None:
    outputs = like(size, given(rank, dtype))
    d.all_to_all(outputs, [given(rank, dtype, seed=to) for to in range(size)])
    for sender, output in enumerate(outputs):
        expect(output, given(sender, dtype, seed=rank))


def all_to_all_single(dtype: str, rank: int, size: int) -> None:
    output = tlc.zeros(2 * size, 3, dtype=getattr(tlc, dtype))
    d.all_to_all_single(output, given(rank, dtype, shape=(2 * size, 3)))
    rows = [x.chunk(size)[rank] for x in everyone(size, dtype, shape=(2 * size, 3))]
    expect(output, tlc.cat(rows))


def send(dtype: str, rank: int, size: int) -> None:
    x = tlc.zeros(2, 3, dtype=getattr(tlc, dtype))
    if rank == 0:
        d.send(given(0, dtype), 1)
    elif rank == 1:
        assert d.recv(x, 0) == 0
        expect(x, given(0, dtype))


for _dtype in DTYPES:
    case(f"broadcast_{_dtype}", broadcast, _dtype, 1)
    case(f"gather_{_dtype}", gather, _dtype, 1)
    case(f"scatter_{_dtype}", scatter, _dtype, 1)
    for _function in (all_gather, all_gather_into_tensor, all_to_all, all_to_all_single, send):
        case(f"{_function.__name__}_{_dtype}", _function, _dtype)
for _root in (0, -1):
    for _function in (broadcast, gather, scatter):
        case(f"{_function.__name__}_root_{_root}", _function, "float32", _root)


@plain
def all_to_all_uneven(rank: int, size: int) -> None:
    def part(sender: int, receiver: int) -> tlc.Tensor:
        return given(sender, shape=((sender + 2 * receiver) % 3, 2), seed=receiver)

    inputs = [part(rank, receiver) for receiver in range(size)]
    expected = [part(sender, rank) for sender in range(size)]
    outputs = [tlc.zeros_like(x) for x in expected]
    d.all_to_all(outputs, inputs)
    for output, x in zip(outputs, expected, strict=True):
        expect(output, x)
    together = tlc.zeros_like(tlc.cat(expected))
    d.all_to_all_single(
        together, tlc.cat(inputs), [len(x) for x in expected], [len(x) for x in inputs]
    )
    expect(together, tlc.cat(expected))


# Tensors of all layouts and sizes.


@plain
def strided(rank: int, size: int) -> None:
    for layout in (
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x.unsqueeze(0).expand(2, 4, 6)[0],
        lambda x: x[1:3, 1:5],
    ):
        xs = [layout(x) for x in everyone(size, shape=(4, 6))]
        whole = given(rank, shape=(4, 6))
        x = layout(whole)
        outputs = [layout(tlc.zeros(4, 6)) for _ in range(size)]
        d.all_gather(outputs, x)
        for output, expected in zip(outputs, xs, strict=True):
            expect(output, expected)
        d.all_reduce(x)
        expect(x, reduced(xs, ReduceOp.SUM))
        expect(layout(whole), x)  # it was written to in place


@plain
def what_lies_between_is_left(rank: int, size: int) -> None:
    whole = given(rank, shape=(4, 6))
    d.broadcast(whole[:, 1::2], 0)
    expect(whole[:, ::2], given(rank, shape=(4, 6))[:, ::2])
    expect(whole[:, 1::2], given(0, shape=(4, 6))[:, 1::2])


def sized(shape: tuple[int, ...], rank: int, size: int) -> None:
    xs = everyone(size, shape=shape)
    x = given(rank, shape=shape)
    d.all_reduce(x)
    expect(x, reduced(xs, ReduceOp.SUM))
    d.all_reduce(x, ReduceOp.AVG)
    expect(x, reduced(xs, ReduceOp.SUM))
    outputs = like(size, x)
    d.all_gather(outputs, given(rank, shape=shape))
    for output, expected in zip(outputs, xs, strict=True):
        expect(output, expected)
    x = given(rank, shape=shape)
    d.broadcast(x, 1)
    expect(x, given(1, shape=shape))
    d.reduce_scatter(x, [given(rank, shape=shape) for _ in range(size)], ReduceOp.MAX)
    expect(x, reduced(xs, ReduceOp.MAX))
    d.all_to_all(outputs, [given(rank, shape=shape)] * size)
    for output, expected in zip(outputs, xs, strict=True):
        expect(output, expected)
    d.scatter(x, xs if rank == 0 else None)
    expect(x, given(rank, shape=shape))
    outputs = like(size, x)
    d.gather(x, outputs if rank == 0 else None)
    if rank == 0:
        for output, expected in zip(outputs, xs, strict=True):
            expect(output, expected)
    if rank == 0:
        d.send(x, 1)
    if rank == 1:
        d.recv(x, 0)
        expect(x, given(0, shape=shape))


for _name, _shape in {
    "zero_dim": (),
    "empty": (0,),
    "empty_rows": (3, 0, 2),
    "large": (200, 301),
}.items():
    case(f"sized_{_name}", sized, _shape)


@plain
def shapes_may_differ(rank: int, size: int) -> None:
    x = given(rank, shape=(6,)).view(2, 3) if rank else given(rank, shape=(6,))
    d.all_reduce(x)
    expect(x.view(6), reduced(everyone(size, shape=(6,)), ReduceOp.SUM))


@plain
def outputs_that_are_inputs(rank: int, size: int) -> None:
    whole = tlc.zeros(2 * size, 3)
    whole.chunk(size)[rank].copy_(given(rank))
    d.all_gather_into_tensor(whole, whole.chunk(size)[rank])
    expect(whole, tlc.cat(everyone(size)))
    d.reduce_scatter_tensor(whole.chunk(size)[rank], whole)
    expect(whole.chunk(size)[rank], given(rank) * size)
    parts = everyone(size) if rank == 0 else like(size, whole[:2])
    d.all_gather(parts, parts[0] if rank == 0 else given(rank))
    expect(tlc.cat(parts), tlc.cat(everyone(size)))
    d.scatter(parts[0], parts if rank == 1 else None, 1)
    expect(parts[0], given(rank))
    parts[1].copy_(parts[0])
    d.gather(parts[1], parts if rank == 1 else None, 1)
    if rank == 1:
        expect(tlc.cat(parts), tlc.cat(everyone(size)))
    x = given(rank, shape=(size, 3))
    d.all_to_all_single(x, x)
    expect(x, tlc.stack([each[rank] for each in everyone(size, shape=(size, 3))]))


@plain
def leaves_are_written_to(rank: int, size: int) -> None:
    x = given(rank).requires_grad_()
    version = x._version
    d.all_reduce(x.detach())
    expect(x.detach(), reduced(everyone(size), ReduceOp.SUM))
    assert x._version > version
    assert x.is_leaf and x.requires_grad
