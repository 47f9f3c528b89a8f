"""Draws the graph that autograd builds for a small network.

python -m examples.graph --output graph.svg
"""

import argparse
from pathlib import Path

import tensorflow_lite_clone as torch

nn = torch.nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("graph.svg"))
    options = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x = torch.randn(5, 4)
    loss = nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 2, 1, 0]))
    path = loss.render(options.output, dict(model.named_parameters()))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
