"""Pipelines of several processes compute what one process computes."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.fsdp import fully_shard
from tensorflow_lite_clone.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from tests.distributed.process_groups import HERE, gpu_world, world_here

SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
SEVERAL = {"interleaved": ScheduleInterleaved1F1B, "looped": ScheduleLoopedBFS}


class Layer(nn.Module):
    """Takes a tensor, counts that want no gradient, and one that the model's first stage makes;
    gives them on. Keyword arguments change the result."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x, counts=None, extra=None, *, factor=None):
        y = torch.tanh(self.linear(x)) * self.scale
        if factor is not None:
            y = y * factor
        if counts is None:
            return y, torch.arange(len(x), device=x.device), x.sum(1)
        return y + counts[:, None].to(y.dtype) / 10 + extra[:, None], counts + 1, extra * 2


class Last(Layer):
    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)[0]


class Model(nn.Module):
    """All stages in one process."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.stages = nn.ModuleList([Layer() for _ in range(stages - 1)] + [Last()])

    def forward(self, x, **kwargs):
        values = (x,)
        for stage in self.stages[:-1]:
            values = stage(*values, **kwargs)
        return self.stages[-1](*values, **kwargs)


def device_of(rank: int) -> str:
    return f"cuda:{rank}" if HERE == "cuda" else "cpu"


def loss_fn(output, target):
    return nn.functional.mse_loss(output, target)


def data(rows: int, device: str):
    torch.manual_seed(5)
    x, y, factor = torch.randn(rows, 6), torch.randn(rows, 6), torch.rand(rows, 1)
    return [value.to(device) for value in (x, y, factor)]


def own_stages(rank, size, model, group=None):
    """The stages of this rank, on its device."""
    return [
        PipelineStage(
            stage.to(device_of(rank)), index, len(model.stages), device_of(rank), group=group
        )
        for index, stage in enumerate(model.stages)
        if index % size == rank
    ]


def gradients(model, indices):
    return {
        f"{index}.{name}": p.grad.cpu().numpy().copy()
        for index in indices
        for name, p in model.stages[index].named_parameters()
    }


def made(rank, size, kind, microbatches, per_rank=1, **options):
    model = Model(size * per_rank)
    stages = own_stages(rank, size, model)
    if kind in SINGLE:
        return model, SINGLE[kind](stages[0], microbatches, loss_fn, **options)
    return model, SEVERAL[kind](stages, microbatches, loss_fn, **options)


def train(rank, size, kind, microbatches, rows, steps, per_rank=1, scale_grads=True):
    """Losses and outputs where the last stage is, gradients and final parameters of all stages."""
    model, schedule = made(rank, size, kind, microbatches, per_rank, scale_grads=scale_grads)
    indices = range(rank, size * per_rank, size)
    optimizer = torch.optim.SGD(
        [p for index in indices for p in model.stages[index].parameters()], lr=0.1
    )
    x, y, factor = data(rows, device_of(rank))
    found = []
    for _ in range(steps):
        losses: list = []
        optimizer.zero_grad()
        args = (x,) if rank == 0 else ()
        target = y if rank == size - 1 else None
        output = schedule.step(*args, target=target, losses=losses, factor=factor)
        found.append((
            None if output is None else output.detach().cpu().numpy(),
            [loss.item() for loss in losses],
            gradients(model, indices),
        ))  # fmt: skip
        optimizer.step()
    return found


def reference(stages, microbatches, rows, steps, scale_grads=True):
    """What `train` should find, in one process: micro-batches one after the other."""
    model = Model(stages)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y, factor = [value.tensor_split(microbatches) for value in data(rows, "cpu")]
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = [model(part, factor=f) for part, f in zip(x, factor, strict=True)]
        losses = [loss_fn(out, part) for out, part in zip(outputs, y, strict=True)]
        (sum(losses) / (microbatches if scale_grads else 1)).backward()
        found.append((
            torch.cat(outputs).detach().numpy(),
            [loss.item() for loss in losses],
            gradients(model, range(stages)),
        ))  # fmt: skip
        optimizer.step()
    return found


def expect_equal(ranks, expected):
    for step, (output, losses, wanted) in enumerate(expected):
        for rank, found in enumerate(ranks):
            last = rank == len(ranks) - 1
            if last:
                np.testing.assert_allclose(found[step][0], output, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(found[step][1], losses, rtol=1e-4)
            else:
                assert found[step][:2] == (None, [])
        merged = {name: g for found in ranks for name, g in found[step][2].items()}
        assert merged.keys() == wanted.keys()
        for name, gradient in wanted.items():
            np.testing.assert_allclose(
                merged[name], gradient, rtol=1e-4, atol=1e-6, err_msg=f"step {step}, {name}"
            )


@pytest.mark.parametrize(
    ("kind", "size", "microbatches"),
    [
        (kind, size, microbatches)
        for kind in SINGLE
        for size in (2, 4)
        for microbatches in (1, 2, 4, 8)
        if kind == "gpipe" or microbatches >= size  # else it is refused
    ],
)
def test_steps_are_those_of_one_process(kind, size, microbatches):
    found = world_here(size).run(train, kind, microbatches, 8, 3)
    expect_equal(found, reference(size, microbatches, 8, 3))


@pytest.mark.parametrize(("kind", "size"), [("interleaved", 2), ("interleaved", 4), ("looped", 2)])
def test_several_stages_in_each_process(kind, size):
    found = world_here(size).run(train, kind, 2 * size, 8, 2, 2)
    expect_equal(found, reference(2 * size, 2 * size, 8, 2))


@pytest.mark.parametrize("kind", SINGLE)
def test_a_batch_that_is_cut_unevenly(kind):
    found = world_here(2).run(train, kind, 4, 10, 2)
    expect_equal(found, reference(2, 4, 10, 2))


def test_gradients_may_be_sums():
    found = world_here(2).run(train, "1f1b", 4, 8, 1, 1, False)
    expect_equal(found, reference(2, 4, 8, 1, False))


def add_up(rank, size):
    """The gradients after one step, and after another one."""
    model, schedule = made(rank, size, "1f1b", 2)
    x, y, _ = data(4, device_of(rank))
    found = []
    for _ in range(2):
        schedule.step(*[x] * (rank == 0), target=y)
        found.append(gradients(model, [rank]))
    return found


def test_gradients_of_steps_add_up():
    for once, twice in world_here(2).run(add_up):
        for name, gradient in once.items():
            np.testing.assert_allclose(twice[name], 2 * gradient, rtol=1e-5)


def evaluate(rank, size, kind, per_rank, microbatches):
    model, schedule = made(rank, size, kind, microbatches, per_rank)
    x, y, factor = data(8, device_of(rank))
    args, losses = (x,) if rank == 0 else (), []
    with torch.no_grad():
        output = schedule.eval(*args, target=y, losses=losses, factor=factor)
    again = schedule.eval(*args, factor=factor)
    assert all(p.grad is None for p in model.parameters())
    schedule.step(*args, target=y, factor=factor, return_outputs=False)
    if rank < size - 1:
        return output, losses
    assert again.requires_grad and torch.equal(again, output)
    return output.cpu().numpy(), [loss.item() for loss in losses]


@pytest.mark.parametrize(("kind", "per_rank"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2)])
def test_evaluation(kind, per_rank):
    first, last = world_here(2).run(evaluate, kind, per_rank, 4)
    output, losses, _ = reference(2 * per_rank, 4, 8, 1)[0]
    assert first == (None, [])
    np.testing.assert_allclose(last[0], output, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last[1], losses, rtol=1e-4)


def without_loss(rank, size):
    model = Model(size)
    schedule = ScheduleGPipe(own_stages(rank, size, model)[0], 2)
    x, _, _ = data(8, device_of(rank))
    output = schedule.step(*[x] * (rank == 0))
    assert all(p.grad is None for p in model.parameters())
    return None if output is None else output.detach().cpu().numpy()


def test_without_a_loss_function_there_is_no_backward():
    first, last = world_here(2).run(without_loss)
    assert first is None
    model, parts = Model(2), data(8, "cpu")[0].tensor_split(2)
    expected = torch.cat([model(part) for part in parts]).detach().numpy()
    np.testing.assert_allclose(last, expected, rtol=1e-4, atol=1e-5)


def frozen(rank, size):
    """Three stages want no gradients of what comes in, or do not use it."""
    model = Model(size)
    model.stages[0].requires_grad_(False)
    schedule = Schedule1F1B(own_stages(rank, size, model)[0], size, loss_fn)
    x, y, _ = data(8, device_of(rank))
    for _ in range(2):
        schedule.step(*[x] * (rank == 0), target=y)
    return {name: p.grad is not None for name, p in model.stages[rank].named_parameters()}


def test_stages_without_gradients():
    found = world_here(2).run(frozen)
    assert [{*each.values()} for each in found] == [{False}, {True}]


class Pair(nn.Module):
    """Gives two values, of which the next stage uses the second."""

    def __init__(self) -> None:
        super().__init__()
        self.unused, self.used = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        return self.unused(x), self.used(x)


class Second(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, first, second):
        return self.linear(second)


def unused(rank, size):
    part = [Pair, Second][rank]().to(device_of(rank))
    schedule = Schedule1F1B(PipelineStage(part, rank, size, device_of(rank)), 2, loss_fn)
    x, y, _ = data(8, device_of(rank))
    for _ in range(2):
        schedule.step(*[x] * (rank == 0), target=y)
    return {name for name, p in part.named_parameters() if p.grad is not None}


def test_an_output_that_is_not_used_gets_no_gradient():
    assert world_here(2).run(unused) == [
        {"used.weight", "used.bias"},
        {"linear.weight", "linear.bias"},
    ]


def in_group(rank, size):
    """The last two processes are a pipeline of their own."""
    group = dist.new_group([size - 2, size - 1])
    if rank < size - 2:
        return None
    model = Model(2)
    index = rank - size + 2
    stage = PipelineStage(
        model.stages[index].to(device_of(rank)), index, 2, device_of(rank), group=group
    )
    x, y, _ = data(8, device_of(rank))
    losses: list = []
    ScheduleGPipe(stage, 2, loss_fn).step(*[x] * (index == 0), target=y, losses=losses)
    return [loss.item() for loss in losses]


def test_a_group_of_some_world_here():
    found = world_here(4).run(in_group)
    x, y, _ = [value.tensor_split(2) for value in data(8, "cpu")]
    expected = [loss_fn(Model(2)(part), out).item() for part, out in zip(x, y, strict=True)]
    assert found[:3] == [None, None, []]
    np.testing.assert_allclose(found[3], expected, rtol=1e-4)


def replicated(rank, size, kind, wrapper):
    """Two pipelines of two processes; those of the same stage share their gradients."""
    replica, index = divmod(rank, 2)
    mesh = dist.init_device_mesh(HERE, (2, 2), mesh_dim_names=("replicas", "stages"))
    part = Model(2).stages[index].to(device_of(rank))
    if wrapper == "replicate":
        part = nn.parallel.DistributedDataParallel(part, process_group=mesh.get_group("replicas"))
    else:
        fully_shard(part, mesh=mesh["replicas"])
    stage = PipelineStage(part, index, 2, device_of(rank), group=mesh.get_group("stages"))
    schedule = SINGLE[kind](stage, 3, loss_fn)
    optimizer = torch.optim.SGD(part.parameters(), lr=0.0)
    x, y, _ = [value.chunk(2)[replica] for value in data(12, device_of(rank))]
    for _ in range(2):
        schedule.eval(*[x] * (index == 0))  # has no part in it
        optimizer.zero_grad()
        schedule.step(*[x] * (index == 0), target=y)
    found = {}
    for name, parameter in part.named_parameters():
        gradient = parameter.grad
        gradient = gradient if wrapper == "replicate" else gradient.full_tensor()
        found[f"{index}.{name.removeprefix('module.')}"] = gradient.cpu().numpy().copy()
    return found


@pytest.mark.parametrize("wrapper", ["replicate", "shard"])
@pytest.mark.parametrize("kind", SINGLE)
def test_stages_that_share_gradients_with_others(kind, wrapper):
    found = world_here(4).run(replicated, kind, wrapper)
    model = Model(2)
    x, y, _ = [value.tensor_split(6) for value in data(12, "cpu")]
    losses = [loss_fn(model(part), out) for part, out in zip(x, y, strict=True)]
    (sum(losses) / 6).backward()
    expected = gradients(model, range(2))
    assert {name for each in found for name in each} == {*expected}
    for each in found:
        for name, gradient in each.items():
            np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-6)


def most_alive(rank, size, kind, microbatches):
    """How many micro-batches' activations are alive at a time, after the first step."""
    alive: weakref.WeakSet = weakref.WeakSet()
    counts = []

    class Noting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            saved = x.clone()
            alive.add(saved)
            ctx.saved = saved
            counts.append(len(alive))
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * 1

    class Part(nn.Linear):
        def forward(self, x):
            return Noting.apply(super().forward(x))

    stage = PipelineStage(Part(6, 6).to(device_of(rank)), rank, size, device_of(rank))
    schedule = SINGLE[kind](stage, microbatches, loss_fn)
    x, y, _ = data(16, device_of(rank))
    for _ in range(2):
        counts.clear()
        schedule.step(*[x] * (rank == 0), target=y, return_outputs=False)
    return max(counts)


