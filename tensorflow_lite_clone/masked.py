"""``torch.masked``: reductions and normalisations that leave out where a mask is False.

What is left out counts as the operation's identity: 0 in a sum, minus infinity in a maximum. A mask
broadcasts to the input; without one every element takes part.

>>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> torch.masked.mean(x, 1, mask=torch.tensor([True, False, True]))
tensor([2., 5.])
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone import _absent
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, float32, int64
from tensorflow_lite_clone.core.limits import iinfo
from tensorflow_lite_clone.ops.index import sort
from tensorflow_lite_clone.ops.linalg import norms
from tensorflow_lite_clone.ops.nn import softmax as softmaxes
from tensorflow_lite_clone.ops.pointwise import multivariate
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.reduce import extremes, reductions, scan
from tensorflow_lite_clone.ops.reduce._arguments import axes_of
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "is_masked_tensor", "log_softmax",
    "logaddexp", "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin",
    "std", "sum", "var",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise _absent.error(f"module '{__name__}'", "torch.masked", name)


def is_masked_tensor(obj: Any, /) -> bool:
    """False: there are no tensors that carry a mask."""
    return False


def _filled(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    """`input` with `identity` where `mask` is False."""
    return input if mask is None else where(_fitted(mask, input), input, identity)


def _fitted(mask: Tensor, input: Tensor) -> Tensor:
    """`mask` as booleans of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"a mask of shape {list(mask.shape)} has more dimensions than the input of shape "
            f"{list(input.shape)}"
        )
    return mask.bool().expand(input.shape)


def _bound(name: str, dtype: DType, low: bool) -> float:
    """What counts as nothing in a maximum (`low`) or a minimum."""
    if dtype.kind == "b":
        raise NotImplementedError(f"{name}(): there is no identity for {dtype!r}")
    if dtype.kind == "f":
        return -math.inf if low else math.inf
    limits = iinfo(dtype)  # refuses complex numbers
    return limits.min if low else limits.max


def _bounded(name: str, input: Tensor, mask: Tensor | None, low: bool) -> Tensor:
    """`input`, where `mask` is False the lowest or the highest value of its dtype."""
    return input if mask is None else _filled(input, mask, _bound(name, input.dtype, low))


def _to(result: Tensor, dtype: Any) -> Tensor:
    return result if dtype is None else result.to(as_dtype(dtype))


