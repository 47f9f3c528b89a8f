"""Several processes teach a network to read MNIST's digits.

    python -m tensorflow_lite_clone.distributed.run --nproc_per_node 2 \\
        -m examples.mnist.distributed.train --device cuda
    mpirun -n 2 python -m examples.mnist.distributed.train --backend mpi

Each has a copy of the network and its part of every batch; gradients are averaged. The first one
prints and writes files.
"""

import argparse
import time

import tensorflow_lite_clone as torch
from examples.mnist import training
from examples.mnist.cnn.train import Network as Convolutional
from examples.mnist.digits import digits
from examples.mnist.mlp.train import Network as FullyConnected
from examples.mnist.usage import Usage
from examples.world import World, joined

nn, dist, data = torch.nn, torch.distributed, torch.utils.data
MODELS = {"cnn": Convolutional, "mlp": FullyConnected}


def parser() -> argparse.ArgumentParser:
    command = training.basics(__doc__)
    command.add_argument("--model", choices=sorted(MODELS), default="cnn")
    command.add_argument("--backend", choices=("nccl", "gloo", "mpi"), help="default: by --device")
    return command


def accuracy(model: nn.Module, test: data.TensorDataset, world: World) -> float:
    """The share of digits that the model names rightly; each process looks at its part."""
    mine = data.Subset(test, range(world.rank, len(test), world.size))
    right = torch.zeros((), dtype=torch.int64, device=world.device)
    model.eval()
    with torch.no_grad():
        for images, labels in data.DataLoader(mine, batch_size=250):
            answers = model(images.to(world.device)).argmax(1)
            right += (answers == labels.to(world.device)).sum()
    return world.sum(right).item() / len(test)


def train(
    model: nn.Module,
    digits: data.TensorDataset,
    test: data.TensorDataset,
    world: World,
    options: argparse.Namespace,
) -> list[float]:
    """Train `model` in all processes; returns the seconds of each epoch."""
    sampler = data.DistributedSampler(digits, world.size, world.rank, seed=options.seed)
    loader = data.DataLoader(digits, options.batch_size // world.size, sampler=sampler)
    copied = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(copied.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=options.lr, total_steps=options.epochs * len(loader)
    )
    log, taken = [], []
    for epoch in range(1, options.epochs + 1):
        begin = time.perf_counter()
        sampler.set_epoch(epoch)  # another order
        copied.train()
        losses = []
        name = f"epoch {epoch}/{options.epochs}"
        for images, labels in training.progress(loader, name) if world.speaks else loader:
            answers = copied(images.to(world.device))
            loss = nn.functional.cross_entropy(answers, labels.to(world.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
            if len(log) + len(losses) == options.max_steps:
                break
        epoch_losses = (world.sum(torch.stack(losses)) / world.size).tolist()
        taken.append(time.perf_counter() - begin)
        log += epoch_losses
        score = accuracy(model, test, world)
        if world.speaks:
            mean = sum(epoch_losses) / len(epoch_losses)
            print(
                f"epoch {epoch:2d}  loss {mean:.4f}  test accuracy {score:.2%}  {taken[-1]:.1f} s"
            )
        if len(log) == options.max_steps:
            break
    if world.speaks and options.log:
        options.log.write_text("".join(f"{value:.8f}\n" for value in log))
    return taken


def main() -> None:
    command = parser()
    options = command.parse_args()
    with joined(options.device, options.backend) as world:
        if options.batch_size % world.size:
            command.error(f"--batch_size {options.batch_size} for {world.size} processes")
        torch.manual_seed(options.seed)  # the same initial network everywhere
        model = MODELS[options.model]()
        if options.load:
            training.load(model, options.load)
        model.to(world.device)
        test = digits(options.data, "t10k", options.truncate_test)
        if not options.evaluate:
            torch.manual_seed(options.seed + world.rank)  # dropout differs
            digits_to_learn = digits(options.data, "train", options.truncate_train)
            with Usage(str(world.device)) as usage:
                usage.seconds += train(model, digits_to_learn, test, world, options)
            if world.speaks:
                print(f"{world.size} processes: {usage}")
        if options.save:
            if world.speaks:
                training.save(model, options.save)
            dist.barrier()  # the file is whole
            training.load(model, options.save)
        score = accuracy(model, test, world)
        if world.speaks:
            print(f"test accuracy {score:.2%}")


if __name__ == "__main__":
    main()
