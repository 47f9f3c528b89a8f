"""A network learns to name the photographs of CIFAR-10.

    python -m examples.cifar.train --model resnet20 --data DIR --device cuda --compile

DIR holds `cifar-10-batches-py`, the folder in the official archive. With PyTorch and torchvision
imported in place of this package it runs under PyTorch and prints the same losses.
"""

import argparse
import math
import time
from collections.abc import Iterable
from pathlib import Path

import tensorflow_lite_clone as torch
from examples.cifar import data
from examples.cifar.models import MODELS
from examples.cifar.step import autocast

nn = torch.nn


def positive(text: str) -> int:
    """A number of things."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, got {text!r}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--model", choices=sorted(MODELS), default="resnet20")
    options.add_argument("--data", type=Path, help=f"default: the variable {data.PLACE}")
    options.add_argument("--epochs", type=positive, default=60)
    options.add_argument("--batch_size", type=positive, default=128)
    options.add_argument("--device", default="cpu")
    options.add_argument("--lr", type=float, default=0.1, help="the largest learning rate")
    options.add_argument("--weight_decay", type=float, default=5e-4)
    options.add_argument("--label_smoothing", type=float, default=0.0)
    options.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="of the forward pass"
    )
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--output", type=Path, default=Path("runs"), help="folder for the weights")
    options.add_argument("--compile", action="store_true", help="a step is one CUDA graph")
    options.add_argument("--log", type=Path, help="file to write every step's loss to")
    options.add_argument("--truncate_train", type=positive, help="so many training pictures")
    options.add_argument("--truncate_test", type=positive, help="so many test pictures")
    return options


def progress(steps: Iterable, description: str) -> Iterable:
    """The steps behind tqdm's bar, where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return steps
    return tqdm(steps, desc=description, leave=False, mininterval=0.5)


def accuracy(model: nn.Module, pictures: data.Pictures, dtype: torch.dtype) -> float:
    """The share of pictures that the model names rightly."""
    model.eval()
    with torch.no_grad(), autocast(pictures.labels.device, dtype):
        right = [
            (model(images).argmax(1) == labels).sum() for images, labels in pictures.batches(500)
        ]
    return torch.stack(right).sum().item() / len(pictures)


def train(
    model: nn.Module, pictures: data.Shuffled, test: data.Pictures, options: argparse.Namespace
) -> float:
    """Train and test; returns the accuracy on the test pictures."""
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr, momentum=0.9, weight_decay=options.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=options.lr,
        total_steps=options.epochs * len(pictures),
        cycle_momentum=False,
    )
    criterion = nn.CrossEntropyLoss(label_smoothing=options.label_smoothing)
    device, dtype = pictures.labels.device, getattr(torch, options.dtype)

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with autocast(device, dtype):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if options.compile:
        step = torch.compile(step)
    log = []
    score = 0.0
    for epoch in range(1, options.epochs + 1):
        begin = time.perf_counter()
        model.train()
        losses = []
        for images, labels in progress(pictures, f"epoch {epoch}/{options.epochs}"):
            losses.append(step(images, labels))
            schedule.step()
        log += torch.stack(losses).tolist()  # one wait for the device an epoch
        seconds = time.perf_counter() - begin
        mean = sum(log[-len(pictures) :]) / len(pictures)
        score = accuracy(model, test, dtype)
        print(
            f"epoch {epoch:2d}  loss {mean:.4f}  test accuracy {score:.2%}  {seconds:.1f} s",
            flush=True,
        )
        if not math.isfinite(mean):
            raise SystemExit(f"the loss is {mean}: try a smaller --lr than {options.lr}")
    if options.log:
        options.log.write_text("".join(f"{value:.8f}\n" for value in log))
    return score


def save(model: nn.Module, score: float, options: argparse.Namespace) -> None:
    """Write the weights, as `torch.load` and as NumPy read them."""
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"cifar_{options.model}.pth"
    state = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    torch.save(state, path)
    print(f"weights: {path}  test accuracy {score:.2%}")
    if hasattr(torch.serialization, "save_npz"):  # PyTorch has none
        path = path.with_suffix(".npz")
        about = {"model": options.model, "epochs": options.epochs, "test_accuracy": score}
        torch.serialization.save_npz(path, {**state, "about": about})
        print(f"weights: {path}  test accuracy {score:.2%}")


def main() -> None:
    command = parser()
    options = command.parse_args()
    device = options.device
    if device.startswith("cuda") and not torch.cuda.is_available():
        command.error(f"--device {device}: there is no GPU, or CuPy is not installed")
    try:
        place = data.folder(options.data)
        pictures = data.Shuffled(
            *data.read(place, True, options.truncate_train, device), options.batch_size
        )
        test = data.Pictures(*data.read(place, False, options.truncate_test, device))
    except (FileNotFoundError, RuntimeError) as error:
        command.error(str(error))
    torch.manual_seed(options.seed)
    model = MODELS[options.model]().to(device)
    if device.startswith("cuda"):
        model.to(memory_format=torch.channels_last)  # as the pictures lie, and convolutions like it
    begin = time.perf_counter()
    score = train(model, pictures, test, options)
    print(f"test accuracy {score:.2%} after {time.perf_counter() - begin:.0f} s")
    save(model, score, options)


if __name__ == "__main__":
    main()