def _axis(dim: Any, ndim: int) -> int:
    """The one axis of a function along `dim`; of several the first."""
    axes = axes_of(dim, ndim)
    return axes[0] if axes else 0


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The sum over `dim` (an int, several, or all) where `mask` is True; integers as int64."""
    return reductions.sum(_filled(input, mask, 0), dim, keepdim, dtype=dtype)


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The product over `dim` (an int, several, or all) where `mask` is True."""
    result = _filled(input, mask, 1)
    for axis in reversed(axes_of(dim, input.ndim)):
        result = reductions.prod(result, axis, keepdim, dtype=dtype)
    return result if input.ndim else reductions.prod(result, dtype=dtype)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The largest element over `dim` where `mask` is True; minus infinity where it never is."""
    axes = axes_of(dim, input.ndim)
    return _to(extremes.amax(_bounded("amax", input, mask, True), axes, keepdim), dtype)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The smallest element over `dim` where `mask` is True; infinity where it never is."""
    axes = axes_of(dim, input.ndim)
    return _to(extremes.amin(_bounded("amin", input, mask, False), axes, keepdim), dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The place of the largest element where `mask` is True, in the input's dtype or in `dtype`."""
    places = extremes.argmax(_bounded("argmax", input, mask, True), dim, keepdim)
    return _to(places, dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The place of the smallest element where `mask` is True, in the dtype of `argmax`."""
    places = extremes.argmin(_bounded("argmin", input, mask, False), dim, keepdim)
    return _to(places, dtype or input.dtype)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The sums along `dim` up to each element, of what `mask` takes; the dtype stays."""
    filled = _filled(input, mask, 0)
    return scan.cumsum(filled, _axis(dim, input.ndim), dtype=as_dtype(dtype or input.dtype))


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The products along `dim` up to each element, of what `mask` takes; the dtype stays."""
    filled = _filled(input, mask, 1)
    return scan.cumprod(filled, _axis(dim, input.ndim), dtype=as_dtype(dtype or input.dtype))


def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements take part, as int64."""
    taken = input.new_ones((), dtype=int64).expand(input.shape)
    return sum(taken, dim, keepdim=keepdim, mask=mask)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The mean over `dim` of what `mask` takes, NaN of nothing; ValueError for integers."""
    kind = as_dtype(dtype or input.dtype)
    if kind.kind not in "fc":
        raise ValueError(
            f"mean(): expected a floating point or complex {'input' if dtype is None else 'dtype'},"
            f" got {kind!r}"
        )
    total = sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The median along `dim` of what `mask` takes and is not NaN; of two the lower one.

    NaN of nothing. Raises ValueError where that happens for integers.
    """
    floating = input.dtype.kind == "f"
    values = input if floating else input.to(float32)
    result = sort.nanmedian(_filled(values, mask, math.nan), _axis(dim, input.ndim), keepdim).values
    if floating:
        return result
    if result.isnan().any():
        raise ValueError(f"median(): {input.dtype!r} has no value for a row that is masked out")
    return result.to(as_dtype(dtype or input.dtype))


def _spread(
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    """The variance in the dtype that was asked for."""
    if unbiased is not None and correction is not None:
        raise AssertionError("only one of `unbiased` and `correction` may be given")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    have = input.dtype
    kind = as_dtype(dtype or (have if have.kind in "fc" else float32))
    computed = kind if kind.kind in "fc" else float32
    total = sum(input, dim, keepdim=True, dtype=kind, mask=mask)
    deviation = input - total / _count(input, dim, True, mask)
    squares = sum(deviation * deviation.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    count = _count(input, dim, keepdim, mask)
    if correction != 0:
        count = (count.to(computed.to_real()) - correction).clamp_min(0)
    return (squares / count).to(kind)


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The variance over `dim` of what `mask` takes: squares are divided by n - `correction`."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The standard deviation over `dim` of what `mask` takes; see `var`."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The norm of order `ord` over `dim` of what `mask` takes; see `linalg.vector_norm`."""
    filled = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(filled, ord, axes_of(dim, input.ndim), keepdim, dtype=dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """What `mask` takes, over its norm along `dim` (`eps` at least); 0 elsewhere."""
    size = norm(input, ord, _axis(dim, input.ndim), keepdim=True, dtype=dtype, mask=mask)
    return _to(_filled(input, mask, 0), dtype) / size.clamp_min(eps)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """``log(sum(exp(x)))`` over `dim` of what `mask` takes; minus infinity of nothing.

    Integers stay integers where no `dtype` is given.
    """
    if input.dtype.kind == "c":
        filled = _filled(input, mask, -math.inf)
    else:
        filled = _bounded("logsumexp", input, mask, True)
    result = softmaxes.logsumexp(filled, axes_of(dim, input.ndim), keepdim)
    return _to(result, dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> Tensor:
    """``log(exp(x) + exp(y))``, without x or y where its mask is False."""
    result = multivariate.logaddexp(
        _bounded("logaddexp", input, input_mask, True),
        _bounded("logaddexp", other, other_mask, True),
    )
    return _to(result, dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The softmax along `dim` of what `mask` takes: 0 elsewhere, NaN where it takes nothing."""
    filled = _bounded("softmax", input, mask, True)
    return softmaxes.softmax(filled, _axis(dim, input.ndim), dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    filled = _bounded("log_softmax", input, mask, True)
    return softmaxes.log_softmax(filled, _axis(dim, input.ndim), dtype=dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The softmax of ``-input``, of what `mask` takes."""
    filled = _bounded("softmin", input, mask, False)
    return softmaxes.softmin(filled, _axis(dim, input.ndim), dtype=dtype)
