"""Fabric: a loop of one's own, precision, checkpoints, processes."""

import logging
import os
import subprocess
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.INFO)

import torch  # noqa: E402
from lightning.fabric import Fabric, seed_everything  # noqa: E402
from steps import python, step  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def train(fabric, model=None, epochs=2):
    model = model or torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), 0.02))
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(torch.randn(24, 4)), 6))
    losses = []
    for _ in range(epochs):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = (model(x) - x[:, :2]).square().mean()
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=0.5)
            optimizer.step()
            losses.append(loss.item())
    return model, optimizer, losses


@step("setup, backward, clipping: losses")
def _():
    return train(Fabric(accelerator="cpu", devices=1))[2]


for precision in ("bf16-mixed", "bf16-true", "64-true"):

    @step(f"precision {precision}: losses", precision)
    def _(precision):
        return train(Fabric(accelerator="cpu", devices=1, precision=precision))[2]


@step("init_module, empty and not, and its dtype")
def _():
    fabric = Fabric(accelerator="cpu", devices=1, precision="64-true")
    with fabric.init_module(empty_init=True):
        empty = torch.nn.Linear(3, 2)
    with fabric.init_module(empty_init=False):
        full = torch.nn.Linear(3, 2)
    with fabric.init_tensor():
        ones = torch.ones(2)
    return str(empty.weight.dtype), full.weight, ones


@step("save, load, load_raw; training goes on alike")
def _():
    fabric = Fabric(accelerator="cpu", devices=1)
    model, optimizer, losses = train(fabric)
    fabric.save("state.ckpt", {"model": model, "optimizer": optimizer, "step": 8})
    seed_everything(3)
    other, more, _ = train(fabric)
    rest = fabric.load("state.ckpt", {"model": other, "optimizer": more})
    fabric.save("weights.ckpt", model.state_dict())
    fabric.load_raw("weights.ckpt", other)
    return losses, rest, other(torch.ones(1, 4)), sorted(os.listdir("."))


@step("seed_everything and gathering in one process")
def _():
    seed_everything(11)
    fabric = Fabric(accelerator="cpu", devices=1)
    x = torch.randn(3)
    return x, fabric.all_gather(x), fabric.all_reduce(x), fabric.broadcast(x)


@step("no_backward_sync, logging")
def _():
    from lightning.fabric.loggers import CSVLogger

    fabric = Fabric(
        accelerator="cpu", devices=1, loggers=CSVLogger("logs", flush_logs_every_n_steps=1)
    )
    model, _, losses = train(fabric, epochs=1)
    with fabric.no_backward_sync(model):
        fabric.backward(model(torch.ones(2, 4)).sum())
    for index, loss in enumerate(losses):
        fabric.log("loss", loss, step=index)
    with open("logs/lightning_logs/version_0/metrics.csv") as file:
        return [float(line.split(",")[0]) for line in file.read().splitlines()[1:]]


PROGRAM = """
import logging, warnings, torch
warnings.filterwarnings("ignore"); logging.disable(logging.INFO)
if "+tlc" not in torch.__version__:
    from tests.vision.declared import imported
    imported()
from lightning.fabric import Fabric
if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(1)
    model = torch.nn.Linear(3, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
    x = torch.full((4, 3), float(fabric.global_rank + 1))
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        fabric.backward(loss)
        optimizer.step()
    mean = fabric.all_reduce(loss, reduce_op="mean")
    both = fabric.all_gather(torch.tensor([float(fabric.global_rank)]))
    fabric.barrier()
    if fabric.is_global_zero:
        print("FOUND", mean.item(), *both.flatten().tolist(), *model.weight.flatten().tolist())
"""


@step("two processes (ddp): the loss, what is gathered, the weights")
def _():
    with open("two.py", "w") as file:
        file.write(PROGRAM)
    done = subprocess.run([*python(), "two.py"], capture_output=True, text=True, timeout=300)
    line = [each for each in done.stdout.splitlines() if each.startswith("FOUND")]
    if not line:
        raise RuntimeError(done.stderr[-1500:])
    return list(map(float, line[0].split()[1:]))


@step("a model that was set up already is refused", refused=True)
def _():
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.setup(fabric.setup(torch.nn.Linear(2, 2)))


@step("a checkpoint of another shape is refused", refused=True)
def _():
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.save("two.ckpt", torch.nn.Linear(2, 2).state_dict())
    fabric.load_raw("two.ckpt", torch.nn.Linear(3, 2))


@step("an unknown precision is refused", refused=True)
def _():
    Fabric(accelerator="cpu", devices=1, precision="12-mixed")
