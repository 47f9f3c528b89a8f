"""What memory sharded modules take, and that it is given back; steps on GPUs."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.fsdp import fully_shard
from tests.distributed.process_groups import HERE, gpu_world, world
from tests.distributed.sharded_models import batch, cut, model

SIZES = (2, 4)


def lives(rank, size, views):
    """Whole parameters live while their module calculates, and no longer."""
    torch.manual_seed(0)
    layers = nn.Sequential(*[Weighted(views) for _ in range(4)]).to(HERE)
    for layer in layers:
        fully_shard(layer, reshard_after_forward=True)
    fully_shard(layers)
    seen: list[tuple[str, int]] = []
    arrays: list[Any] = []

    def alive():
        return sum(reference() is not None for reference in arrays)

    def note(module, when):
        arrays.append(weakref.ref(owner(module.weight._storage.array)))
        seen.append((when, alive()))

    for layer in layers:
        layer.register_forward_pre_hook(lambda module, args: note(module, "forward"))
        layer.register_forward_hook(
            lambda module, args, out: out.register_hook(lambda g: note(module, "backward")) and None
        )
    out = layers(torch.ones(2, 16, device=HERE))
    seen.append(("between", alive()))
    out.sum().backward()
    seen.append(("after", alive()))
    return seen


def owner(array):
    """The array whose memory another one is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Weighted(nn.Module):
    """A product with a weight, or with a view of it."""

    def __init__(self, views: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16) * 0.1)
        self.views = views

    def forward(self, x: Any) -> Any:
        if self.views:
            a, b = self.weight.t().chunk(2, 1)
            return torch.tanh(torch.cat([x @ a, x @ b.contiguous()], 1))
        return torch.tanh(nn.functional.linear(x, self.weight))


@pytest.mark.parametrize("views", [False, True])
def test_whole_parameters_die_with_their_modules_forward(views):
    if HERE == "cuda":
        pytest.skip("arrays of a GPU's pool have no weak references")
    for seen in world(2).run(lives, views):
        steps = [("forward", 1)] * 4 + [("between", 0)] + [("backward", 1)] * 4 + [("after", 0)]
        assert seen == steps


LAYERS, FEATURES = 8, 64


def footprint(rank, size):
    """The most bytes in arrays of tensors at any op of a step, and after it."""
    start = held()
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(FEATURES, FEATURES, bias=False) for _ in range(LAYERS)])
    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.ones(1, FEATURES)
    net(x).sum().backward()  # states and tables that last are there from now on
    optimizer.step()
    optimizer.zero_grad()
    before = held()
    most = [0]
    handles = [
        p.register_post_accumulate_grad_hook(lambda _: most.append(held()))
        for p in net.parameters()
    ]
    net(x).sum().backward()
    optimizer.step()
    for handle in handles:
        handle.remove()
    return before - start, max(most) - start, held() - start


def held():
    """The bytes in arrays of tensors in host memory; what other tests left goes before."""
    gc.collect()
    memory = {}
    for found in gc.get_objects():
        if isinstance(found, torch.Tensor):
            array = (found._storage.root or found._storage).array
            if isinstance(array, np.ndarray):
                memory[id(owner(array))] = owner(array).nbytes
    return sum(memory.values())


def test_memory_is_a_share_and_one_module():
    if HERE == "cuda":
        pytest.skip("test_memory_on_gpus measures the pool")
    matrix = 4 * FEATURES * FEATURES
    for size in SIZES:
        share = LAYERS * matrix / size
        for before, most, after in world(size).run(footprint):
            # what the group's thread was given last may come or go: one matrix
            assert abs(before - 3 * share) <= 1.1 * matrix  # parameters and two moments
            # gradients besides; of one module the parameters, gradients, and those to reduce
            assert most <= 4 * share + 3.1 * matrix
            assert abs(after - 4 * share) <= 1.1 * matrix


def peak(rank, size, layers, width):
    """The peak of a GPU's memory in a step, after two steps."""
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(layers)])
    net.to(HERE)
    for layer in net:
        fully_shard(layer, reshard_after_forward=True)
    fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.ones(1, width, device=HERE)
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


@pytest.mark.cuda
def test_memory_on_gpus():
    layers, width = 16, 1024
    matrix = 4 * width * width
    few, many = [gpu_world(2).run(peak, count, width) for count in (layers, 2 * layers)]
    for less, more in zip(few, many, strict=True):
        # a layer's share is half of its rows, gradients and two moments
        assert abs(more - less - 4 * layers * matrix / 2) <= matrix
        # whatever their number, of some modules the whole, its gradients, and buffers of both
        assert less <= 4 * layers * matrix / 2 + 14 * matrix


def captured(rank, size):
    """Losses of steps that are replayed, and of the same steps called one by one."""
    found = []
    for replayed in (True, False):
        net = cut(model(dtype=torch.float32), reshard_after_forward=True)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        x, y = batch(0, rank, size)

        def step(net=net, optimizer=optimizer, x=x, y=y):
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            losses = [step().item() for _ in range(3)]
        torch.cuda.current_stream().wait_stream(side)
        if replayed:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                loss = step()
            for _ in range(3):
                graph.replay()
                losses.append(loss.item())
        else:
            losses += [step().item() for _ in range(3)]
        found.append(losses)
    return found


@pytest.mark.cuda
def test_a_captured_step():
    for replayed, called in gpu_world(2).run(captured):
        np.testing.assert_allclose(replayed, called, rtol=1e-5)
