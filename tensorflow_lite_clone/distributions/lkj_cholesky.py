"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.beta import Beta
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import _standard_normal, broadcast_all
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.rearrange import diag_embed
from tensorflow_lite_clone.ops.special.gamma_functions import mvlgamma
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices M of size `dim`, M of a density proportional
    to det(M)^(concentration - 1).

    ValueError for a `dim` below 2.

    Source: D. Lewandowski, D. Kurowicka, H. Joe, Generating random correlation matrices based on
    vines and extended onion method (2009), section 3; samples by the onion method.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = ("concentration", "_beta")
    _unbatched = ("dim",)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Row i (from 1) has the squared length y below the diagonal,
        # y ~ Beta(i / 2, concentration + (dim - 1 - i) / 2); row 0 has none.
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        row = (arange(dim, **like) - 1).clamp(min=0)
        marginal = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(row + 0.5, marginal - 0.5 * row)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        lengths = self._beta.sample(sample_shape).unsqueeze(-1)
        like = self.concentration.dtype, self.concentration.device
        normals = _standard_normal(self._extended_shape(sample_shape), *like).tril(-1)
        directions = normals / normals.norm(dim=-1, keepdim=True)
        directions[..., 0, :] = 0.0  # was 0 / 0
        below = lengths.sqrt() * directions
        rest = (1 - below.pow(2).sum(-1)).clamp(min=finfo(below.dtype).tiny)
        return below + diag_embed(rest.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        # The density of L is that of M = L L^T times the Jacobian, powers of L's diagonal.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        dtype, device = self.concentration.dtype, self.concentration.device
        row = arange(2, self.dim + 1, dtype=dtype, device=device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        normalizer = mvlgamma(alpha - 0.5, p=count) - alpha.lgamma() * count
        normalizer = normalizer + 0.5 * count * math.log(math.pi)
        return (powers * diagonal.log()).sum(-1) - normalizer
