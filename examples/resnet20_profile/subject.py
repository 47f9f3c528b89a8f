"""What is measured: the network with its weights, and the picture that it looks at."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import tensorflow_lite_clone as torch
from examples.cifar import data
from examples.cifar.models import resnet20

nn = torch.nn
# What files raise that do not hold the network's weights
UNREADABLE = (
    OSError, EOFError, KeyError, RuntimeError, ValueError, pickle.UnpicklingError,
    zipfile.BadZipFile,
)  # fmt: skip


def network(weights: Path | None) -> tuple[nn.Module, dict[str, Any]]:
    """ResNet-20 to be asked, not trained, and what is known about its weights.

    `weights` is a ``.npz`` or a ``.pth`` file; without one they are the initial ones of seed 0.
    Raises one of `UNREADABLE` for a file that does not fit.
    """
    torch.manual_seed(0)
    model = resnet20()
    about: dict[str, Any] = {"weights": "initial, untrained"}
    if weights is not None:
        about["weights"] = weights.name
        if weights.suffix == ".npz":
            torch.serialization.load_npz(weights, model)
            with np.load(weights) as arrays:
                if "about/test_accuracy" in arrays:
                    about["test_accuracy"] = float(arrays["about/test_accuracy"])
        else:
            model.load_state_dict(torch.load(weights, map_location="cpu"))
    return model.eval().requires_grad_(False), about


def picture(place: Path | None) -> tuple[torch.Tensor, str]:
    """A batch of one picture on the CPU, and which it is: the first test picture, or random."""
    if place is None:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(1, 3, data.SIZE, data.SIZE, generator=generator), "random numbers"
    first = data.Pictures(*data.read(data.folder(place), False, 1, "cpu"))
    ((image, label),) = first.batches(1)
    return image.contiguous(), f"the first test picture, of class {label.item()}"
