"""Communication hooks of DistributedDataParallel: what they see, what their results become."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.algorithms import ddp_comm_hooks
from tensorflow_lite_clone.distributed.algorithms.ddp_comm_hooks import default_hooks
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.ranks import host, part

SMALL = 4e-5  # MiB


def layers(dtype=tlc.float32):
    tlc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(HERE, dtype)


def samples(dtype=tlc.float32):
    values = np.random.default_rng(5).standard_normal((8, 4))
    return tlc.tensor(values, dtype=dtype, device=HERE)


def gradients(model):
    return [host(parameter.grad) for parameter in model.parameters()]


def expected(dtype=tlc.float32):
    model = layers(dtype)
    model(samples(dtype)).pow(2).mean().backward()
    return gradients(model)


def watched(rank, size):
    """What a hook sees, which doubles the average and gives it in memory of its own."""
    passes = []

    def hook(state, bucket: dist.GradBucket) -> Future[tlc.Tensor]:
        parts = bucket.gradients()
        flat = tlc.cat([part.reshape(-1) for part in parts])
        shapes = [tuple(each.shape) for each in bucket.parameters()]
        same = bool((flat == bucket.buffer()).all())
        assert [tuple(each.shape) for each in parts] == shapes
        passes[-1].append((state, bucket.index(), bucket.is_last(), shapes, same))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] * 2 / size)

    model = DistributedDataParallel(layers(), bucket_cap_mb=SMALL)
    model.register_comm_hook("state", hook)
    for _ in range(2):
        passes.append([])
        model.zero_grad()
        model(part(samples(), rank, size)).pow(2).mean().backward()
    return passes, gradients(model)


def test_a_hook_sees_buckets_in_order_and_its_result_counts():
    for passes, found in world_here(2).run(watched):
        for calls in passes:
            assert [index for _, index, *_ in calls] == list(range(len(calls)))
            assert [last for _, _, last, *_ in calls] == [False] * (len(calls) - 1) + [True]
            assert {state for state, *_ in calls} == {"state"} and all(same for *_, same in calls)
        assert [shapes for *_, shapes, _ in passes[0]] == [[(2,), (2, 6)], [(6,), (6, 4)]]
        for one, other in zip(found, expected(), strict=True):
            np.testing.assert_allclose(one, 2 * other, 1e-5, 1e-6)


HOOKS = {
    "allreduce_hook": default_hooks.allreduce_hook,
    "fp16_compress_hook": default_hooks.fp16_compress_hook,
    "bf16_compress_hook": default_hooks.bf16_compress_hook,
    "fp16_compress_wrapper": default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
    "bf16_compress_wrapper": default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
}
ERRORS = {"a": 1e-6, "f": 2e-3, "b": 2e-2}  # of the dtypes in which the gradients travel


def hooked(rank, size, name, views):
    model = DistributedDataParallel(layers(), bucket_cap_mb=SMALL, gradient_as_bucket_view=views)
    model.register_comm_hook(None, HOOKS[name])
    for _ in range(3):
        model.zero_grad()
        model(part(samples(), rank, size)).pow(2).mean().backward()
    return gradients(model)


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("name", HOOKS)
def test_default_hooks_average(name, views):
    one, other = world_here(2).run(hooked, name, views)
    error = ERRORS[name[0]]
    for mine, theirs, full in zip(one, other, expected(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, full, error, error)
    exact = all(np.allclose(a, b, 1e-6, 1e-7) for a, b in zip(one, expected(), strict=True))
    assert exact == (name == "allreduce_hook")  # the others did round


def by_name(rank, size, name):
    model = DistributedDataParallel(layers())
    kind = ddp_comm_hooks.DDPCommHookType[name]
    ddp_comm_hooks.register_ddp_comm_hook(kind, model, dist.group.WORLD)
    model(part(samples(), rank, size)).pow(2).mean().backward()
    return gradients(model)


@pytest.mark.parametrize("name", [kind.name for kind in ddp_comm_hooks.DDPCommHookType])
def test_hooks_by_name(name):
    for found in world_here(2).run(by_name, name):
        for one, other in zip(found, expected(), strict=True):
            np.testing.assert_allclose(one, other, 2e-2, 2e-2)


def refused(rank, size):
    def message(hook):
        try:
            model.register_comm_hook(None, hook)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def wrong_bucket(state, bucket: int): ...

    def wrong_result(state, bucket) -> int: ...

    model = DistributedDataParallel(layers())
    hooks = 3, wrong_bucket, wrong_result, default_hooks.allreduce_hook
    found = [message(hook) for hook in (*hooks, default_hooks.allreduce_hook)]

    def failing(state, bucket):
        raise ValueError("the hook's own")

    other = DistributedDataParallel(layers())
    other.register_comm_hook(None, failing)
    with pytest.raises(ValueError, match="the hook's own"):
        other(samples()).sum().backward()
    return found


def test_invalid_communication_hooks_raise():
    for found in world_here(2).run(refused):
        assert found == [
            "TypeError: Communication hook must be callable.",
            "ValueError: Communication hook: bucket annotation should be dist.GradBucket.",
            "ValueError: Communication hook: return annotation should be "
            "torch.futures.Future[torch.Tensor].",
            None,
            "RuntimeError: register_comm_hook or register_builtin_comm_hook can only be called "
            "once.",
        ]
