"""A fully connected network learns to read MNIST's digits.

    python -m examples.mnist.mlp.train --device cuda

With ``import torch`` in place of the first import it runs under PyTorch and prints the same losses.
"""

import tensorflow_lite_clone as torch
from examples.mnist import training

nn = torch.nn


class Network(nn.Module):
    """Two linear layers with a sigmoid between them: (N, 1, 28, 28) -> (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(28 * 28, 128)
        self.activation = nn.Sigmoid()
        self.out = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.activation(self.hidden(x.flatten(1))))


def main() -> None:
    options = training.parser(__doc__).parse_args()
    torch.manual_seed(options.seed)
    score = training.run(Network(), options, "mnist_mlp")
    print(f"test accuracy {score:.2%}")


if __name__ == "__main__":
    main()
