"""Covariances, correlations and integrals by the trapezoidal rule."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._samples import holds
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.reduce._arguments import axis_of
from tensorflow_lite_clone.ops.reduce.scan import part
from tensorflow_lite_clone.tensor import Tensor


def _checked_weights(name: str, weights: Tensor, count: int, integral: bool) -> Tensor:
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{weights.ndim} dimensions"
        )
    if (weights.dtype.kind in "iu") is not integral:
        expected = "an integral" if integral else "a floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {expected} dtype but got {name} with "
            f"{weights.dtype.short_name} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the "
            f"input but got {weights.numel()} != {count}"
        )
    if not holds(weights >= 0):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights


@public("torch", "method")
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables in rows, observed in columns.

    `fweights` says how often an observation counts, `aweights` how much.
    """
    if input.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    if input.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else input.reshape(1, -1)
    count = x.shape[1]
    weights: Any = None
    if fweights is not None:
        weights = _checked_weights("fweights", fweights, count, True)
    if aweights is not None:
        checked = _checked_weights("aweights", aweights, count, False)
        weights = checked if weights is None else weights * checked
    if x.dtype.kind in "iu":
        x = x.to(x.new_zeros(0).float().dtype)
    if weights is None:
        divisor: Any = count - correction
        centred = x - x.mean(1, keepdim=True)
        other = centred
    else:
        total = weights.sum()
        if not holds(total != 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        if aweights is None or correction == 0:
            divisor = total - correction if aweights is None else total
        else:
            divisor = total - correction * (weights * aweights).sum() / total
        centred = x - (x * weights).sum(1, keepdim=True) / total
        other = centred * weights
    if not (holds(divisor > 0) if isinstance(divisor, Tensor) else divisor > 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations.",
            stacklevel=level_outside(),
        )
        divisor = 0
    return ((centred @ other.mT.conj()) / divisor).squeeze()


@public("torch", "method")
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables in rows, observed in columns."""
    if input.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    covariance = cov(input)
    if not covariance.ndim:
        return covariance / covariance
    deviation = covariance.diagonal().sqrt()
    result = covariance / deviation.unsqueeze(1) / deviation
    return result if result.dtype.kind == "c" else result.clip(-1, 1)


def _widths(y: Tensor, x: Tensor | None, dx: Any, axis: int) -> Any:
    """The distances between the places of `y` along `axis`."""
    if x is None:
        return 1 if dx is None else dx
    if not x.ndim:
        x = x.reshape((1,) * y.ndim)
    if dx is not None:
        raise TypeError("trapezoid() takes either 'x' or 'dx', not both")
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError("trapezoid(): There must be one `x` value for each sample point")
        return (x[1:] - x[:-1]).reshape((-1,) + (1,) * (y.ndim - axis - 1))
    axis = axis - y.ndim
    return x.narrow(axis, 1, x.shape[axis] - 1) - x.narrow(axis, 0, x.shape[axis] - 1)


def _areas(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    axis = axis_of(dim, y.ndim)
    widths = _widths(y, x, dx, axis)
    return (y[part(axis, 1, None)] + y[part(axis, None, -1)]) * widths / 2, axis


@public("torch", names=("trapezoid", "trapz"))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, at places `x` or `dx` apart."""
    axis = axis_of(dim, y.ndim)
    if not y.shape[axis]:
        return y.detach().sum(axis, dtype=y.dtype)
    areas, axis = _areas(y, x, dx, dim)
    return areas.sum(axis)


@public("torch")
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1
) -> Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule."""
    areas, axis = _areas(y, x, dx, dim)
    return areas.cumsum(axis)


@public("torch", "method")
@with_out
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Every slice along `dim` scaled down to a `p`-norm of at most `maxnorm`."""
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got {p}")
    if not maxnorm >= 0:  # NaN neither
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    axis = axis_of(dim, input.ndim)
    others = tuple(i for i in range(input.ndim) if i != axis)
    kept = (input.detach().norm(p, others, True) > maxnorm).logical_not()
    # What is kept gets no part of the norm's gradient, which NaN would spoil.
    size = input.masked_fill(kept, 0).norm(p, others, True)
    factor = (maxnorm / (size + 1e-7)).masked_fill(kept, 1)
    return (input * factor).contiguous()


@public("method")
def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`renorm` in place."""
    return self.copy_(renorm(self.clone(), p, dim, maxnorm))  # a gradient needs what self was
