"""A vision transformer learns to read MNIST's digits from patches.

    python -m examples.mnist.vit.train

With ``import torch`` in place of the first import it runs under PyTorch and prints the same losses.
Source of the model: Dosovitskiy et al., "An image is worth 16x16 words" (2021).
"""

import tensorflow_lite_clone as torch
from examples.mnist import training

nn = torch.nn


class Network(nn.Module):
    """Patches -> embeddings with positions -> transformer encoder -> class: (N, 10)."""

    def __init__(self, patch_size: int, embed: int, num_heads: int, num_layers: int) -> None:
        super().__init__()
        patches = (28 // patch_size) ** 2
        self.patches = nn.Conv2d(1, embed, patch_size, stride=patch_size)
        self.token = nn.Parameter(torch.zeros(1, 1, embed))
        self.positions = nn.Parameter(torch.randn(1, patches + 1, embed) * 0.02)
        layer = nn.TransformerEncoderLayer(
            embed,
            num_heads,
            dim_feedforward=4 * embed,
            dropout=0.1,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(embed)
        self.head = nn.Linear(embed, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.encoder(x)[:, 0]))


def main() -> None:
    parser = training.parser(__doc__)
    parser.add_argument("--patch_size", type=int, default=4)
    parser.add_argument("--embed", type=int, default=128)
    parser.add_argument("--num_heads", type=int, default=2)
    parser.add_argument("--num_layers", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = Network(options.patch_size, options.embed, options.num_heads, options.num_layers)
    score = training.run(model, options, "mnist_vit")
    print(f"test accuracy {score:.2%}")


if __name__ == "__main__":
    main()
