"""Dropout as modules: what they drop is scaled by 1 / (1 - p) in training."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.stateless import Stateless, stateless
from tensorflow_lite_clone.tensor import Tensor


class _Dropout(Stateless):
    """Drops with probability `p` in training, does nothing otherwise."""

    def check(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


def _dropout(name: str, function: Any) -> Any:
    return stateless(name, function, {"p": 0.5, "inplace": False}, base=_Dropout)


Dropout = _dropout("Dropout", F.dropout)
Dropout1d = _dropout("Dropout1d", F.dropout1d)
Dropout2d = _dropout("Dropout2d", F.dropout2d)
Dropout3d = _dropout("Dropout3d", F.dropout3d)
AlphaDropout = _dropout("AlphaDropout", F.alpha_dropout)
FeatureAlphaDropout = _dropout("FeatureAlphaDropout", F.feature_alpha_dropout)
