"""Distances between the rows of matrices."""

from __future__ import annotations

import math

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.linalg._products import expect_one_dtype
from tensorflow_lite_clone.ops.linalg.norms import vector_norm
from tensorflow_lite_clone.tensor import Tensor


class Chebyshev(Op):
    """The largest ``|x|`` along the last axis; as in PyTorch, all that tie have the whole gradient.

    (Those of a norm share it.)
    """

    constant_in = ("x",)

    def forward(F, x):
        size = F.abs(x)
        return F.max(size, axis=-1) if size.shape[-1] else F.sum(size, axis=-1)

    def backward_x(F, g, x, out):
        g, out = F.expand_dims(g, axis=-1), F.expand_dims(out, axis=-1)
        return F.where(F.abs(x) == out, F.sgn(x) * g, 0)


class Hamming(Op):
    """How many of ``x`` along the last axis are not 0; as in PyTorch, its gradient is zeros.

    (That of a norm is none.)
    """

    constant_in = ("x",)

    def forward(F, x):
        return F.astype(F.count_nonzero(x, axis=-1), x.dtype)

    def backward_x(F, g, x):
        return F.zeros_like(x)


def _norms(between: Tensor, p: float) -> Tensor:
    """The `p`-norms of the rows."""
    if p in (0, math.inf):
        return apply(Hamming if p == 0 else Chebyshev, between)
    return vector_norm(between, p, -1)


@public("torch", "functional")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The `p`-norm distances of all pairs of rows i < j of a matrix, as a vector."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    rows = input.shape[0]
    first = [i for i in range(rows) for _ in range(i + 1, rows)]
    second = [j for i in range(rows) for j in range(i + 1, rows)]
    between = input[first] - input[second]
    return _norms(between, p)


@public("torch")
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The `p`-norm distances of every row of `x1` (..., P, M) to every row of `x2` (..., R, M).

    Euclidean distances of more than 25 rows are made of products, as in PyTorch.
    """
    if x1.ndim < 2 or x2.ndim < 2:
        which, ndim = ("X1", x1.ndim) if x1.ndim < 2 else ("X2", x2.ndim)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {ndim}D")
    for which, tensor in (("X1", x1), ("X2", x2)):
        if tensor.dtype.kind != "f":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {which} got: {tensor.dtype.short_name}"
            )
    expect_one_dtype("cdist", x1, x2)
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if not p >= 0:  # NaN neither
        raise RuntimeError("cdist only supports non-negative p values")
    many = x1.shape[-2] > 25 or x2.shape[-2] > 25
    if p != 2 or not (
        compute_mode == "use_mm_for_euclid_dist"
        or (many and compute_mode in (None, "use_mm_for_euclid_dist_if_necessary"))
    ):
        between = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        return _norms(between, p)
    squares1 = (x1 * x1).sum(-1, keepdim=True)
    squares2 = (x2 * x2).sum(-1).unsqueeze(-2)
    squares = squares1 + squares2 - 2 * (x1 @ x2.mT)
    touching = squares <= 0  # the root has no slope there
    return squares.masked_fill(touching, 1).sqrt().masked_fill(touching, 0)
