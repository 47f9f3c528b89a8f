"""Runs logged offline: metrics, watched gradients, histograms, images, artifacts."""

import glob

import numpy as np
import torch
import wandb
from steps import step
from torch import nn


def run(**kwargs):
    return wandb.init(project="tiny", mode="offline", **kwargs)


@step("a training logged, with its summary and configuration")
def _():
    found = run(config={"lr": 0.1})
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=found.config.lr)
    for _ in range(3):
        loss = layer(torch.ones(4, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.log({"loss": loss, "value": loss.item()})
    kept = dict(found.summary)
    found.finish()
    return float(kept["loss"]), kept["value"], len(glob.glob("wandb/offline-run-*/*.wandb"))


@step("a watched model: gradients, parameters, graph")
def _():
    found = run()
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    found.watch(model, log="all", log_freq=1, log_graph=True)
    for _ in range(2):
        model(torch.rand(2, 1, 4, 4)).sum().backward()
        found.log({"step": 1})
    keys = sorted(k for k in dict(found.summary) if not k.startswith("_"))
    histogram = found.summary["gradients/3.weight"]
    found.unwatch(model)
    found.finish()
    return keys, histogram["values"], histogram["bins"]


@step("histograms, images, tables of tensors")
def _():
    found = run()
    histogram = wandb.Histogram(torch.linspace(0, 1, 20))
    image = wandb.Image(torch.arange(48.0).view(3, 4, 4) / 48)
    table = wandb.Table(columns=["x", "y"], data=[[torch.tensor(1.5).item(), 2]])
    found.log({"histogram": histogram, "image": image, "table": table})
    pixels = np.asarray(image.image)
    found.finish()
    return histogram.histogram, histogram.bins, pixels, table.data


@step("weights as an artifact")
def _():
    found = run()
    torch.save(nn.Linear(2, 1).state_dict(), "weights.pt")
    artifact = wandb.Artifact("weights", type="model", metadata={"width": 2})
    artifact.add_file("weights.pt")
    found.log_artifact(artifact)
    found.finish()
    return sorted(artifact.manifest.entries), torch.load("weights.pt")["weight"]


@step("a model that is not one is watched", refused=True)
def _():
    found = run()
    try:
        found.watch("model")
    finally:
        found.finish()
