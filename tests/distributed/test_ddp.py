"""DistributedDataParallel in several processes, compared with one process on the joined batch."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.ranks import close, gradients, host, layers, part, samples

SMALL = 1e-4  # MiB: many buckets for small models


# -- training -----------------------------------------------------------------------------------


def trained(rank, size, optimizer, dtype, options, wrapped=True):
    """The losses of 20 steps, and the parameters at the end."""
    dtype = getattr(tlc, dtype)
    model = layers(rank, dtype)  # rank 0's values count
    if wrapped:
        model = DistributedDataParallel(model, **options)
    settings = {"lr": 0.1, "momentum": 0.9} if optimizer == "SGD" else {"lr": 0.02}
    made = getattr(tlc.optim, optimizer)(model.parameters(), **settings)
    x = samples(12, dtype=dtype)
    y = x[:, :3].sin()
    losses = []
    for _ in range(20):
        made.zero_grad(set_to_none=bool(options.get("drop", True)))
        loss = (model(part(x, rank, size)) - part(y, rank, size)).pow(2).mean()
        loss.backward()
        made.step()
        losses.append(loss.item())
    return losses, [host(parameter) for parameter in model.parameters()]


OPTIONS = {
    "plain": {},
    "small buckets": {"bucket_cap_mb": SMALL},
    "listed buckets": {"bucket_cap_mb_list": [SMALL, 1]},
    "views": {"gradient_as_bucket_view": True, "bucket_cap_mb": SMALL},
    "search": {"find_unused_parameters": True, "bucket_cap_mb": SMALL},
    "static": {"static_graph": True, "bucket_cap_mb": SMALL},
    "static views": {"static_graph": True, "gradient_as_bucket_view": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_training_is_that_of_the_joined_batch(name):
    losses, parameters = trained(0, 1, "SGD", "float64", {}, wrapped=False)
    found = world_here(2).run(trained, "SGD", "float64", OPTIONS[name])
    close([np.mean([each[0] for each in found], axis=0)], [losses])
    for _, mine in found:
        close(mine, parameters)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_four_processes_with_adamw(dtype):
    tolerance = 1e-10 if dtype == "float64" else 1e-5
    losses, parameters = trained(0, 1, "AdamW", dtype, {}, wrapped=False)
    found = world_here(4).run(trained, "AdamW", dtype, {"bucket_cap_mb": SMALL})
    close([np.mean([each[0] for each in found], axis=0)], [losses], tolerance)
    for _, mine in found:
        close(mine, parameters, tolerance)


def kept_gradients(rank, size):
    """Gradients that are set to zero, not dropped, between steps: views stay views."""
    model = DistributedDataParallel(layers(), gradient_as_bucket_view=True, bucket_cap_mb=SMALL)
    x = part(samples(8), rank, size)
    views = []
    for _ in range(4):
        model.zero_grad(set_to_none=False)
        model(x).pow(2).mean().backward()
        views.append([parameter.grad for parameter in model.parameters()])
    same = all(a is b for a, b in zip(views[1], views[3], strict=True))
    buffers = [bucket.buffer() for bucket in model.reducer.buckets]
    inside = all(any(g._base is buffer for buffer in buffers) for g in views[3])
    return same, inside, gradients(model)


def test_gradients_are_views_of_the_buckets():
    model = layers()
    model(samples(8)).pow(2).mean().backward()
    for same, inside, found in world_here(2).run(kept_gradients):
        assert same and inside
        close(found, gradients(model))


def bucket_order(rank, size):
    model = layers()
    order = nn.ModuleList([model[4], model[0], model[2]])  # not the order of use

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = order

        def forward(self, x):
            return self.layers[0](self.layers[2](self.layers[1](x).tanh()).tanh())

    wrapped = DistributedDataParallel(Model(), bucket_cap_mb=SMALL)
    before = [bucket.places for bucket in wrapped.reducer.buckets]
    wrapped(samples(3)).sum().backward()
    after = [bucket.places for bucket in wrapped.reducer.buckets]
    last = [bucket.is_last() for bucket in wrapped.reducer.buckets]
    return before, after, last


def test_buckets_follow_the_order_of_arrival():
    for before, after, last in world_here(2).run(bucket_order):
        assert before == [[5, 4], [3, 2], [1, 0]]
        order = sum(after, [])
        assert [set(order[i : i + 2]) for i in (0, 2, 4)] == [{0, 1}, {4, 5}, {2, 3}]
        assert last == [False] * (len(after) - 1) + [True]


def launched(rank, size):
    """What happens in the backward pass: reductions, and the gradient that comes last."""
    events = []

    def hook(state, bucket):
        events.append(bucket.index())
        return dist.all_reduce(bucket.buffer(), dist.ReduceOp.AVG, async_op=True).get_future()

    model = DistributedDataParallel(layers(), bucket_cap_mb=SMALL)
    model.register_comm_hook(None, hook)
    model.module[0].weight.register_post_accumulate_grad_hook(lambda _: events.append("last"))
    for _ in range(2):
        events.clear()
        model(samples(3)).sum().backward()
    return events


def test_reductions_begin_before_the_backward_pass_is_over():
    for events in world_here(2).run(launched):
        assert events[0] == 0 and events.index("last") >= 2


# -- which gradients are averaged ---------------------------------------------------------------


def accumulated(rank, size, options):
    model = DistributedDataParallel(layers(), bucket_cap_mb=SMALL, **options)
    batches = samples(8 * size).chunk(4)
    with model.no_sync():
        with model.no_sync():
            model(part(batches[0], rank, size)).pow(2).sum().backward()
        model(part(batches[1], rank, size)).pow(2).sum().backward()
    alone = gradients(model)
    model(part(batches[2], rank, size)).pow(2).sum().backward()
    return alone, gradients(model)


@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}])
def test_no_sync(options):
    found = world_here(2).run(accumulated, options)
    model, batches = layers(), samples(16).chunk(4)
    for rank in range(2):
        model.zero_grad()
        for batch in batches[:2]:
            model(part(batch, rank, 2)).pow(2).sum().backward()
        close(found[rank][0], gradients(model))
    model.zero_grad()
    for batch in batches[:3]:
        (model(batch).pow(2).sum() / 2).backward()
    for _, averaged in found:
        close(averaged, gradients(model))


class Branches(nn.Module):
    """Three layers, of which each call names those it uses."""

    def __init__(self):
        super().__init__()
        tlc.manual_seed(0)
        self.a, self.b, self.c = [nn.Linear(5, 5).to(HERE, tlc.float64) for _ in range(3)]

    def forward(self, x, names):
        for name in names:
            x = getattr(self, name)(x).tanh()
        return x


def branched(rank, size, uses, options):
    """The gradients after each iteration; `uses` are the layers by iteration and rank."""
    model = DistributedDataParallel(Branches(), bucket_cap_mb=SMALL, **options)
    found = []
    for names in uses:
        model.zero_grad()
        model(part(samples(4), rank, size), names[rank]).pow(2).sum().backward()
        found.append(gradients(model))
    return found


@pytest.mark.parametrize("views", [False, True])
def test_unused_parameters(views):
    uses = [("a", "ab"), ("ab", "ab"), ("b", "b"), ("abc", "a")]
    options = {"find_unused_parameters": True, "gradient_as_bucket_view": views}
    found = world_here(2).run(branched, uses, options)
    assert all(g is None for g in found[0][2][:2] + found[0][2][4:])  # used nowhere
    model = Branches()
    for step, names in enumerate(uses):
        model.zero_grad()
        for rank in range(2):
            (model(part(samples(4), rank, 2), names[rank]).pow(2).sum() / 2).backward()
        for rank in range(2):
            close(found[rank][step], gradients(model))


def test_a_static_graph_with_unused_parameters():
    found = world_here(2).run(branched, [("ca", "ca")] * 3, {"static_graph": True})
    model = Branches()
    (model(samples(4), "ca").pow(2).sum() / 2).backward()
    for each in found:
        for step in each:
            close(step, gradients(model))
            assert step[2] is None


def left_out(rank, size):
    model = DistributedDataParallel(Branches())
    model(samples(2), "ac").sum().backward()
    model(samples(2), "ac")


def test_unused_parameters_without_the_search():
    for rank, (_, error) in enumerate(world_here(2).outcomes(left_out)):
        assert "RuntimeError: Expected to have finished reduction in the prior iteration" in error
        assert f"did not receive grad for rank {rank}: 2 3 (b.weight, b.bias)" in error


def hidden(rank, size):
    class Box:
        def __init__(self, value):
            self.value = value

    class Model(Branches):
        def forward(self, x, names):
            return Box(super().forward(x, names))

    model = DistributedDataParallel(Model(), find_unused_parameters=True)
    model(samples(2), "abc").value.sum().backward()


def test_outputs_that_are_not_found():
    for _, error in world_here(2).outcomes(hidden):
        assert "RuntimeError: Expected to mark a variable ready only once" in error


Pair = namedtuple("Pair", "first second")


@dataclass
class Result:
    value: object


def nested(rank, size):
    class Model(Branches):
        def forward(self, x):
            a, b, c = self.a(x), self.b(x), self.c(x)
            return {"x": [Pair(a, 3), Result(b)], "y": (None, c.detach())}

    model = DistributedDataParallel(Model(), find_unused_parameters=True, bucket_cap_mb=SMALL)
    for _ in range(2):
        model.zero_grad()
        pair, result = model(part(samples(4), rank, size))["x"]
        (pair.first * result.value).sum().backward()
    return gradients(model)


def test_outputs_in_containers():
    model, x = Branches(), samples(4)
    ((model.a(x) * model.b(x)).sum() / 2).backward()
    for found in world_here(2).run(nested):
        close(found, gradients(model))


def many_ways(rank, size, options):
    """Shared and frozen parameters, several forward passes, one that is not trained."""
    model = layers()
    model[2].bias.requires_grad_(False)
    model.append(nn.Linear(5, 3).to(HERE, tlc.float64))
    model[5].weight = nn.Parameter(model[0].weight.detach()[:3].clone())
    model[5].bias = model[4].bias

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner[:5](x) * self.inner[5](x)

    wrapped = DistributedDataParallel(Model(), bucket_cap_mb=SMALL, **options)
    x = samples(8 * size)
    with tlc.no_grad():
        wrapped(x)
    parts = [part(each, rank, size) for each in x.chunk(2)]
    for _ in range(2):
        wrapped.zero_grad()
        (wrapped(parts[0]).sum() + wrapped(parts[1]).pow(2).sum()).backward()
    found = gradients(wrapped)
    wrapped.zero_grad()
    plain = wrapped.module
    for each in range(size):
        parts = [part(half, each, size) for half in x.chunk(2)]
        ((plain(parts[0]).sum() + plain(parts[1]).pow(2).sum()) / size).backward()
    return found, gradients(plain)


@pytest.mark.parametrize("name", ["plain", "views", "search", "static"])
def test_shared_and_frozen_parameters_and_several_calls(name):
    options = {key: value for key, value in OPTIONS[name].items() if key != "bucket_cap_mb"}
    for found, expected in world_here(2).run(many_ways, options):
        close(found, expected)
        assert sum(g is None for g in found) == 1


def reentrant(rank, size):
    from tensorflow_lite_clone.utils.checkpoint import checkpoint

    class Model(Branches):
        def forward(self, x):
            for name in "aba":
                x = checkpoint(getattr(self, name), x, use_reentrant=True)
            return x

    model = DistributedDataParallel(Model(), static_graph=True, bucket_cap_mb=SMALL)
    for _ in range(3):
        model.zero_grad()
        model(part(samples(4), rank, size).requires_grad_()).pow(2).sum().backward()
    return gradients(model)


def test_a_static_graph_with_checkpoints():
    model, x = Branches(), samples(4)
    (model.a(model.b(model.a(x))).pow(2).sum() / 2).backward()
    for found in world_here(2).run(reentrant):
        close(found, gradients(model))


class Kinds(nn.Module):
    """Parameters of several dtypes, shapes and layouts."""

    def __init__(self):
        super().__init__()
        tlc.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 2).to(HERE, memory_format=tlc.channels_last)
        self.narrow = nn.Parameter(tlc.randn(3, 5).to(HERE, tlc.bfloat16))
        self.turning = nn.Parameter(tlc.randn(4, dtype=tlc.complex64).to(HERE))
        self.turned = nn.Parameter(tlc.randn(4, 3).T.to(HERE))
        self.number = nn.Parameter(tlc.ones((), device=HERE))

    def forward(self, x):
        y = self.conv(x.reshape(-1, 3, 2, 2)).sum((2, 3)) * self.number
        y = (y * self.turning).abs() @ self.turned.T
        return y.sum() + (x[:, :5] @ self.narrow.float().T).pow(2).sum()


def kinds(rank, size, views):
    model = DistributedDataParallel(Kinds(), bucket_cap_mb=SMALL, gradient_as_bucket_view=views)
    for _ in range(2):
        model.zero_grad()
        model(part(samples(4, 12, tlc.float32), rank, size)).backward()
    parameters = list(model.parameters())
    dtypes = [{p.dtype for p in b.parameters()} for b in model.reducer.buckets]
    same = all(p.grad.stride() == p.stride() for p in parameters)
    wide = [host(p.grad.to(tlc.complex128)) for p in parameters]
    return wide, same, max(map(len, dtypes))


@pytest.mark.parametrize("views", [False, True])
def test_parameters_of_several_kinds(views):
    model, x = Kinds(), samples(4, 12, tlc.float32)
    sum(model(half) for half in x.chunk(2)).mul(0.5).backward()
    expected = [host(p.grad.to(tlc.complex128)) for p in model.parameters()]
    for found, same, dtypes in world_here(2).run(kinds, views):
        assert dtypes == 1
        assert same or not views
        for (name, _), mine, theirs in zip(model.named_parameters(), found, expected, strict=True):
            error = 2e-2 if name == "narrow" else 1e-5
            np.testing.assert_allclose(mine, theirs, error, error, err_msg=name)


class Halves(nn.Module):
    """Two layers on two devices."""

    def __init__(self, first, second):
        super().__init__()
        one, *_, other = layers()
        tlc.manual_seed(1)
        self.one = one.to(first)
        self.other = nn.Linear(7, 3).to(second, tlc.float64)
        self.second = second

    def forward(self, x):
        return self.other(self.one(x).tanh().to(self.second))


def split(rank, size):
    """A module on two devices in each process; no GPUs are needed."""
    import tests.pair_backend  # noqa: F401

    group = dist.new_group(backend=f"{HERE}:{dist.get_backend()},pair:gloo")
    model = DistributedDataParallel(
        Halves("pair:0", "pair:1"), process_group=group, bucket_cap_mb=1
    )
    for _ in range(2):
        model.zero_grad()
        model(part(samples(4).to("pair:0"), rank, size)).pow(2).mean().backward()
    return gradients(model), len(model.reducer.buckets), [str(p.device) for p in model.parameters()]


def test_a_module_on_two_devices():
    model = Halves("cpu", "cpu")
    model(samples(4).cpu()).pow(2).mean().backward()
    for found, buckets, devices in world_here(2).run(split):
        assert buckets == 2 and devices == ["pair:0"] * 2 + ["pair:1"] * 2
        close(found, gradients(model))
