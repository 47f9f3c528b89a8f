"""What the MNIST examples share: options, the training loop, the pictures."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow_lite_clone as torch
from examples.mnist.digits import SHIPPED, digits
from examples.mnist.observer import Observer
from examples.mnist.usage import Usage
from examples.prefetch import Prefetcher

nn = torch.nn
Count = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
AT_ONCE = 8  # batches that are fetched and copied as one


def basics(description: str) -> argparse.ArgumentParser:
    """The options that all of them have."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--device", default="cpu")
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--batch_size", type=int, default=32)
    options.add_argument("--truncate_train", type=int, default=10000, help="training digits")
    options.add_argument("--truncate_test", type=int, default=1000, help="test digits")
    options.add_argument("--lr", type=float, default=2e-3, help="the largest learning rate")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--data", type=Path, default=SHIPPED, help="folder with the idx files")
    options.add_argument("--log", "--losses", type=Path, help="file to write every step's loss to")
    options.add_argument("--max_steps", type=int, help="stop training after so many steps")
    options.add_argument("--load", type=Path, help="file with weights to begin with")
    options.add_argument("--save", type=Path, help="file for the trained weights")
    options.add_argument("--evaluate", action="store_true", help="test only, train nothing")
    return options


def parser(description: str) -> argparse.ArgumentParser:
    """The options of those that run in one process."""
    options = basics(description)
    options.add_argument("--output", type=Path, default=Path("runs"), help="folder for pictures")
    options.add_argument("--compile", action="store_true", help="a step is one CUDA graph")
    options.add_argument("--logdir", type=Path, help="folder for what `watch` shows")
    return options


def progress(batches, description: str, total: int | None = None):
    """The batches behind tqdm's bar, where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return batches
    return tqdm(batches, desc=description, total=total, leave=False, mininterval=0.5)


def batches(data: torch.utils.data.Dataset, size: int, device: str, shuffle: bool) -> Prefetcher:
    """Batches of digits on a device."""
    pinned = device.startswith("cuda")
    loader = torch.utils.data.DataLoader(data, AT_ONCE * size, shuffle=shuffle, pin_memory=pinned)
    return Prefetcher(loader, device, size)


def counter(model: nn.Module) -> Count:
    """A function of images and labels: how many of them the model names rightly."""
    return lambda images, labels: (model(images).argmax(1) == labels).sum()


def accuracy(model: nn.Module, test: Prefetcher, right: Count) -> float:
    """The share of digits that the model names rightly, counted by `right`."""
    model.eval()
    with torch.no_grad():
        counts = [right(images, labels) for images, labels in test]
    return torch.stack(counts).sum().item() / len(test.loader.dataset)


def load(model: nn.Module, path: Path) -> None:
    """Give a model on any device the weights in a file."""
    model.load_state_dict(torch.load(path, map_location="cpu"))


def save(model: nn.Module, path: Path) -> None:
    """Write the weights, so that they can be loaded without the device that they are on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({name: value.cpu() for name, value in model.state_dict().items()}, path)
    print(f"weights: {path}")


def run(model: nn.Module, options: argparse.Namespace, name: str) -> float:
    """Train, test, draw; or only test. Returns the accuracy on the test digits."""
    test = digits(options.data, "t10k", options.truncate_test)
    device = options.device
    test_loader = batches(test, 250, device, shuffle=False)
    if options.load:
        load(model, options.load)
    model.to(device)
    if options.evaluate:
        return accuracy(model, test_loader, counter(model))
    train = digits(options.data, "train", options.truncate_train)
    with Usage(device) as usage:
        score = fit(model, train, test_loader, options, name, usage)
    print(usage)
    if options.save:
        save(model, options.save)
    draw(model, test, options, name)
    return score


def fit(
    model: nn.Module,
    train: torch.utils.data.TensorDataset,
    test_loader: Prefetcher,
    options: argparse.Namespace,
    name: str,
    usage: Usage,
) -> float:
    """Train; returns the accuracy after the last epoch."""
    loader = batches(train, options.batch_size, options.device, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=options.lr, total_steps=options.epochs * len(loader)
    )
    observer = Observer(options, model, optimizer, name) if options.logdir else None

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    right = counter(model)
    if options.compile:
        step, right = usage.timed(torch.compile(step)), torch.compile(right)
    log = []
    score = 0.0
    coming = iter(loader)
    for epoch in range(1, options.epochs + 1):
        begin = time.perf_counter()
        model.train()
        losses = []
        for images, labels in progress(coming, f"epoch {epoch}/{options.epochs}", len(loader)):
            losses.append(step(images, labels))
            schedule.step()
            steps = len(log) + len(losses)
            if observer:
                observer.step(steps, losses[-1].item(), len(images))
            if steps == options.max_steps:
                break
        found = torch.stack(losses)  # first: the thread that fetches makes this one wait
        coming = iter(loader)  # it begins to fetch while the device works
        log += found.tolist()  # one wait for the device an epoch
        seconds = time.perf_counter() - begin
        usage.end_epoch(seconds)
        score = accuracy(model, test_loader, right)
        mean = sum(log[-len(losses) :]) / len(losses)
        if observer:
            shown = predictions(model, test_loader.loader.dataset, options.device)
            observer.epoch(len(log), score, shown)
        print(f"epoch {epoch:2d}  loss {mean:.4f}  test accuracy {score:.2%}  {seconds:.1f} s")
        if len(log) == options.max_steps:
            break
    if observer:
        observer.close()
    if options.log:
        options.log.write_text("".join(f"{value:.8f}\n" for value in log))
    return score


def predictions(model: nn.Module, test, device: str):
    """A figure of some digits and what the model reads, None without Matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    images, labels = test[:32]
    model.eval()
    with torch.no_grad():
        answers = model(images.to(device)).argmax(1).tolist()
    figure = Figure(figsize=(10, 5.6))
    for axis, image, answer, label in zip(
        figure.subplots(4, 8).flat, images, answers, labels.tolist(), strict=True
    ):
        axis.imshow(image[0].numpy(), cmap="gray_r")
        axis.set_title(f"{answer}", color="black" if answer == label else "red")
        axis.axis("off")
    figure.suptitle("what the network reads (red: wrong)")
    return figure


def draw(model: nn.Module, test, options: argparse.Namespace, name: str) -> None:
    """Save the graph of one loss and some predictions, with what is installed for it."""
    options.output.mkdir(parents=True, exist_ok=True)
    images, labels = test[:32]
    model.eval()
    outputs = model(images.to(options.device))
    loss = nn.functional.cross_entropy(outputs, labels.to(options.device))
    if hasattr(loss, "render"):
        try:
            path = loss.render(options.output / f"{name}_graph.svg", dict(model.named_parameters()))
            print(f"graph of the loss: {path}")
        except RuntimeError as error:
            print(error)
    figure = predictions(model, test, options.device)
    if figure is None:
        print("no picture of predictions: matplotlib is not installed")
        return
    path = options.output / f"{name}_predictions.png"
    figure.savefig(path, dpi=100)
    print(f"predictions: {path}")
