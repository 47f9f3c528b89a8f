"""Draws the three graphs of a small network: what it runs, what autograd built, its modules.

    python -m examples.graph --folder pictures --suffix .svg

With the suffix .html (the default) the pictures open and close in a browser, and Graphviz is not
needed.
"""

import argparse
from pathlib import Path

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import viz

nn = torch.nn


class Residual(nn.Module):
    """A layer whose result is added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block."""
        return x + self.act(self.layer(x))


class Classifier(nn.Module):
    """Small images into three classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(16, 8)
        self.blocks = nn.Sequential(*[Residual(8) for _ in range(4)])
        self.head = nn.Linear(8, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        return self.head(self.blocks(self.stem(images.flatten(1))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--suffix", default=".html", help=".svg, .png, .pdf, .dot, .html or .json")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = Classifier()
    images, classes = torch.randn(5, 4, 4), torch.tensor([0, 1, 2, 1, 0])
    loss = nn.functional.cross_entropy(model(images), classes)

    options.folder.mkdir(parents=True, exist_ok=True)
    for name, graph in {
        "forward": viz.forward(model, images, time=True).color_by("time"),
        "backward": viz.backward(loss, model, gradients=True),
        "modules": viz.modules(model),
    }.items():
        path = graph.fold().save(options.folder / f"{name}{options.suffix}")
        print(f"wrote {path}: {graph}")


if __name__ == "__main__":
    main()
