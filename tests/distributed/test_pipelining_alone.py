"""Pipelines of one process: what is cut and joined, what is refused, and how errors end all."""

from __future__ import annotations

from datetime import timedelta

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import multiprocessing, nn
from tensorflow_lite_clone.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from tensorflow_lite_clone.distributed.pipelining.microbatch import TensorChunkSpec, _Replicate
from tests.distributed.process_groups import world

mse = nn.functional.mse_loss
x, y = torch.ones(8, 3), torch.ones(8, 2)


@pytest.fixture
def alone():
    """A group of one process."""
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    dist.destroy_process_group()


class Call(nn.Module):
    """A module of a function."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def stage(index=0, count=1, module=None, **options):
    return PipelineStage(module or nn.Linear(3, 2), index, count, "cpu", **options)


def gpipe(count=4, loss=mse, **options):
    return ScheduleGPipe(stage(**options), count, loss)


def pair(first, second=None):
    stages = [stage(0, 2, Call(first)), stage(1, 2, second and Call(second))]
    return ScheduleInterleaved1F1B(stages, 2, mse)


REFUSED = {
    "a stage too many": (lambda: stage(1), ValueError, "Stage index 1 is out of range of 1"),
    "a negative stage": (lambda: stage(-1), ValueError, "Stage index -1 is out of range of 1"),
    "no microbatches": (lambda: Schedule1F1B(stage(), 0), ValueError, r"microbatches \(0\) must"),
    "fewer than stages": (
        lambda: Schedule1F1B(stage(0, 2), 1), ValueError,
        r"microbatches \(1\) must be greater than or equal to 2",
    ),
    "one stage of two": (
        lambda: ScheduleGPipe(stage(0, 2), 2), ValueError, "got 2 stages for 1 processes",
    ),
    "no stages": (lambda: ScheduleInterleaved1F1B([], 2), ValueError, "got 0 stages here"),
    "a stage twice": (
        lambda: ScheduleInterleaved1F1B([stage(0, 2), stage(0, 2)], 2), ValueError,
        r"runs the stages \[0, 1\], got \[0\]",
    ),
    "losses that are no list": (
        lambda: gpipe().step(x, target=y, losses=3), TypeError, "losses must be a list but got",
    ),
    "no target": (
        lambda: gpipe().step(x), RuntimeError, "loss_fn and target required for last stage",
    ),
    "too few rows": (
        lambda: gpipe().step(x[:3], target=y), ValueError, "Expecting 4 microbatches but got 3",
    ),
    "too few targets": (
        lambda: gpipe().step(x, target=y[:3]), ValueError, "Expecting 4 microbatches but got 3",
    ),
    "a dictionary to the next stage": (
        lambda: pair(lambda x: {"a": x}).step(x, target=y), RuntimeError, "Stage 0: .* not dict",
    ),
    "other outputs than were said": (
        lambda: gpipe(output_args=torch.ones(4, 2)).step(x, target=y), RuntimeError,
        r"Stage 0 output: expected \[Tensor\(\(4, 2\).*got \[Tensor\(\(2, 2\)",
    ),
    "other inputs than were said": (
        lambda: ScheduleInterleaved1F1B(
            [stage(0, 2, nn.Identity()), stage(1, 2, input_args=(torch.ones(4, 4),))], 2, mse
        ).step(x, target=y),
        RuntimeError, r"Stage 1 input: expected \[Tensor\(\(4, 4\).*got \[Tensor\(\(4, 3\)",
    ),
    "an error of the loss": (
        lambda: gpipe(loss=lambda o, t: 1 / 0).step(x, target=y), ZeroDivisionError, "division",
    ),
    "a loss that is no number": (
        lambda: gpipe(loss=lambda o, t: o).step(x, target=y), RuntimeError, "scalar outputs",
    ),
    "arguments too few": (lambda: gpipe().step(target=y), TypeError, "forward"),
    "a builder": (lambda: stage(dw_builder=print), NotImplementedError, "dw_builder"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("alone")
def test_refused(case):
    script, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        script()


@pytest.mark.usefixtures("alone")
def test_chunk_specs_and_what_a_loss_function_is_given():
    """Arguments are cut as said, outputs joined so, and the loss gets outputs of any structure."""
    seen = []

    def forward(rows, columns, both, *, scale):
        seen.append((rows.tolist(), columns.tolist(), both, scale.tolist()))
        return {"product": rows @ columns * scale, "name": both}

    def loss(output, target, *, power):
        return ((output["product"] - target) ** power).sum()

    schedule = ScheduleGPipe(
        stage(module=Call(forward)), 2, loss,
        args_chunk_spec=(TensorChunkSpec(0), TensorChunkSpec(1), _Replicate()),
        kwargs_chunk_spec={"scale": TensorChunkSpec(1)},
        output_merge_spec={"product": TensorChunkSpec(1), "name": _Replicate()},
    )  # fmt: skip
    rows = torch.tensor([[1.0], [2.0]], requires_grad=True)
    columns, scale = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 10.0]])
    losses: list = []
    output = schedule.step(
        rows, columns, "all", scale=scale, target=torch.zeros(2, 1), losses=losses,
        loss_kwargs={"power": 2},
    )  # fmt: skip
    assert seen == [
        ([[1.0]], [[3.0]], "all", [[1.0]]),
        ([[2.0]], [[4.0]], "all", [[10.0]]),
    ]
    assert output["product"].tolist() == [[3.0, 80.0]] and output["name"] == "all"
    assert [value.item() for value in losses] == [9.0, 6400.0]
    assert rows.grad.tolist() == [[9.0], [3200.0]]  # 2 * 3 * 3 / 2 and 2 * 80 * 40 / 2


@pytest.mark.usefixtures("alone")
def test_an_error_names_its_stage():
    schedule = pair(lambda x: x, lambda x: x @ torch.ones(4, 4))
    with pytest.raises(RuntimeError) as caught:
        schedule.step(x, target=y)
    layer, stage = caught.value.__notes__
    assert layer == "In Call(), called with torch.float32 [4, 3]"
    assert stage == "In the forward of microbatch 0 in pipeline stage 1."
    ones = [torch.ones(2, 2, requires_grad=True)] * 2
    schedule = gpipe(2, lambda output, target: (output - target).sum(), module=Call(lambda x: x))
    with pytest.raises(RuntimeError, match="does not require grad") as caught:
        schedule.step(ones[0].detach(), target=ones[1].detach())
    assert caught.value.__notes__ == ["In the backward of microbatch 0 in pipeline stage 0."]
    schedule.eval(ones[0].detach())


def too_many_processes(rank, size):
    PipelineStage(nn.Linear(3, 2), 0, size - 1, "cpu")


def test_fewer_stages_than_processes():
    with pytest.raises(AssertionError, match="group size 2 cannot be larger than .* stages 1"):
        world(2).run(too_many_processes)


def other_shapes(rank, size):
    group = dist.new_group(timeout=timedelta(seconds=2))
    part = nn.Linear(3, 3)
    schedule = ScheduleGPipe(PipelineStage(part, rank, size, "cpu", group=group), 2, mse)
    ones = torch.ones(8, 3)
    for rows in (8, 8, 6):
        schedule.step(*[ones[:rows]] * (rank == 0), target=ones[:rows])


def test_shapes_that_change_are_named():
    (_, first), (_, second) = world(2).outcomes(other_shapes)
    assert (
        "PipeliningMetadataError: Stage 0: the outputs of microbatch 0 are [Tensor((3, 3), "
        "torch.float32, requires_grad=True)], and in the first step they were [Tensor((4, 3), "
        "torch.float32, requires_grad=True)]"
    ) in first
    assert "recv timed out: nothing came from rank 0" in second
    assert "The pipeline failed in process 0: tensorflow_lite_clone" in second


def run_into_an_error(rank, meeting):
    dist.init_process_group("gloo", meeting, rank=rank, world_size=2)
    parts = [nn.Linear(3, 3), Call(lambda x: x @ torch.ones(4, 4))]
    schedule = Schedule1F1B(PipelineStage(parts[rank], rank, 2, "cpu"), 4, mse)
    schedule.step(*[x] * (rank == 0), target=y)


def test_a_stage_that_raises_ends_all(tmp_path):
    with pytest.raises(multiprocessing.ProcessRaisedException) as caught:
        multiprocessing.spawn(run_into_an_error, (f"file://{tmp_path / 'store'}",), 2)
    assert "In the forward of microbatch 0 in pipeline stage 1." in str(caught.value)
