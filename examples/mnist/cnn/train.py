"""A small convolutional network learns to read MNIST's digits.

    python -m examples.mnist.cnn.train

With ``import torch`` in place of the first import it runs under PyTorch and prints the same losses.
"""

import tensorflow_lite_clone as torch
from examples.mnist import training

nn = torch.nn


class Network(nn.Module):
    """Two convolutions with pooling, two linear layers: (N, 1, 28, 28) -> (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.25),
            nn.Linear(32 * 7 * 7, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


def main() -> None:
    options = training.parser(__doc__).parse_args()
    torch.manual_seed(options.seed)
    score = training.run(Network(), options, "mnist_cnn")
    print(f"test accuracy {score:.2%}")


if __name__ == "__main__":
    main()
