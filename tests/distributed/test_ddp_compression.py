"""PowerSGD, and local SGD with models that are averaged now and then."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.algorithms.ddp_comm_hooks import (
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
)
from tensorflow_lite_clone.distributed.algorithms.model_averaging import averagers, utils
from tensorflow_lite_clone.distributed.optim import PostLocalSGDOptimizer
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.ranks import close, gradients, host, layers, part, samples


def gradient(rank, shape):
    return np.random.default_rng(rank).standard_normal(shape)


class Linear(nn.Module):
    """A module whose gradients are what is given."""

    def __init__(self, *shapes):
        super().__init__()
        zeros = [tlc.zeros(shape, dtype=tlc.float64, device=HERE) for shape in shapes]
        self.members = nn.ParameterList([nn.Parameter(each) for each in zeros])

    def forward(self, values):
        return sum([(p * v).sum() for p, v in zip(self.members, values, strict=True)])


SHAPES = (6, 5), (3,), (4, 2, 3)


def compressed(rank, size, options, wrapped, iterations=5, name="powerSGD_hook"):
    """The gradients of some iterations, and statistics."""
    model = DistributedDataParallel(Linear(*SHAPES))
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **options)
    hook = getattr(powerSGD_hook, name)
    model.register_comm_hook(state, default_hooks.fp16_compress_wrapper(hook) if wrapped else hook)
    values = [tlc.tensor(gradient(rank, shape), device=HERE) for shape in SHAPES]
    found = []
    for _ in range(iterations):
        model.zero_grad()
        model(values).backward()
        found.append(gradients(model))
    return found, state.compression_stats(), len(model.reducer.buckets)


def test_power_sgd_of_full_rank_is_exact():
    options = {"matrix_approximation_rank": 5, "min_compression_rate": 1e-3}
    expected = [(gradient(0, shape) + gradient(1, shape)) / 2 for shape in SHAPES]
    for found, *_ in world_here(2).run(compressed, options, False):
        for each in found:
            close(each, expected)


def test_power_sgd_of_a_whole_bucket_of_full_rank_is_exact():
    """57 gradients are a matrix of 8 rows, the end of which is zero."""
    options = {"matrix_approximation_rank": 8, "min_compression_rate": 1e-3}
    expected = [(gradient(0, shape) + gradient(1, shape)) / 2 for shape in SHAPES]
    for found, *_ in world_here(2).run(compressed, options, False, 5, "batched_powerSGD_hook"):
        for each in found:
            close(each, expected)


def unit(x):
    return x / np.linalg.norm(x)


def test_power_sgd_is_the_papers():
    """Rank 1 with error feedback, written out for two processes and one matrix."""
    one, other = world_here(2).run(compressed, {"min_compression_rate": 2}, False)
    given = [gradient(rank, (6, 5)) for rank in range(2)]
    vector = (gradient(0, 3) + gradient(1, 3)) / 2
    found, (rate, before, after), buckets = one
    assert buckets == 1 and 1 < rate == before / after
    np.testing.assert_allclose(found[1][0], sum(given) / 2, 1e-12)  # not compressed yet
    errors, q = [0.0, 0.0], None
    for step in range(2, 5):
        np.testing.assert_allclose(found[step][1], vector, 1e-12)
        mean = sum([g + e for g, e in zip(given, errors, strict=True)]) / 2
        left, size, right = np.linalg.svd(found[step][0])
        assert (size[1:] < 1e-12).all()
        p = left[:, 0] if q is None else unit(mean @ q)  # the first q is random
        np.testing.assert_allclose(found[step][0], np.outer(p, p @ mean), 1e-9)
        errors = [g + e - found[step][0] for g, e in zip(given, errors, strict=True)]
        q = right[0]
    for mine, theirs in zip(sum(found, []), sum(other[0], []), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_power_sgd_without_feedback_and_in_half_precision():
    options = {"use_error_feedback": False, "warm_start": False}
    for found, *_ in world_here(2).run(compressed, options, True):
        vector = (gradient(0, 3) + gradient(1, 3)) / 2
        np.testing.assert_allclose(found[-1][1], vector, 2e-3, 2e-3)
        assert np.linalg.matrix_rank(found[-1][0], 1e-2) == 1


def test_power_sgd_must_not_start_at_once():
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)
    powerSGD_hook.PowerSGDState(
        None, start_powerSGD_iter=0, use_error_feedback=False, warm_start=False
    )


def local(rank, size, alone):
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    state = post_localSGD_hook.PostLocalSGDState(None, halves[rank // 2], 1, not alone)
    model = DistributedDataParallel(layers())
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    found = []
    for _ in range(2):
        model.zero_grad()
        model(part(samples(8), rank, size)).pow(2).mean().backward()
        found.append(gradients(model))
    return found


@pytest.mark.parametrize("alone", [False, True])
def test_gradients_of_local_sgd(alone):
    batches = samples(8).chunk(4)
    model = layers()

    def average(places):
        model.zero_grad()
        for place in places:
            (model(batches[place]).pow(2).mean() / len(places)).backward()
        return gradients(model)

    for rank, (first, second) in enumerate(world_here(4).run(local, alone)):
        close(first, average(range(4)))
        half = range(rank // 2 * 2, rank // 2 * 2 + 2)
        close(second, average([rank] if alone else half))


def averaged(rank, size):
    model = layers(rank)
    averager = averagers.PeriodicModelAverager(2, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(tlc.optim.SGD(model.parameters(), lr=0.1), averager)
    model[0].bias.requires_grad_(False)
    start = host(model[0].bias)
    equal = []
    for _ in range(4):
        optimizer.zero_grad()
        model(part(samples(8), rank, size)).pow(2).mean().backward()
        optimizer.step()
        gathered = [None] * size
        dist.all_gather_object(gathered, model[0].weight.detach().cpu())
        equal.append(bool((gathered[0] == gathered[-1]).all()))
    state = optimizer.state_dict()
    again = PostLocalSGDOptimizer(
        tlc.optim.SGD(model.parameters(), lr=0.5), averagers.PeriodicModelAverager(2)
    )
    again.load_state_dict(state)
    unmoved = np.array_equal(start, host(model[0].bias))
    return equal, unmoved, again.averager.step, again.param_groups[0]["lr"]


def test_models_are_averaged_now_and_then():
    for equal, unmoved, step, lr in world_here(2).run(averaged):
        assert equal == [False, True, False, True]
        assert unmoved and step == 4 and lr == 0.1


def average_of_some(rank, size):
    pair = dist.new_group([1, 2])
    parameter = nn.Parameter(tlc.full((2, 2), float(rank), device=HERE))
    group = pair if rank in (1, 2) else dist.GroupMember.NON_GROUP_MEMBER
    utils.average_parameters([parameter], group)
    return parameter.mean().item()


def test_average_over_a_part_of_the_processes():
    assert world_here(4).run(average_of_some) == [0, 1.5, 1.5, 3]


def wrong(rank, size):
    for period, warmup in ((0, 0), (2, -1)):
        with pytest.raises(ValueError, match="must be a"):
            averagers.PeriodicModelAverager(period, warmup)
    with pytest.warns(UserWarning, match="When period is 1"):
        averagers.PeriodicModelAverager(1)
    with pytest.raises(NotImplementedError, match="is not supported"):
        utils.get_params_to_average([3])


def test_wrong_arguments():
    world_here(2).run(wrong)
