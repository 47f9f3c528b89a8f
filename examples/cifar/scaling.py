"""How many pictures a second 1, 2, 4, ... processes train on together.

    python -m tensorflow_lite_clone.distributed.run --nproc_per_node 2 \\
        -m examples.cifar.scaling --device cuda --graph --dtype bfloat16

Weak scaling: each process has a batch of --batch_size. Strong scaling: they share one. The pictures
are random and lie on the device, so that nothing but training is measured: the median time of a
step, of the slowest process. The efficiency is the pictures a second of each process, relative to
one process alone, whose model is not wrapped.
"""

import argparse
import json
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import tensorflow_lite_clone as torch
from examples.cifar.data import CLASSES, SIZE
from examples.cifar.ddp import copied
from examples.cifar.models import StudyNet
from examples.cifar.step import WARMUP, Captured, Step, training_step
from examples.cifar.study import MOMENTUM
from examples.cifar.train import positive
from examples.world import World, joined

dist = torch.distributed


@dataclass
class Measured:
    """A row: `batch` pictures in each process, the median step in milliseconds."""

    scaling: str
    processes: int
    batch: int
    milliseconds: float
    pictures_per_second: float
    efficiency: float


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = command.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--batch_size", type=positive, default=256)
    add("--width", type=positive, default=64, help="channels of the network's first layer")
    add("--steps", type=positive, default=100, help="that are measured")
    add("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the forward pass")
    add("--graph", action="store_true", help="a training step is one CUDA graph")
    add("--lr", type=float, default=0.04)
    add("--log", "--json", type=Path, help="JSON file for what was measured")
    return command


def step_times(step: Step, batch: int, device: torch.device, steps: int) -> list[float]:
    """Milliseconds of each of so many steps, on a GPU between the ends of two steps' work."""
    images = torch.randn(batch, 3, SIZE, SIZE, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, CLASSES, (batch,), device=device)
    for _ in range(2 * WARMUP if device.type == "cuda" else 1):
        step(images, labels)
    if device.type == "cuda":
        ends = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        ends[0].record()
        for end in ends[1:]:
            step(images, labels)
            end.record()
        torch.cuda.synchronize(device)
        return [begin.elapsed_time(end) for begin, end in zip(ends, ends[1:])]
    ends = [time.perf_counter()]
    for _ in range(steps):
        step(images, labels)
        ends.append(time.perf_counter())
    return [1e3 * (end - begin) for begin, end in zip(ends, ends[1:])]


def slowest(world: World, batch: int, options: argparse.Namespace, group: object) -> float:
    """The median milliseconds of a step of the processes in `group`, one of which this is."""
    torch.manual_seed(0)
    model = StudyNet(width=options.width).to(world.device)
    model.to(memory_format=torch.channels_last)
    if dist.get_world_size(group) > 1:
        model = copied(model, world, group)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=MOMENTUM)
    step = training_step(model, optimizer, world.device, getattr(torch, options.dtype))
    if options.graph:
        step = Captured(step, world.device)
    median = torch.tensor(
        statistics.median(step_times(step, batch, world.device, options.steps)),
        device=world.device,
    )
    dist.all_reduce(median, dist.ReduceOp.MAX, group)
    return median.item()


def measure(world: World, options: argparse.Namespace) -> list[Measured]:
    """The rows as rank 0 measures them, the first process of each group."""
    rows = []
    alone = 0.0
    size = 1
    while size <= world.size:
        group = dist.new_group(list(range(size)))
        batches = {"weak": options.batch_size, "strong": options.batch_size // size}
        for scaling, batch in batches.items():
            if world.rank < size and (size > 1 or scaling == "weak"):
                milliseconds = slowest(world, batch, options, group)
                rate = 1e3 * size * batch / milliseconds
                alone = alone or rate
                efficiency = rate / size / alone
                rows.append(Measured(scaling, size, batch, milliseconds, rate, efficiency))
            dist.barrier()
        size *= 2
    return rows


def main() -> None:
    command = parser()
    options = command.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        command.error("--device cuda: there is no GPU, or no library that uses it")
    if options.graph and options.device != "cuda":
        command.error("--graph needs --device cuda")
    with joined(options.device) as world:
        rows = measure(world, options)
        if not world.speaks:
            return
        library = f"{torch.__name__} {torch.__version__}"
        gpu = options.device == "cuda"
        machine = torch.cuda.get_device_name() if gpu else platform.machine()
        how = f"{options.dtype}, {'a CUDA graph' if options.graph else 'as it is'}"
        print(f"{library} on {machine}, {how}")
        for row in rows:
            print(
                f"{row.scaling:6}  {row.processes} processes x {row.batch:4} pictures  "
                f"{row.milliseconds:8.3f} ms  {row.pictures_per_second:10,.0f} pictures/s  "
                f"efficiency {row.efficiency:.1%}"
            )
        if options.log:
            content = {"library": library, "machine": machine, "dtype": options.dtype}
            content |= {"graph": options.graph, "rows": [asdict(row) for row in rows]}
            options.log.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
