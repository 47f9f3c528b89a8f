"""Several collectives under way at a time, and groups of some of the ranks."""

from __future__ import annotations

import threading
import time

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tensorflow_lite_clone.distributed import ReduceOp, utils
from tests.distributed.cases.table import everyone, expect, given, like, plain, reduced

# Several at a time.


@plain
def works(rank: int, size: int) -> None:
    x = given(rank)
    work = d.all_reduce(x, async_op=True)
    assert work.wait() is True
    assert work.wait() is True
    if x.is_cuda:
        tlc.cuda.synchronize()  # wait() makes the stream wait, and not the host
    assert work.is_completed() and work.is_success()
    assert work.exception() is None
    expect(work.result()[0], reduced(everyone(size), ReduceOp.SUM))


@plain
def completion_without_waiting(rank: int, size: int) -> None:
    x = given(rank)
    work = d.all_reduce(x, async_op=True)
    deadline = time.monotonic() + 10
    while not work.is_completed() and time.monotonic() < deadline:
        time.sleep(0.001)
    expect(x, reduced(everyone(size), ReduceOp.SUM))
    work.wait()


@plain
def many_under_way(rank: int, size: int) -> None:
    xs = [given(rank, shape=(i + 1,), seed=i) for i in range(20)]
    pending = [d.all_reduce(x, async_op=True) for x in xs[:10]]
    pending += [d.broadcast(x, 1, async_op=True) for x in xs[10:]]
    for work in reversed(pending):
        work.wait()
    for i, x in enumerate(xs):
        parts = everyone(size, shape=(i + 1,), seed=i)
        expect(x, reduced(parts, ReduceOp.SUM) if i < 10 else parts[1])


@plain
def coalesced(rank: int, size: int) -> None:
    manager = d.distributed_c10d._coalescing_manager
    xs = [given(rank, seed=seed) for seed in range(4)]
    with manager():
        assert [d.all_reduce(x) for x in xs[:2]] == [None, None]
    with manager(async_ops=True) as works:
        for x in xs[2:]:
            assert d.all_reduce(x, async_op=True) is not None
        with pytest.raises(ValueError, match="start of coalescing"), manager():
            pass
    works.wait()
    for seed, x in enumerate(xs):
        expect(x, reduced(everyone(size, seed=seed), ReduceOp.SUM))


@plain
def states_of_modules(rank: int, size: int) -> None:
    module = tlc.nn.BatchNorm1d(3)
    module.weight.data.fill_(rank)
    module.bias.data.fill_(rank)
    module.running_mean.fill_(rank)
    group, skipped = d.distributed_c10d._get_default_group(), ["bias"]
    utils._sync_module_states(module, group, 1 << 20, 1, skipped)
    assert module.weight.tolist() == module.running_mean.tolist() == [1, 1, 1]
    assert module.bias.tolist() == [rank] * 3
    module.running_mean.fill_(rank)
    utils._sync_module_states(module, group, 1 << 20, 0, (), broadcast_buffers=False)
    assert module.bias.tolist() == [0, 0, 0] and module.running_mean.tolist() == [rank] * 3


@plain
def futures(rank: int, size: int) -> None:
    x = given(rank)
    future = d.all_reduce(x, async_op=True).get_future()
    halved = future.then(lambda done: done.value()[0] / 2)
    expect(halved.wait(), reduced(everyone(size), ReduceOp.SUM) / 2)
    assert future.done()


@plain
def every_collective_later(rank: int, size: int) -> None:
    x, outputs = given(rank), like(size, given(rank))
    whole = tlc.zeros(2 * size, 3)
    for work in (
        d.barrier(async_op=True),
        d.all_gather(outputs, x, async_op=True),
        d.all_gather_into_tensor(whole, x, async_op=True),
    ):
        work.wait()
    expect(whole, tlc.cat(everyone(size)))
    expect(tlc.cat(outputs), whole)
    output = tlc.zeros(2, 3)
    d.reduce_scatter(output, everyone(size), async_op=True).wait()
    expect(output, given(rank) * size)
    d.reduce_scatter_tensor(output, whole, async_op=True).wait()
    expect(output, given(rank) * size)
    d.all_to_all(outputs, everyone(size), async_op=True).wait()
    expect(tlc.cat(outputs), tlc.cat([x] * size))
    d.all_to_all_single(whole, tlc.cat(everyone(size)), async_op=True).wait()
    expect(whole, tlc.cat([x] * size))
    d.scatter(output, everyone(size) if rank == 1 else None, 1, async_op=True).wait()
    expect(output, x)
    d.gather(output, outputs if rank == 1 else None, 1, async_op=True).wait()
    if rank == 1:
        expect(tlc.cat(outputs), tlc.cat(everyone(size)))
    d.reduce(output, 0, async_op=True).wait()
    if rank == 0:
        expect(output, reduced(everyone(size), ReduceOp.SUM))


@plain
def barrier(rank: int, size: int) -> None:
    time.sleep(0.02 * rank)
    arrival = time.monotonic()
    d.barrier()
    times = [None] * size
    d.all_gather_object(times, (arrival, time.monotonic()))
    assert max([came for came, _ in times]) <= min([left for _, left in times])


# Groups of some of the ranks.


