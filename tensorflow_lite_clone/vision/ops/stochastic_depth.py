"""Stochastic depth: residual branches are dropped at random during training."""

from __future__ import annotations

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.fx import wrap
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor


@wrap
def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Zeroes the whole input ("batch") or whole samples of it ("row") with probability `p`.

    What stays is divided by `1 - p`. Raises ValueError for p outside [0, 1] or another mode.
    Source: Huang et al., Deep Networks with Stochastic Depth, 2016.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    size = [rows, *[1] * (input.ndim - 1)]
    kept = empty(size, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    return input * (kept.div_(1 - p) if p < 1 else kept)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a layer."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"
