"""Tensors from one rank to another, and Python's objects."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tensorflow_lite_clone.distributed import ReduceOp
from tests.distributed.cases.table import everyone, expect, given, plain, reduced

# From one to another.


@plain
def ring(rank: int, size: int) -> None:
    x = tlc.zeros(2, 3)
    received = d.irecv(x, (rank - 1) % size)
    sent = d.isend(given(rank), (rank + 1) % size)
    received.wait()
    sent.wait()
    expect(x, given((rank - 1) % size))


@plain
def from_anyone(rank: int, size: int) -> None:
    if rank:
        d.send(given(rank), 0, tag=3)
        return
    senders = set()
    for _ in range(size - 1):
        x = tlc.zeros(2, 3)
        sender = d.recv(x, tag=3)
        expect(x, given(sender))
        senders.add(sender)
    assert senders == set(range(1, size))


@plain
def tags(rank: int, size: int) -> None:
    if rank == 0:
        for tag in range(3):
            d.send(given(0, seed=tag), 1, tag=tag)
    if rank == 1:
        for tag in (2, 0, 1):
            x = tlc.zeros(2, 3)
            d.recv(x, 0, tag=tag)
            expect(x, given(0, seed=tag))


@plain
def messages_keep_their_order(rank: int, size: int) -> None:
    if rank == 0:
        for seed in range(5):
            d.send(given(0, seed=seed), 1)
    if rank == 1:
        xs = [tlc.zeros(2, 3) for _ in range(5)]
        pending = [d.irecv(x, 0) for x in xs]
        for work in reversed(pending):
            work.wait()
        for seed, x in enumerate(xs):
            expect(x, given(0, seed=seed))


@plain
def messages_beside_collectives(rank: int, size: int) -> None:
    x, y = given(rank), tlc.zeros(2, 3)
    work = d.all_reduce(x, async_op=True)
    if rank == 0:
        d.send(given(0), 1)
    if rank == 1:
        d.recv(y, 0)
        expect(y, given(0))
    work.wait()
    expect(x, reduced(everyone(size), ReduceOp.SUM))


@plain
def batches(rank: int, size: int) -> None:
    shape = (300, 400)  # more than any engine buffers
    after, before = (rank + 1) % size, (rank - 1) % size
    x, y = tlc.zeros(shape), tlc.zeros(shape)
    pending = d.batch_isend_irecv(
        [
            d.P2POp(d.isend, given(rank, shape=shape), after),
            d.P2POp(d.isend, given(rank, shape=shape, seed=1), before, tag=1),
            d.P2POp(d.irecv, x, before),
            d.P2POp(d.irecv, y, after, tag=1),
        ]
    )
    for work in pending:
        work.wait()
    expect(x, given(before, shape=shape))
    expect(y, given(after, shape=shape, seed=1))


@plain
def strided_batches(rank: int, size: int) -> None:
    after, before = (rank + 1) % size, (rank - 1) % size
    whole = tlc.zeros(3, 4)
    sent, received = (
        d.P2POp(d.isend, given(rank).t(), after),
        d.P2POp(d.irecv, whole[:, ::2], before),
    )
    for work in d.batch_isend_irecv([sent, received]):
        work.wait()
    expect(whole[:, ::2], given(before).t())
    expect(whole[:, 1::2], tlc.zeros(3, 2))


@plain
def strided_messages(rank: int, size: int) -> None:
    if rank == 0:
        d.send(given(0).t(), 1)
    if rank == 1:
        whole = tlc.zeros(3, 4)
        d.recv(whole[:, ::2], 0)
        expect(whole[:, ::2], given(0).t())


# Objects.

OBJECTS = ({"a": [1, (2.5, None)]}, "text", [True, b"bytes"], {1, 2})


class Unknown:
    """A class that nobody has named to the unpickler."""


@plain
def all_gather_object(rank: int, size: int) -> None:
    found = [None] * size
    d.all_gather_object(found, OBJECTS[rank])
    assert found == list(OBJECTS[:size])


@plain
def gather_object(rank: int, size: int) -> None:
    found = [None] * size if rank == 1 else None
    d.gather_object(OBJECTS[rank], found, dst=1)
    assert found == (list(OBJECTS[:size]) if rank == 1 else None)


@plain
def broadcast_object_list(rank: int, size: int) -> None:
    found = list(OBJECTS) if rank == 1 else [None] * 4
    d.broadcast_object_list(found, src=1)
    assert found == list(OBJECTS)


@plain
def scatter_object_list(rank: int, size: int) -> None:
    found = [None]
    d.scatter_object_list(found, list(OBJECTS[:size]) if rank == 1 else None, src=1)
    assert found == [OBJECTS[rank]]


@plain
def objects_sent(rank: int, size: int) -> None:
    if rank == 0:
        d.send_object_list(list(OBJECTS), 1)
    if rank == 1:
        found = [None] * 4
        assert d.recv_object_list(found, 0) == 0
        assert found == list(OBJECTS)


@plain
def tensors_as_objects(rank: int, size: int) -> None:
    found = [None] * size
    d.all_gather_object(found, {"x": given(rank)})
    for each, expected in zip(found, everyone(size), strict=True):
        expect(each["x"], expected)


@plain
def unknown_classes(rank: int, size: int) -> None:
    with pytest.raises(Exception, match="Unknown"):
        d.all_gather_object([None] * size, Unknown())
    found = [Unknown() if rank == 0 else None]
    if rank == 0:
        d.broadcast_object_list(found)
    else:
        with pytest.raises(Exception, match="Unknown"):
            d.broadcast_object_list(found)
