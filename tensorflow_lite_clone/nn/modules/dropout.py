"""Dropout as modules: what they keep is scaled by 1 / (1 - p) in training."""

from __future__ import annotations

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Stateless):
    """Drops with probability `p` in training, does nothing otherwise."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Drops elements; see `functional.dropout`."""

    function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Drops channels of (N, C, L) or (C, L); see `functional.dropout1d`."""

    function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Drops channels of (N, C, H, W) or (C, H, W); see `functional.dropout2d`."""

    function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Drops channels of (N, C, D, H, W) or (C, D, H, W); see `functional.dropout3d`."""

    function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Drops elements and keeps mean and variance; see `functional.alpha_dropout`."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    """Drops channels and keeps mean and variance; see `functional.feature_alpha_dropout`."""

    function = staticmethod(F.feature_alpha_dropout)
