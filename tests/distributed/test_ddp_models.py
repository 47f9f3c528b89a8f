"""What DistributedDataParallel checks and makes equal when it is made; copies of it; errors."""

from __future__ import annotations

import copy
import pickle
import warnings
import weakref

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.ranks import close, gradients, host, layers, part, samples

SMALL = 1e-4  # MiB: many buckets for small models


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
    for _, error in world_here(4).outcomes(beginnings, what):
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
    one, other = world_here(2).run(started)
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
    found = world_here(2).run(buffers, {})
    assert [each[0] for each in found[0][0]] == [1, 2, 3, 4]
    assert [each[0] for each in found[1][0]] == [2, 3, 4, 6]  # not within no_sync
    assert [steps for _, steps in found] == [4, 4]
    found = world_here(2).run(buffers, {"forward_sync_buffers": False})
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
    for results, is_dead, gone in world_here(2).run(copied):
        assert is_dead and gone == 1
        for found in results:
            close(found, gradients(model))


def subgroup(rank, size):
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    model = DistributedDataParallel(layers(rank), process_group=halves[rank // 2])
    model(part(samples(8), rank, size)).pow(2).mean().backward()
    return host(model.module[0].weight), gradients(model)


def test_groups_of_some_processes():
    found = world_here(4).run(subgroup)
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
    for found in world_here(2).run(refusals):
        assert [name for name, _ in found] == [
            *("ValueError", "RuntimeError", "RuntimeError", "RuntimeError"),
            *("ValueError", "ValueError", "NotImplementedError"),
        ]
        assert "device_ids can only be None or contain a single element." in found[0][1]
        assert "uninitialized parameters" in found[2][1]
        assert "must be on the same type of devices" in found[4][1]
        assert "got device_ids [0], output_device None" in found[5][1]


def warned(rank, size):
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
    for found in world_here(2).run(warned):
        assert [each[:2] for each in found] == [
            *(("FutureWarning", False), ("FutureWarning", True)),
            *(("FutureWarning", True), ("UserWarning", True)),
        ]
        assert all(name == __file__ for *_, name in found)


def sparse_tables(rank, size):
    """Sparse gradients of tables, some without elements, beside dense ones."""
    tlc.manual_seed(0)
    table, head = nn.Embedding(6, 2, sparse=True), nn.Linear(2, 1)
    model = DistributedDataParallel(nn.Sequential(table, head).to(HERE), bucket_cap_mb=SMALL)
    alone = copy.deepcopy(model.module)
    for step in range(2):
        rows = [tlc.tensor([5, 1, 1][: 3 - step - r % 4], device=HERE).long() for r in range(size)]
        model.zero_grad(), alone.zero_grad()
        model(rows[rank]).pow(2).sum().backward()
        sum(alone(index).pow(2).sum() for index in rows).backward()
        g, whole = table.weight.grad, alone[0].weight.grad.coalesce() / size
        assert g.is_sparse and g.is_coalesced()
        assert g._indices().tolist() == whole._indices().tolist()
        assert tlc.allclose(g._values(), whole._values())
        assert tlc.allclose(head.weight.grad, alone[1].weight.grad / size)


def test_sparse_gradients_are_gathered():
    world_here(2).run(sparse_tables)
