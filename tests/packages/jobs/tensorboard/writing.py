"""Every kind of summary, read back."""

import numpy as np
import torch
from steps import step
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter


def read(folder):
    found = EventAccumulator(folder, size_guidance={"images": 0, "histograms": 0, "tensors": 0})
    return found.Reload()


@step("scalars of a training")
def _():
    with SummaryWriter("scalars") as writer:
        layer = nn.Linear(2, 1)
        optimizer = torch.optim.Adam(layer.parameters())
        for i in range(4):
            loss = layer(torch.ones(3, 2)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss", loss, i)
        writer.add_scalars("several", {"a": 1.0, "b": torch.tensor(2.0)}, 0)
    found = read("scalars")
    return [(each.step, each.value) for each in found.Scalars("loss")], found.Tags()["scalars"]


@step("histograms of weights and gradients")
def _():
    layer = nn.Linear(3, 4)
    layer(torch.randn(5, 3)).square().sum().backward()
    with SummaryWriter("histograms") as writer:
        for name, parameter in layer.named_parameters():
            writer.add_histogram(name, parameter, 0)
            writer.add_histogram(name + "/grad", parameter.grad, 0, bins="auto")
    found = read("histograms")
    return {
        tag: vars(found.Histograms(tag)[0].histogram_value) for tag in found.Tags()["histograms"]
    }


@step("images: one, several, figures, boxes")
def _():
    with SummaryWriter("images") as writer:
        writer.add_image("one", torch.rand(3, 8, 8), 0)
        writer.add_image("last", np.ones((8, 8, 3)), 0, dataformats="HWC")
        writer.add_images("several", torch.rand(4, 3, 8, 8), 0)
        writer.add_image_with_boxes(
            "boxes", torch.rand(3, 16, 16), torch.tensor([[1.0, 1.0, 9.0, 9.0]]), 0
        )
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(1, 1))
        pyplot.plot(torch.arange(3), torch.arange(3) ** 2)
        writer.add_figure("figure", figure)
    import io

    from PIL import Image

    found = read("images")
    pictures = {}
    for tag in found.Tags()["images"]:
        pixels = np.asarray(Image.open(io.BytesIO(found.Images(tag)[0].encoded_image_string)))
        pictures[tag] = pixels
    return pictures


@step("texts, curves of precision, hyperparameters, custom layouts, meshes")
def _():
    with SummaryWriter("others") as writer:
        writer.add_text("text", "**bold**", 0)
        writer.add_pr_curve("curve", torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.8, 0.6, 0.4]))
        writer.add_custom_scalars({"all": {"loss": ["Multiline", ["loss/a", "loss/b"]]}})
        writer.add_mesh("mesh", torch.rand(1, 4, 3), faces=torch.tensor([[[0, 1, 2], [1, 2, 3]]]))
        writer.add_hparams({"lr": 0.1, "kind": "Adam"}, {"loss": 0.5}, run_name="run")
        writer.add_tensor("tensor", torch.arange(4.0))
    from tensorboard.util.tensor_util import make_ndarray

    found = read("others")
    tags = found.Tags()["tensors"]
    return tags, {
        tag: make_ndarray(found.Tensors(tag)[0].tensor_proto)
        for tag in tags
        if tag in ("curve", "tensor")
    }


@step("embeddings with metadata")
def _():
    with SummaryWriter("embeddings") as writer:
        writer.add_embedding(torch.rand(4, 3), ["a", "b", "c", "d"], torch.rand(4, 3, 4, 4), 0)
    import glob

    vectors = glob.glob("embeddings/**/tensors.tsv", recursive=True)[0]
    return np.loadtxt(vectors)


@step("the graph of a model has its layers")
def _():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with SummaryWriter("graph") as writer:
        writer.add_graph(model, torch.ones(2, 4))
    found = read("graph").Graph()
    names = [node.name for node in found.node]
    return [any(f"Linear[{i}]" in name for name in names) for i in (0, 2)]


@step("audio and its samples")
def _():
    with SummaryWriter("audio") as writer:
        writer.add_audio("sine", torch.sin(torch.arange(400) / 5), 0, sample_rate=8000)
    found = read("audio").Audio("sine")[0]
    return found.sample_rate, found.length_frames


@step("a picture without a dimension of colours", refused=True)
def _():
    with SummaryWriter("bad") as writer:
        try:
            writer.add_image("bad", torch.rand(8))
        except AssertionError as error:  # PyTorch's has spaces of its source in it
            raise AssertionError(" ".join(str(error).split())) from error


@step("hyperparameters that are no mapping", refused=True)
def _():
    with SummaryWriter("worse") as writer:
        writer.add_hparams([1], {"loss": 1.0})
