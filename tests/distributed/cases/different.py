"""Ranks that ask for different things."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tensorflow_lite_clone.distributed import ReduceOp
from tests.distributed.cases.table import case, everyone, expect, given, like, plain, reduced

# Different calls: an error on all ranks that names two of them, and the group goes on.


def differing(
    wanted: tuple[str, str], start: Callable[[int, int], Any], rank: int, size: int
) -> None:
    with pytest.raises(RuntimeError) as caught:
        start(rank, size)
    message = str(caught.value)
    assert "rank 0" in message and "rank 1" in message, message
    for word in wanted:
        assert word in message, message
    x = given(rank)
    d.all_reduce(x)
    expect(x, reduced(everyone(size), ReduceOp.SUM))


def _zeros(rank: int, *sizes: int, dtype: Any = None) -> tlc.Tensor:
    """Zeros whose first size is one more on rank 1."""
    return tlc.zeros(sizes[0] + (rank == 1), *sizes[1:], dtype=dtype)


def _either(rank: int, one: Any, other: Any) -> Any:
    return other if rank == 1 else one


DIFFERENT: dict[str, tuple[tuple[str, str], Callable[[int, int], Any]]] = {
    "all_reduce_shapes": (("(3, 2)", "(4, 2)"), lambda r, n: d.all_reduce(_zeros(r, 3, 2))),
    "all_reduce_dtypes": (
        ("float32", "float64"),
        lambda r, n: d.all_reduce(tlc.zeros(3, dtype=_either(r, tlc.float32, tlc.float64))),
    ),
    "all_reduce_ops": (
        ("MIN", "MAX"),
        lambda r, n: d.all_reduce(tlc.zeros(3), _either(r, ReduceOp.MIN, ReduceOp.MAX)),
    ),
    "broadcast_roots": (
        ("broadcast", "1"),
        lambda r, n: d.broadcast(tlc.zeros(3), _either(r, 0, 1)),
    ),
    "broadcast_shapes": (("(3,)", "(4,)"), lambda r, n: d.broadcast(_zeros(r, 3), 0)),
    "reduce_roots": (("reduce", "1"), lambda r, n: d.reduce(tlc.zeros(3), _either(r, 0, 1))),
    "reduce_scatter_shapes": (
        ("(3,)", "(4,)"),
        lambda r, n: d.reduce_scatter(_zeros(r, 3), [_zeros(r, 3) for _ in range(n)]),
    ),
    "all_gather_shapes": (
        ("(3,)", "(4,)"),
        lambda r, n: d.all_gather([_zeros(r, 3) for _ in range(n)], _zeros(r, 3)),
    ),
    "all_gather_dtypes": (
        ("int8", "uint8"),
        lambda r, n: d.all_gather(
            like(n, tlc.zeros(3, dtype=_either(r, tlc.int8, tlc.uint8))),
            tlc.zeros(3, dtype=_either(r, tlc.int8, tlc.uint8)),
        ),
    ),
    "gather_shapes": (
        ("(3,)", "(4,)"),
        lambda r, n: d.gather(_zeros(r, 3), [tlc.zeros(3)] * n if r == 0 else None),
    ),
    "scatter_shapes": (
        ("(3,)", "(4,)"),
        lambda r, n: d.scatter(_zeros(r, 3), [tlc.zeros(3)] * n if r == 0 else None),
    ),
    "names": (
        ("all_reduce", "barrier"),
        lambda r, n: d.barrier() if r == 1 else d.all_reduce(tlc.zeros(3)),
    ),
    "all_to_all_dtypes": (
        ("float32", "float64"),
        lambda r, n: d.all_to_all_single(
            tlc.zeros(n, dtype=_either(r, tlc.float32, tlc.float64)),
            tlc.zeros(n, dtype=_either(r, tlc.float32, tlc.float64)),
        ),
    ),
    "objects_and_tensors": (
        ("all_gather", "all_reduce"),
        lambda r, n: d.all_gather_object([None] * n, 1) if r else d.all_reduce(tlc.zeros(3)),
    ),
}
for _name, (_wanted, _start) in DIFFERENT.items():
    case(f"different_{_name}", differing, _wanted, _start)


@plain
def different_sizes_in_all_to_all(rank: int, size: int) -> None:
    outputs, inputs = like(size, tlc.zeros(2)), like(size, tlc.zeros(2))
    if rank == 1:
        inputs[0] = tlc.zeros(3)
    try:
        d.all_to_all(outputs, inputs)
    except RuntimeError as error:
        assert "rank 1 sends 3" in str(error) and "expects 2" in str(error), error
    else:
        assert rank, "rank 0 got more than it has room for"
    d.barrier()


@plain
def different_message(rank: int, size: int) -> None:
    if rank == 0:
        d.send(tlc.zeros(3), 1)
        d.send(tlc.ones(2), 1)
    if rank == 1:
        with pytest.raises(RuntimeError, match=r"rank 0.*\(3,\).*rank 1.*\(4,\)"):
            d.recv(tlc.zeros(4), 0)
        x = tlc.zeros(2)
        d.recv(x, 0)  # the message after it
        expect(x, tlc.ones(2))


@plain
def a_time_limit_of_its_own(rank: int, size: int) -> None:
    if rank == 0:
        with pytest.raises(RuntimeError, match="recv.* timed out.*nothing came from rank 1"):
            d.irecv(tlc.zeros(2), 1, tag=9).wait(timedelta(seconds=0.05))
    d.barrier()


@plain
def rows_that_cannot_be_shared_out(rank: int, size: int) -> None:
    x = tlc.zeros(size + 1)
    with pytest.raises(RuntimeError, match=f"expected length {size}"):
        d.all_to_all_single(x.clone(), x)
