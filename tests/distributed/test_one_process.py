"""A world of one process behaves as PyTorch's does with gloo."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.distributed  # noqa: F401

import tensorflow_lite_clone as tlc
from tests.dropin.programs import printed
from tests.nn.against_torch import outcome


@pytest.fixture
def world(tmp_path):
    """A group of one process in both libraries."""
    for lib in (tlc, torch):
        path = tmp_path / lib.__name__
        lib.distributed.init_process_group("gloo", f"file://{path}", rank=0, world_size=1)
    yield
    for lib in (tlc, torch):
        if lib.distributed.is_initialized():
            lib.distributed.destroy_process_group()


def both(script):
    """The outcomes of a script under both; messages are compared by their type alone."""
    found = []
    for lib in (tlc, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result, _ = outcome(script, lib)
        error = isinstance(result, tuple) and result and str(result[0]).endswith("Error")
        found.append(result[0] if error else result)
    assert found[0] == found[1]


def kept(f):
    """A script that gives the tensors that a collective may have written."""

    def script(lib):
        x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
        result = f(lib.distributed, x, y)
        return x, y, result is None

    return script


COLLECTIVES = {
    "all_reduce": lambda d, x, y: d.all_reduce(x),
    "all_reduce_max": lambda d, x, y: d.all_reduce(x, op=d.ReduceOp.MAX),
    "all_reduce_avg": lambda d, x, y: d.all_reduce(x, d.ReduceOp.AVG, d.group.WORLD),
    "all_reduce_later": lambda d, x, y: d.all_reduce(x, async_op=True),
    "all_reduce_list": lambda d, x, y: d.all_reduce([x]),
    "all_reduce_outside": lambda d, x, y: d.all_reduce(x, group=d.GroupMember.NON_GROUP_MEMBER),
    "broadcast": lambda d, x, y: d.broadcast(x, 0),
    "broadcast_keyword": lambda d, x, y: d.broadcast(x, src=0),
    "broadcast_nobody": lambda d, x, y: d.broadcast(x, 1),
    "reduce": lambda d, x, y: d.reduce(x, 0),
    "reduce_nobody": lambda d, x, y: d.reduce(x, 1),
    "all_gather": lambda d, x, y: d.all_gather([y], x),
    "all_gather_none": lambda d, x, y: d.all_gather([], x),
    "all_gather_other": lambda d, x, y: d.all_gather([y[:1]], x),
    "all_gather_tensor": lambda d, x, y: d.all_gather(y, x),
    "all_gather_into_tensor": lambda d, x, y: d.all_gather_into_tensor(y, x),
    "gather": lambda d, x, y: d.gather(x, [y]),
    "gather_nowhere": lambda d, x, y: d.gather(x),
    "scatter": lambda d, x, y: d.scatter(y, [x]),
    "scatter_nothing": lambda d, x, y: d.scatter(y),
    "reduce_scatter": lambda d, x, y: d.reduce_scatter(y, [x]),
    "reduce_scatter_tensor": lambda d, x, y: d.reduce_scatter_tensor(y, x),
    "all_to_all": lambda d, x, y: d.all_to_all([y], [x]),
    "all_to_all_single": lambda d, x, y: d.all_to_all_single(y, x),
    "send": lambda d, x, y: d.send(x, 0),
    "barrier": lambda d, x, y: d.barrier(),
    "barrier_later": lambda d, x, y: d.barrier(async_op=True),
    "monitored_barrier": lambda d, x, y: d.monitored_barrier(),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name, world):
    both(kept(COLLECTIVES[name]))


def filled(f, start):
    def script(lib):
        values = list(start)
        f(lib.distributed, values)
        return values

    return script


QUESTIONS = {
    "rank": lambda lib: lib.distributed.get_rank(),
    "size": lambda lib: lib.distributed.get_world_size(),
    "outside": lambda lib: lib.distributed.get_world_size(
        lib.distributed.GroupMember.NON_GROUP_MEMBER
    ),
    "backend": lambda lib: str(lib.distributed.get_backend()),
    "ranks": lambda lib: lib.distributed.get_process_group_ranks(None),
    "names": lambda lib: (lib.distributed.group.WORLD.size(), lib.distributed.group.WORLD.name()),
    "new": lambda lib: lib.distributed.new_group([0]).size(),
    "new_of_all": lambda lib: lib.distributed.get_rank(lib.distributed.new_group()),
    "new_of_others": lambda lib: lib.distributed.new_group([1]),
    "global": lambda lib: lib.distributed.get_global_rank(lib.distributed.group.WORLD, 0),
    "group": lambda lib: lib.distributed.get_group_rank(lib.distributed.group.WORLD, 0),
    "twice": lambda lib: lib.distributed.init_process_group("gloo"),
    "default_backend": lambda lib: lib.distributed.get_default_backend_for_device("cpu"),
    "objects_gathered": filled(lambda d, given: d.all_gather_object(given, {"a": 1}), [None]),
    "objects_sent": filled(lambda d, given: d.broadcast_object_list(given, 0), [1, "a"]),
    "objects_collected": filled(lambda d, given: d.gather_object(3, given), [None]),
    "objects_scattered": filled(lambda d, given: d.scatter_object_list(given, [5]), [None]),
    "work": lambda lib: (lambda w: (w.wait(), w.is_completed()))(
        lib.distributed.all_reduce(lib.ones(1), async_op=True)
    ),
    "mesh": lambda lib: (
        lambda m: (m.shape, m.ndim, m.size(), m.get_rank(), list(m.get_coordinate()), m["b"].shape)
    )(lib.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"))),
    "store": lambda lib: (
        lambda s: (s.set("a", "b"), s.get("a").decode(), s.add("n", 2), s.add("n", 3))
    )(lib.distributed.HashStore()),
    "prefix": lambda lib: (
        lambda s: (lib.distributed.PrefixStore("p", s).set("a", "b"), s.get("p/a").decode())
    )(lib.distributed.HashStore()),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name, world):
    both(QUESTIONS[name])


def test_without_a_group():
    d = lambda lib: lib.distributed  # noqa: E731
    both(lambda lib: (d(lib).is_initialized(), d(lib).is_available()))
    both(lambda lib: d(lib).get_rank())
    both(lambda lib: d(lib).all_reduce(lib.ones(1)))
    both(lambda lib: d(lib).init_process_group("gloo"))  # the environment says nothing
    both(lambda lib: lib.nn.parallel.DistributedDataParallel(lib.nn.Linear(1, 1)))
    both(lambda lib: d(lib).group.WORLD)


def test_a_world_that_cannot_be_is_refused(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    with pytest.raises(ValueError, match="rank 1 is outside"):
        tlc.distributed.init_process_group()
    assert not tlc.distributed.is_initialized()


def trained(lib, wrap):
    lib.manual_seed(0)
    model = wrap(lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 1)))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(5):
        if step == 2 and hasattr(model, "no_sync"):
            with model.no_sync():
                model(lib.ones(1, 3)).sum().backward()
        loss = model(lib.randn(6, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 5))
    return losses, list(model.state_dict()), repr(model)


@pytest.mark.parametrize("name", ["parallel.DistributedDataParallel", "DataParallel"])
def test_wrappers(name, world):
    def wrap(lib, model):
        kind = lib.nn.DataParallel
        if name != "DataParallel":
            return lib.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
        return kind(model.cpu(), device_ids=[])

    assert trained(tlc, lambda m: wrap(tlc, m)) == trained(torch, lambda m: wrap(torch, m))


@pytest.mark.parametrize("find_unused", [True, False])
def test_settings_that_are_logged(find_unused, world):
    names = ("module_name", "world_size", "rank", "find_unused_parameters")

    def logged(lib):
        wrap = lib.nn.parallel.DistributedDataParallel
        model = wrap(lib.nn.Linear(1, 1), find_unused_parameters=find_unused)
        found = model._get_ddp_logging_data()
        return [found.get(name) for name in names]

    assert logged(tlc) == logged(torch)


def test_normalisation_over_processes():
    def script(lib):
        lib.manual_seed(0)
        nn = lib.nn
        model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3, momentum=0.3), nn.ModuleList())
        nn.init.normal_(model[1].weight)
        model[1].eval()
        synced = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        flags = synced is model, synced[1].training, synced[1].weight is model[1].weight
        out = model[:2].train()(lib.randn(2, 2, 5))
        numbers = out.round(decimals=4), synced[1].running_mean.round(decimals=4)
        return flags, repr(synced), list(synced.state_dict()), numbers

    both(script)
    both(lambda lib: lib.nn.SyncBatchNorm(2)(lib.ones(2)))


def test_a_module_without_parameters_needs_no_wrapper(world):
    both(lambda lib: lib.nn.parallel.DistributedDataParallel(lib.nn.ReLU()))


def test_checkpointed_modules():
    def script(lib):
        name = f"{lib.__name__}.distributed.algorithms._checkpoint.checkpoint_wrapper"
        module = __import__(name, fromlist=["x"])
        lib.manual_seed(0)
        model = lib.nn.Sequential(
            lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Dropout(0.5))
        )
        module.apply_activation_checkpointing(
            model, check_fn=lambda m: isinstance(m, lib.nn.Sequential)
        )
        keys = list(model.state_dict())
        model.load_state_dict(model.state_dict())
        names = [name for name, _ in model[1].named_parameters()]
        out = model(lib.ones(2, 2)).sum()  # of four: both add in one order
        out.backward()
        return (
            keys,
            names,
            out,
            model[1][0].weight.grad,
            isinstance(model[1], module.CheckpointWrapper),
        )

    both(script)


def test_zero_redundancy_optimizer(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it compiles with what is deprecated
        from torch.distributed.optim import ZeroRedundancyOptimizer as Theirs

    from tensorflow_lite_clone.distributed.optim import ZeroRedundancyOptimizer as Ours

    def script(lib):
        lib.manual_seed(0)
        model = lib.nn.Linear(2, 1)
        kind = Ours if lib is tlc else Theirs
        optimizer = kind(model.parameters(), optimizer_class=lib.optim.Adam, lr=0.1)
        schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(3):
            optimizer.zero_grad()
            model(lib.ones(1, 2)).sum().backward()
            optimizer.step()
            schedule.step()
        optimizer.consolidate_state_dict()
        state = optimizer.state_dict()
        return model.weight, optimizer.param_groups[0]["lr"], state["param_groups"][0]["lr"]

    both(script)


PROGRAM = """
import os, sys
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler

@record
def main():
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend="gloo")
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))
    data = torch.utils.data.TensorDataset(torch.randn(8, 2))
    loader = torch.utils.data.DataLoader(data, 2, sampler=DistributedSampler(data))
    for (x,) in loader:
        loss = model(x).sum()
        loss.backward()
        dist.all_reduce(loss.detach())
        print(rank, world_size, os.environ["LOCAL_RANK"], round(loss.item(), 4), sys.argv[1:])
    dist.destroy_process_group()

main()
"""


def test_launchers(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = ("--nproc_per_node=1", "--master_port=29517", program, "--epochs", "2")
    theirs = printed(
        "-W", "ignore", "-m", "torch.distributed.run", *options, cwd=tmp_path, here=False
    )
    assert theirs.count("\n") == 4
    for launcher in ("run", "launch"):
        assert printed("-m", f"torch.distributed.{launcher}", *options, cwd=tmp_path) == theirs
