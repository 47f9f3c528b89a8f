"""What the programs of the study share: options, network, epochs, measurements."""

import argparse
import itertools
import json
import math
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tensorflow_lite_clone as torch
from examples.cifar import data, loading
from examples.cifar.models import Norm, StudyNet
from examples.cifar.step import Captured, Step, autocast, training_step
from examples.cifar.table import table
from examples.cifar.train import positive, progress
from examples.world import World

nn = torch.nn
MOMENTUM = 0.9
TEST_BATCH = 500  # of all processes together
NORMS: dict[str, Norm] = {"batch": nn.BatchNorm2d, "none": lambda channels: nn.Identity()}


@dataclass
class Result:
    """What a program measured: of each epoch the seconds of training and the share of test pictures
    that are named rightly, of each step the loss, of each GPU the peak memory in bytes."""

    program: str
    library: str
    machine: str
    processes: int
    options: dict[str, str]
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds_in_all: float = 0.0
    peak_memory: list[float] = field(default_factory=list)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all programs have."""
    command = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = command.add_argument
    add("--data", type=Path, help=f"default: the variable {data.PLACE}")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--epochs", type=positive, default=5)
    add("--batch_size", type=positive, default=256, help="of all processes together")
    add("--lr", type=float, default=0.04)
    add("--decay", action="store_true", help="let the learning rate fall to nothing, step by step")
    add("--augment", action="store_true", help="move and mirror the training pictures")
    add("--width", type=positive, default=64, help="channels of the network's first layer")
    add("--norm", choices=sorted(NORMS), default="batch", help="the layers after convolutions")
    add("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the forward pass")
    add("--workers", type=int, default=2, help="that read pictures for each process")
    add("--seed", type=int, default=0)
    add("--max_steps", type=positive, help="stop training after so many steps")
    add("--truncate_train", type=positive, help="so many training pictures")
    add("--truncate_test", type=positive, help="so many test pictures")
    # PyTorch's launcher stumbles over --log, which begins several of its own options
    add("--log", "--json", type=Path, help="JSON file for what was measured")
    return command


def with_graph(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds the option of programs whose processes have one GPU each."""
    command.add_argument("--graph", action="store_true", help="a training step is one CUDA graph")
    return command


def chosen(command: argparse.ArgumentParser) -> argparse.Namespace:
    """The options that were given; ends the program where there is no data or no GPU."""
    options = command.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        command.error("--device cuda: there is no GPU, or no library that uses it")
    if getattr(options, "graph", False) and options.device != "cuda":
        command.error("--graph needs --device cuda")
    try:
        options.data = data.folder(options.data)
    except FileNotFoundError as error:
        command.error(str(error))
    return options


def network(options: argparse.Namespace) -> StudyNet:
    """The initial network, on the CPU: the same in every process and program for a seed."""
    torch.manual_seed(options.seed)
    model = StudyNet(NORMS[options.norm], options.width)
    if options.device == "cuda":
        model.to(memory_format=torch.channels_last)  # as the pictures lie
    return model


def one_epoch(
    model: nn.Module,
    step: Step,
    train: loading.Training,
    world: World,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    steps: int | None,
    name: str,
) -> list[float]:
    """The losses of at most so many steps, each the mean over the processes."""
    model.train()
    losses = []
    batches = progress(train, name) if world.speaks else train
    for images, labels in itertools.islice(batches, steps):
        losses.append(step(images, labels))
        schedule.step()
    return (world.sum(torch.stack(losses)) / world.size).tolist()


def accuracy(model: nn.Module, test: loading.Loader, world: World, dtype: torch.dtype) -> float:
    """The share of pictures that the model names rightly; each process looks at its part."""
    model.eval()
    right = []
    with torch.no_grad(), autocast(world.device, dtype):
        for images, labels in test:
            mine = images.tensor_split(world.size)[world.rank]
            names = labels.tensor_split(world.size)[world.rank]
            right.append((model(mine).argmax(1) == names).sum())
    return world.sum(torch.stack(right).sum()).item() / test.count


def run(
    program: str,
    model: nn.Module,
    world: World,
    options: argparse.Namespace,
    labels_to: torch.device | None = None,
) -> Result:
    """Train and test `model`, which lies where it is to be; print and log what was measured.

    Pictures go to the world's device, labels to `labels_to`, where the model's answers are (by
    default the same).
    """
    begin = time.perf_counter()
    train, test = loaders(world, options, labels_to)
    gpus = [d for d in dict.fromkeys((world.device, test.labels_to)) if d.type == "cuda"]
    for gpu in gpus:
        torch.cuda.reset_peak_memory_stats(gpu)
    dtype = getattr(torch, options.dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 0.0 if options.decay else 1.0, options.epochs * len(train)
    )
    step = training_step(model, optimizer, world.device, dtype)
    if getattr(options, "graph", False):
        step = Captured(step, world.device)
    result = Result(
        program,
        f"{torch.__name__} {torch.__version__}",
        torch.cuda.get_device_name(gpus[0]) if gpus else platform.machine(),
        world.size,
        {name: str(value) for name, value in vars(options).items()},
    )
    left = options.max_steps
    for epoch in range(1, options.epochs + 1):
        since = time.perf_counter()
        train.set_epoch(epoch)
        name = f"epoch {epoch}/{options.epochs}"
        losses = one_epoch(model, step, train, world, schedule, left, name)
        for gpu in gpus:
            torch.cuda.synchronize(gpu)
        result.losses += losses
        result.seconds.append(time.perf_counter() - since)
        result.accuracies.append(accuracy(model, test, world, dtype))
        mean = sum(losses) / len(losses)
        if world.speaks:
            print(
                f"epoch {epoch:2d}  loss {mean:.4f}  test accuracy {result.accuracies[-1]:.2%}  "
                f"{result.seconds[-1]:.1f} s",
                flush=True,
            )
        if not math.isfinite(mean):
            raise SystemExit(f"the loss is {mean}: try a smaller --lr than {options.lr}")
        if left is not None:
            left -= len(losses)
            if not left:
                break
    result.seconds_in_all = time.perf_counter() - begin
    for gpu in gpus:
        result.peak_memory += world.each(torch.cuda.max_memory_allocated(gpu))
    if world.speaks:
        print(table([asdict(result)]))
        if options.log:
            options.log.write_text(json.dumps(asdict(result), indent=1) + "\n")
    return result


def loaders(
    world: World, options: argparse.Namespace, labels_to: torch.device | None
) -> tuple[loading.Training, loading.Loader]:
    """What is trained on, this process's part, and what is tested on, all of it."""
    train = loading.read(options.data, True, options.truncate_train, options.augment)
    test = loading.read(options.data, False, options.truncate_test)
    return (
        loading.Training(
            train,
            options.batch_size,
            world,
            seed=options.seed,
            workers=options.workers,
            labels_to=labels_to,
        ),
        loading.Loader(test, world.device, labels_to, batch_size=TEST_BATCH),
    )