@plain
def groups(rank: int, size: int) -> None:
    members = [0, size - 1]
    group = d.new_group(members)
    x = given(rank)
    if rank not in members:
        assert group == d.GroupMember.NON_GROUP_MEMBER
        return
    assert (d.get_rank(group), d.get_world_size(group)) == (members.index(rank), 2)
    d.all_reduce(x, group=group)
    expect(x, reduced([given(member) for member in members], ReduceOp.SUM))
    for options in ({"src": size - 1}, {"group_src": 1}):
        x = given(rank)
        d.broadcast(x, group=group, **options)
        expect(x, given(size - 1))
    outputs = like(2, x)
    d.gather(given(rank), outputs if rank else None, group=group, group_dst=1)
    if rank:
        expect(tlc.cat(outputs), tlc.cat([given(member) for member in members]))
    d.reduce(x, group=group, group_dst=0)
    if rank:
        d.send(given(rank), group=group, group_dst=0)
    else:
        assert d.recv(x, group=group, group_src=1) == size - 1
        expect(x, given(size - 1))
    d.destroy_process_group(group)


@plain
def groups_by_members(rank: int, size: int) -> None:
    for _ in range(2 if rank < 2 else 0):  # the others know nothing of it
        pair = d.new_group([0, 1], use_local_synchronization=True)
        x = given(rank)
        d.all_reduce(x, group=pair)
        expect(x, given(0) + given(1))
        d.destroy_process_group(pair)
    everyone_again = d.new_group()
    x = given(rank)
    d.all_reduce(x, group=everyone_again)
    expect(x, reduced(everyone(size), ReduceOp.SUM))


@plain
def subgroups(rank: int, size: int) -> None:
    half = size // 2
    own, made = d.new_subgroups(half)
    assert len(made) == 2 and made[rank // half] is own
    x = given(rank)
    d.all_reduce(x, group=own)
    first = rank // half * half
    expect(x, reduced([given(member) for member in range(first, first + half)], ReduceOp.SUM))
    own, made = d.new_subgroups_by_enumeration([[0, size - 1]])
    assert (own is None) == (rank not in (0, size - 1)) and len(made) == 1
    for size_of_each in (0, size + 1, size - 1 if size > 2 else 3):
        with pytest.raises(ValueError, match="size"):
            d.new_subgroups(size_of_each)
    with pytest.raises(ValueError, match="Rank 0 has appeared in both subgroup"):
        d.new_subgroups_by_enumeration([[0], [0]])
    with pytest.raises(ValueError, match="cannot be empty"):
        d.new_subgroups_by_enumeration([])


@plain
def groups_of_one(rank: int, size: int) -> None:
    made = [d.new_group([member]) for member in range(size)]
    x = given(rank)
    d.all_reduce(x, group=made[rank])
    expect(x, given(rank))


@plain
def groups_in_another_order(rank: int, size: int) -> None:
    group = d.new_group([size - 1, *range(size - 1)], sort_ranks=False)
    assert d.get_rank(group) == (rank + 1) % size
    outputs = like(size, given(rank))
    d.all_gather(outputs, given(rank), group=group)
    expect(outputs[0], given(size - 1))
    d.destroy_process_group(group)


@plain
def two_groups_at_a_time(rank: int, size: int) -> None:
    pair = [d.new_group(), d.new_group()]
    xs = [given(rank), given(rank)]
    pending = [
        d.all_reduce(x, group=group, async_op=True) for x, group in zip(xs, pair, strict=True)
    ]
    for work in pending if rank % 2 else pending[::-1]:  # nobody waits for who waits for him
        work.wait()
    for x in xs:
        expect(x, reduced(everyone(size), ReduceOp.SUM))
    for group in pair:
        d.destroy_process_group(group)


@plain
def not_a_member(rank: int, size: int) -> None:
    group = d.new_group([0])
    if rank:
        x = given(rank)
        with pytest.warns(UserWarning, match="does not belong to the given group"):
            assert d.all_reduce(x, group=group) is None
        expect(x, given(rank))


@plain
def groups_are_made_beside_collectives(rank: int, size: int) -> None:
    x = given(rank)
    work = d.all_reduce(x, async_op=True)
    if rank:  # who makes the group first is not waited for in vain
        work.wait()
    group = d.new_group()
    work.wait()
    expect(x, reduced(everyone(size), ReduceOp.SUM))
    d.destroy_process_group(group)


@plain
def threads(rank: int, size: int) -> None:
    group = d.new_group()
    xs = [given(rank, seed=i) for i in range(20)]

    def reduce_within_the_group() -> None:
        for x in xs[:10]:
            d.all_reduce(x, group=group)

    thread = threading.Thread(target=reduce_within_the_group)
    thread.start()
    for x in xs[10:]:
        d.all_reduce(x)
    thread.join(30)
    for i, x in enumerate(xs):
        expect(x, reduced(everyone(size, seed=i), ReduceOp.SUM))
    d.destroy_process_group(group)


@plain
def training(rank: int, size: int) -> None:
    def model() -> tlc.nn.Module:
        tlc.manual_seed(0)
        return tlc.nn.Linear(3, 1)

    alone, together = model(), tlc.nn.parallel.DistributedDataParallel(model())
    for net, x in ((alone, tlc.cat(everyone(size))), (together, given(rank))):
        net(x).square().mean().backward()
    for own, shared in zip(alone.parameters(), together.parameters(), strict=True):
        assert tlc.allclose(own.grad, shared.grad, rtol=1e-5)
