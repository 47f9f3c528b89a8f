"""Pipelines of several processes compute what one process computes."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from tests.distributed.worlds import World, gpu_world, world
from tests.device import DEVICE

SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
SEVERAL = {"interleaved": ScheduleInterleaved1F1B, "looped": ScheduleLoopedBFS}


def processes(size: int) -> World:
    return gpu_world(size) if DEVICE == "cuda" else world(size)


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
    return f"cuda:{rank}" if DEVICE == "cuda" else "cpu"


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
        f"{index}.{name}": p.grad.cpu().numpy()
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


@pytest.mark.parametrize("microbatches", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("kind", SINGLE)
def test_steps_are_those_of_one_process(kind, size, microbatches):
    if kind == "1f1b" and microbatches < size:
        message = f"Number of microbatches \\({microbatches}\\)"
        with pytest.raises(AssertionError, match=message):
            processes(size).run(train, kind, microbatches, 8, 1)
        return
    found = processes(size).run(train, kind, microbatches, 8, 3)
    expect_equal(found, reference(size, microbatches, 8, 3))
