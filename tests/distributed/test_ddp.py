"""DistributedDataParallel in several processes, compared with one process on the joined batch."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.ranks import HERE, host, part, ranks

SMALL = 1e-4  # MiB: many buckets for small models


def layers(seed=0, dtype=tlc.float64):
    tlc.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.Tanh(), nn.Linear(6, 3))
    return model.to(HERE, dtype)


def samples(count, features=5, dtype=tlc.float64):
    values = np.random.default_rng(3).standard_normal((count, features))
    return tlc.tensor(values, dtype=dtype, device=HERE)


def gradients(model):
    return [host(parameter.grad) for parameter in model.parameters()]


def close(found, expected, tolerance=1e-10):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, tolerance, tolerance)


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
    found = ranks(2).run(trained, "SGD", "float64", OPTIONS[name])
    close([np.mean([each[0] for each in found], axis=0)], [losses])
    for _, mine in found:
        close(mine, parameters)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_four_processes_with_adamw(dtype):
    tolerance = 1e-10 if dtype == "float64" else 1e-5
    losses, parameters = trained(0, 1, "AdamW", dtype, {}, wrapped=False)
    found = ranks(4).run(trained, "AdamW", dtype, {"bucket_cap_mb": SMALL})
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
    for same, inside, found in ranks(2).run(kept_gradients):
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
    for before, after, last in ranks(2).run(bucket_order):
        assert before == [[5, 4], [3, 2], [1, 0]]
        order = sum(after, [])
        assert [set(order[i : i + 2]) for i in (0, 2, 4)] == [{0, 1}, {4, 5}, {2, 3}]
        assert last == [False] * (len(after) - 1) + [True]


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
    found = ranks(2).run(accumulated, options)
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
    found = ranks(2).run(branched, uses, options)
    assert all(g is None for g in found[0][2][:2] + found[0][2][4:])  # used nowhere
    model = Branches()
    for step, names in enumerate(uses):
        model.zero_grad()
        for rank in range(2):
            (model(part(samples(4), rank, 2), names[rank]).pow(2).sum() / 2).backward()
        for rank in range(2):
            close(found[rank][step], gradients(model))


def test_a_static_graph_with_unused_parameters():
    found = ranks(2).run(branched, [("ca", "ca")] * 3, {"static_graph": True})
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
    for rank, (_, error) in enumerate(ranks(2).outcomes(left_out)):
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
    for _, error in ranks(2).outcomes(hidden):
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
    for found in ranks(2).run(nested):
        close(found, gradients(model))


def many_ways(rank, size):
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

    wrapped = DistributedDataParallel(Model(), bucket_cap_mb=SMALL)
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


def test_shared_and_frozen_parameters_and_several_calls():
    for found, expected in ranks(2).run(many_ways):
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
    for found in ranks(2).run(reentrant):
        close(found, gradients(model))


# -- the beginning ------------------------------------------------------------------------------


def beginnings(rank, size, what):
    tlc.manual_seed(rank)
    if what == "shape":
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2 + rank // 2))
    elif what == "dtype":
        model = nn.Sequential(nn.Linear(2, 2)).to(tlc.float64 if rank == 1 else tlc.float32)
    elif what == "name":
        model = nn.ModuleDict({"a" if rank < 3 else "b": nn.Linear(2, 2)})
    elif what == "number":
        model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(1 + (rank == 2))])
    else:
        model = nn.Linear(2, 2)
    DistributedDataParallel(model.to(HERE), init_sync=what != "values")


MESSAGES = {
    "shape": "the parameter '1.weight' has torch.float32 of shape [2, 2] in rank 0, but "
    "torch.float32 of shape [3, 2] in rank 2",
    "dtype": "the parameter '0.weight' has torch.float32 of shape [2, 2] in rank 0, but "
    "torch.float64 of shape [2, 2] in rank 1",
    "name": "where rank 0 has the parameter 'a.weight', rank 3 has 'b.weight'",
    "number": "rank 0 has 2 parameters, rank 2 has 4; only rank 2 has '1.weight'",
    "values": "the parameter 'weight' has values with digest",
}


@pytest.mark.parametrize("what", MESSAGES)
def test_models_that_differ(what):
    for _, error in ranks(4).outcomes(beginnings, what):
        assert "RuntimeError" in error
        assert MESSAGES[what] in error


def started(rank, size):
    tlc.manual_seed(rank)
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(HERE)
    model[1].running_mean += rank
    model[1].num_batches_tracked += rank
    ignored = model[0].bias
    ignored.data += 7 * rank
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["0.bias"])
    wrapped = DistributedDataParallel(model)
    wrapped(samples(4, 3, tlc.float32) * (rank + 1)).sum().backward()
    state = {name: host(value) for name, value in wrapped.state_dict().items()}
    return state, host(model[0].weight.grad), host(ignored.grad)


def test_parameters_and_buffers_are_those_of_rank_0():
    one, other = ranks(2).run(started)
    assert list(one[0]) == [
        *("module.0.weight", "module.0.bias", "module.1.weight", "module.1.bias"),
        *("module.1.running_mean", "module.1.running_var", "module.1.num_batches_tracked"),
    ]
    for name in one[0]:
        same = np.array_equal(one[0][name], other[0][name])
        assert same == (name not in ("module.0.bias", "module.1.running_mean",
                                     "module.1.running_var")), name  # fmt: skip
    np.testing.assert_array_equal(one[1], other[1])
    assert not np.array_equal(one[2], other[2])


def buffers(rank, size, options):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tlc.ones(1, device=HERE))
            self.register_buffer("steps", tlc.zeros((), dtype=tlc.int64, device=HERE))
            self.register_buffer("mean", tlc.zeros(2, device=HERE))

        def forward(self, x):
            self.mean += x
            self.steps += 1
            return self.weight * x

    model = DistributedDataParallel(Model(), **options)
    x = tlc.full((2,), rank + 1.0, device=HERE)
    seen = []
    for _ in range(2):
        model(x).sum().backward()
        seen.append(model.module.mean.tolist())
    with model.no_sync():
        model(x).sum().backward()
        seen.append(model.module.mean.tolist())
        model(x)
        seen.append(model.module.mean.tolist())
    return seen, model.module.steps.item()


def test_buffers_are_those_of_rank_0_at_each_forward_pass():
    found = ranks(2).run(buffers, {})
    assert [each[0] for each in found[0][0]] == [1, 2, 3, 4]
    assert [each[0] for each in found[1][0]] == [2, 3, 4, 6]  # not within no_sync
    assert [steps for _, steps in found] == [4, 4]
    found = ranks(2).run(buffers, {"forward_sync_buffers": False})
    assert [each[0] for each in found[1][0]] == [2, 4, 6, 8]


# -- copies, errors -----------------------------------------------------------------------------


def copied(rank, size):
    model = DistributedDataParallel(layers(), bucket_cap_mb=SMALL, gradient_as_bucket_view=True)
    results = []
    for made in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        made(part(samples(4), rank, size)).pow(2).mean().backward()
        results.append(gradients(made))
    reducer, parameter = weakref.ref(model.reducer), model.module[0].weight
    inner = model.module
    hooks = len(parameter._post_accumulate_hooks)
    del model, made
    left = len(parameter._post_accumulate_hooks)
    again = DistributedDataParallel(inner)
    again.zero_grad()
    again(part(samples(4), rank, size)).pow(2).mean().backward()
    return [*results, gradients(again)], reducer() is None, hooks - left


def test_copies_and_pickles_average_their_own_gradients():
    model = layers()
    model(samples(4)).pow(2).mean().backward()
    for results, is_dead, gone in ranks(2).run(copied):
        assert is_dead and gone == 1
        for found in results:
            close(found, gradients(model))


def subgroup(rank, size):
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    model = DistributedDataParallel(layers(rank), process_group=halves[rank // 2])
    model(part(samples(8), rank, size)).pow(2).mean().backward()
    return host(model.module[0].weight), gradients(model)


def test_groups_of_some_processes():
    found = ranks(4).run(subgroup)
    for half in range(2):
        model = layers(2 * half)
        model(samples(8).chunk(2)[half]).pow(2).mean().backward()
        for weight, mine in found[2 * half : 2 * half + 2]:
            close([weight], [host(model[0].weight)])
            close(mine, gradients(model))


def refusals(rank, size):
    import tests.pair_backend  # noqa: F401  (another type of device)

    def message(make):
        try:
            make()
        except Exception as error:
            return type(error).__name__, str(error)
        return None

    linear = lambda: nn.Linear(2, 2).to(HERE)
    wrap = DistributedDataParallel
    return [
        message(lambda: wrap(linear(), device_ids=[0, 1])),
        message(lambda: wrap(linear(), process_group=dist.group.WORLD, device_mesh=3)),
        message(lambda: wrap(nn.LazyLinear(2))),
        message(lambda: wrap(linear().requires_grad_(False))),
        message(lambda: wrap(nn.Sequential(linear(), nn.Linear(2, 2, device="pair:0")))),
        message(lambda: wrap(nn.Linear(2, 2), device_ids=[0])),
        message(lambda: wrap(linear(), mixed_precision=1)),
    ]


def test_errors():
    for found in ranks(2).run(refusals):
        assert [name for name, _ in found] == [
            *("ValueError", "RuntimeError", "RuntimeError", "RuntimeError"),
            *("ValueError", "ValueError", "NotImplementedError"),
        ]
        assert "device_ids can only be None or contain a single element." in found[0][1]
        assert "uninitialized parameters" in found[2][1]
        assert "must be on the same type of devices" in found[4][1]
        assert "got device_ids [0], output_device None" in found[5][1]


def warned(rank, size):
    import warnings

    found = []
    for options in (
        {"broadcast_buffers": False},
        {"broadcast_buffers": False, "forward_sync_buffers": True},
        {"check_reduction": True},
        {"static_graph": True, "find_unused_parameters": True},
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = DistributedDataParallel(nn.Linear(2, 2).to(HERE), **options)
        (warning,) = caught
        found.append((warning.category.__name__, model.broadcast_buffers, warning.filename))
    return found


def test_warnings():
    for found in ranks(2).run(warned):
        assert [each[:2] for each in found] == [
            *(("FutureWarning", False), ("FutureWarning", True)),
            *(("FutureWarning", True), ("UserWarning", True)),
        ]
        assert all(name == __file__ for *_, name in found)
