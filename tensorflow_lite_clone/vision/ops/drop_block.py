"""DropBlock: Ghiasi et al., A regularization method for convolutional networks, 2018."""

from __future__ import annotations

import math
from collections.abc import Callable

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor


def _drop_block(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool,
    eps: float,
    training: bool,
    pool: Callable[..., Tensor],
    dimensions: int,
) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.ndim != dimensions + 2:
        raise ValueError(
            f"input should be {dimensions + 2} dimensional. Got {input.ndim} dimensions."
        )
    if not training or p == 0.0:
        return input
    sides = input.shape[2:]
    block = min(block_size, *sides)
    if block % 2 == 0:
        raise ValueError(f"block size should be odd. Got {block} which is even.")
    inner = [side - block + 1 for side in sides]
    # The probability of a block's middle that drops a share `p` of all values.
    gamma = p * math.prod(sides) / (block**dimensions * math.prod(inner))
    middles = empty((*input.shape[:2], *inner), dtype=input.dtype, device=input.device)
    noise = F.pad(middles.bernoulli_(gamma), [block // 2] * (2 * dimensions), value=0)
    kept = 1 - pool(noise, kernel_size=block, stride=1, padding=block // 2)
    scale = kept.numel() / (eps + kept.sum())
    return input.mul_(kept).mul_(scale) if inplace else input * kept * scale


def drop_block2d(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-6,
    training: bool = True,
) -> Tensor:
    """Zeroes squares of x (N, C, H, W), a share `p` of it, and scales up the rest.

    Raises ValueError for p outside [0, 1] or another number of dimensions,
    or squares of even sides.
    """
    return _drop_block(input, p, block_size, inplace, eps, training, F.max_pool2d, 2)


def drop_block3d(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-6,
    training: bool = True,
) -> Tensor:
    """Zeroes cubes of x (N, C, D, H, W), a share `p` of it, and scales up the rest.

    Raises ValueError for p outside [0, 1] or another number of dimensions,
    or cubes of even sides.
    """
    return _drop_block(input, p, block_size, inplace, eps, training, F.max_pool3d, 3)


class DropBlock2d(Stateless):
    """`drop_block2d` as a layer."""

    repr_fields = ("p", "block_size", "inplace")
    repr_inplace = False

    def __init__(self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6) -> None:
        super().__init__()
        self.p = p
        self.block_size = block_size
        self.inplace = inplace
        self.eps = eps

    def forward(self, input: Tensor) -> Tensor:
        return drop_block2d(input, self.p, self.block_size, self.inplace, self.eps, self.training)


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        return drop_block3d(input, self.p, self.block_size, self.inplace, self.eps, self.training)
