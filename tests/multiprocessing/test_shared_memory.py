"""Tensors that several processes see."""

from __future__ import annotations

import os
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing as their_processes
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.multiprocessing as processes
from tests.multiprocessing import work

# Python 3.12 and later warn of every fork beside threads (those of torch, here).
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")

LIBRARIES = (tlc, torch)


def kinds(lib):
    x = lib.arange(12.0, device="cpu").reshape(3, 4)
    yield x
    yield x.t()[1:]
    yield lib.zeros(2, 3, 4, 5, device="cpu").to(memory_format=lib.channels_last)
    yield lib.ones(3, dtype=lib.bfloat16, device="cpu")
    yield lib.zeros(0, device="cpu")
    yield lib.tensor(1.5, device="cpu").expand(3)


def test_as_in_torch():
    seen = []
    for lib in LIBRARIES:
        rows = []
        for x in kinds(lib):
            before = x.tolist()
            same = x.share_memory_() is x
            parts = x.is_shared(), x.detach().is_shared(), x.clone().is_shared()
            rows.append((same, parts, x.tolist() == before, x.stride(), x.storage_offset()))
        seen.append(rows)
    assert seen[0] == seen[1]


def test_without_memfd(monkeypatch):
    """Systems other than Linux share a file that has no name any more."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    x = tlc.arange(3.0, device="cpu").share_memory_()
    again = pickle.loads(ForkingPickler.dumps(x))
    x += 1
    assert x.is_shared() and again.tolist() == [1, 2, 3]


def test_a_view_takes_its_memory_along():
    x = tlc.arange(6.0, device="cpu")
    part = x[2:4]
    part.share_memory_()
    part.fill_(9)
    assert x.tolist() == [0, 1, 9, 9, 4, 5]
    assert x.is_shared()
    assert x.untyped_storage().is_shared()


def test_a_module_stays_the_same_parameters():
    layer = tlc.nn.BatchNorm1d(2, device="cpu")
    weight, mean = layer.weight, layer.running_mean
    layer(tlc.ones(3, 2, device="cpu")).sum().backward()
    assert layer.share_memory() is layer
    assert layer.weight is weight
    assert all(t.is_shared() for t in (weight, weight.grad, layer.running_mean))
    with tlc.no_grad():
        weight.fill_(3)
    assert layer.weight.tolist() == [3, 3]
    assert mean is layer.running_mean


@parameterized.expand(["fork", "spawn"])
def test_training_in_place(method):
    """Two processes work on the same parameters (Hogwild): what they learn is seen here."""
    tlc.manual_seed(0)
    model = tlc.nn.Linear(3, 2, device="cpu").share_memory()
    bias = model.bias.tolist()
    context = processes.get_context(method)
    ready = context.Queue()
    workers = [context.Process(target=work.train, args=(i, model, ready)) for i in range(2)]
    for worker in workers:
        worker.start()
    assert sorted(ready.get(timeout=30) for _ in workers) == [0, 1]
    for worker in workers:
        worker.join()
    assert model.bias.tolist() != bias
    assert tlc.allclose(model(tlc.ones(1, 3, device="cpu")), tlc.tensor([2.0, 2.0]), atol=1e-2)


@parameterized.expand(["fork", "spawn"])
def test_through_queues(method):
    context = processes.get_context(method)
    requests, answers = context.SimpleQueue(), context.SimpleQueue()
    worker = context.Process(target=work.answer, args=(requests, answers))
    worker.start()
    descriptors = []
    for shared in (False, True, True, True):
        x = tlc.nn.Parameter(tlc.zeros(2, 3, device="cpu"))
        if shared:
            x.share_memory_()
        requests.put(x)
        assert answers.get() == (shared, "Parameter", True)
        assert answers.get().tolist() == [[1, 1, 1], [1, 1, 1]]
        assert x.tolist() == [[float(shared)] * 3] * 2
        descriptors.append(len(os.listdir("/dev/fd")))
    assert descriptors[1:] == descriptors[1:2] * 3  # none are left behind
    requests.put(None)
    worker.join()
    assert worker.exitcode == 0


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_batches_collated_into_shared_storages():
    """What older programs' `collate_fn` do in a worker."""

    def collate(lib, storage):
        batch = [lib.ones(2, 3, device="cpu"), lib.zeros(2, 3, device="cpu")]
        first = batch[0]
        made = storage(first)
        out = first.new(made).resize_(len(batch), *first.size())
        done = lib.stack(batch, 0, out=out)
        return done.tolist(), done is out, out.is_shared(), type(made).__name__, made.is_shared()

    for storage in (
        lambda x: x._typed_storage()._new_shared(12),
        lambda x: x._typed_storage()._new_shared(12, device=x.device),
        lambda x: x.untyped_storage()._new_shared(48),
    ):
        mine, other = (collate(lib, storage) for lib in LIBRARIES)
        assert mine == other


def test_a_graph_stays_here():
    texts = []
    for lib in LIBRARIES:
        x = lib.ones(2, requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="Cowardly") as caught:
            ForkingPickler.dumps(x)
        texts.append(str(caught.value))
        assert pickle.loads(pickle.dumps(x.detach())).tolist() == [2, 2]
    assert texts[0] == texts[1]


def test_sharing_strategies():
    for module in (processes, their_processes):
        assert module.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
        assert module.get_sharing_strategy() == "file_descriptor"
        module.set_sharing_strategy("file_system")
        assert module.get_sharing_strategy() == "file_system"
        module.set_sharing_strategy("file_descriptor")
        with pytest.raises(AssertionError, match="invalid sharing strategy 'x'"):
            module.set_sharing_strategy("x")
