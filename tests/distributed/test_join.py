"""Training on batches of unequal number."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.ranks import host

SMALL = 1e-5  # MiB


def layers(norm=False):
    tlc.manual_seed(0)
    middle = nn.BatchNorm1d(4) if norm else nn.Tanh()
    return nn.Sequential(nn.Linear(3, 4), middle, nn.Linear(4, 2)).to(HERE, tlc.float64)


def batches(rank, count):
    values = np.random.default_rng(rank).standard_normal((count, 4, 3))
    return tlc.tensor(values, device=HERE)


def trained(rank, size, counts, by_all, options, norm=False):
    model = DistributedDataParallel(layers(norm), bucket_cap_mb=SMALL, **options)
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    with model.join(divide_by_initial_world_size=by_all):
        for x in batches(rank, counts[rank]):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    return [host(value) for value in model.state_dict().values()]


def alone(counts, by_all):
    """What one process makes of the same batches."""
    model = layers()
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for step in range(max(counts)):
        optimizer.zero_grad()
        active = [rank for rank, count in enumerate(counts) if step < count]
        for rank in active:
            loss = model(batches(rank, counts[rank])[step]).pow(2).mean()
            (loss / (len(counts) if by_all else len(active))).backward()
        optimizer.step()
    return [host(parameter) for parameter in model.parameters()]


@pytest.mark.parametrize("by_all", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
    ],
    ids=["plain", "views", "search", "static"],
)
@pytest.mark.parametrize("counts", [(2, 5), (4, 3), (0, 3), (3, 3)])
def test_uneven_batches(counts, options, by_all):
    expected = alone(counts, by_all)
    for found in world_here(2).run(trained, counts, by_all, options):
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-10, 1e-10)


def test_four_processes():
    counts = 3, 1, 4, 2
    expected = alone(counts, True)
    for found in world_here(4).run(trained, counts, True, {}):
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-10, 1e-10)


def test_all_end_with_the_buffers_of_one_that_had_the_last_batch():
    first, *others = world_here(4).run(trained, (3, 1, 4, 2), True, {}, True)
    for other in others:
        for mine, theirs in zip(first, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    steps = list(layers(True).state_dict()).index("1.num_batches_tracked")
    assert first[steps] == 4


def accumulated(rank, size):
    """Every second batch is only summed up."""
    model = DistributedDataParallel(layers(), bucket_cap_mb=SMALL)
    with model.join():
        for step, x in enumerate(batches(rank, 4 if rank else 2)):
            if step % 2:
                model(x).sum().backward()
            else:
                model.zero_grad()
                with model.no_sync():
                    model(x).sum().backward()
    return host(model.module[0].weight.grad) if rank else None


def test_no_sync_within_join():
    _, found = world_here(2).run(accumulated)
    model = layers()
    for x in batches(1, 4)[2:]:
        (model(x).sum() / 2).backward()
    np.testing.assert_allclose(found, host(model[0].weight.grad), 1e-10)


def thrown(rank, size):
    model = DistributedDataParallel(layers())
    with model.join(throw_on_early_termination=True):
        for x in batches(rank, 2 + rank):
            model(x).sum().backward()


def test_an_early_end_may_be_an_error():
    one, other = world_here(2).outcomes(thrown)
    assert "RuntimeError: Rank 0 exhausted all inputs." in one[1]
    assert "RuntimeError: Detected at least one rank that exhausted inputs." in other[1]


def disabled(rank, size):
    model = DistributedDataParallel(layers())
    with model.join(enable=False):
        model(batches(rank, 1)[0]).sum().backward()
    return host(model.module[0].weight.grad)


def test_join_that_is_not_enabled():
    one, other = world_here(2).run(disabled)
    np.testing.assert_array_equal(one, other)


class Counter(Joinable):
    """Adds up what all processes count."""

    def __init__(self):
        super().__init__()
        self.total, self.calls = 0.0, []

    def add(self, value):
        Join.notify_join_context(self)
        self._sum(value)

    def _sum(self, value):
        number = tlc.tensor([value], device=HERE)
        dist.all_reduce(number)
        self.total += number.item()

    def join_hook(self, **kwargs):
        counter = self

        class Hook(JoinHook):
            def main_hook(self):
                counter._sum(0.0)

            def post_hook(self, is_last_joiner):
                counter.calls.append((kwargs, is_last_joiner))

        return Hook()

    join_device = property(lambda self: tlc.device(HERE))
    join_process_group = property(lambda self: dist.group.WORLD)


def counted(rank, size):
    counters = [Counter(), Counter()]
    with Join(counters, extra=1):
        for _ in range(rank + 1):
            counters[0].add(1.0)
            counters[1].add(10.0)
    return [(counter.total, counter.calls) for counter in counters]


def test_own_joinables():
    for rank, found in enumerate(world_here(2).run(counted)):
        calls = [({"extra": 1}, rank == 1)]
        assert found == [(3.0, calls), (30.0, calls)]


def misused(rank, size):
    class Elsewhere(Counter):
        join_process_group = property(lambda self: "another group")

    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    with pytest.raises(ValueError, match="with multiple process groups"):
        Join([Counter(), Elsewhere()])
    with pytest.raises(TypeError):
        Joinable()  # abstract
    assert Join.notify_join_context(Counter()) is None


def test_misuse():
    world_here(2).run(misused)