def test_activations_that_are_alive():
    assert world_here(4).run(most_alive, "gpipe", 8) == [8, 8, 8, 8]
    assert world_here(4).run(most_alive, "1f1b", 8) == [4, 3, 2, 1]


def captured(rank, size, kind):
    """A step as a CUDA graph: its losses and gradients for another batch."""
    model, schedule = made(rank, size, kind, 4)
    x, y, _ = data(8, device_of(rank))
    losses: list = []

    def step():
        model.zero_grad()
        schedule.step(*[x] * (rank == 0), target=y, losses=losses, return_outputs=False)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    x.mul_(2)
    graph.replay()
    return [loss.item() for loss in losses], gradients(model, [rank])


@pytest.mark.parametrize("kind", SINGLE)
def test_a_step_as_a_cuda_graph(kind):
    first, last = gpu_world(2).run(captured, kind)
    model = Model(2)
    x, y, _ = [value.tensor_split(4) for value in data(8, "cpu")]
    losses = [loss_fn(model(2 * part), out) for part, out in zip(x, y, strict=True)]
    (sum(losses) / 4).backward()
    np.testing.assert_allclose(last[0], [loss.item() for loss in losses], rtol=1e-4)
    for name, gradient in gradients(model, range(2)).items():
        found = {**first[1], **last[1]}[name]
        np.testing.assert_allclose(found, gradient, rtol=1e-4, atol=1e-6)
