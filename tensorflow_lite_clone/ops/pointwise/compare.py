"""Comparisons, the larger or smaller of two, closeness and equality."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import elementwise
from tensorflow_lite_clone.ops._samples import expect_values
from tensorflow_lite_clone.ops.pointwise._operands import as_operands, operand_dtype
from tensorflow_lite_clone.ops.pointwise._pointwise import binary
from tensorflow_lite_clone.tensor import Tensor


def _comparison(name: str, word: str, symbol: str, alias: str = "", refuses: str = "c") -> Any:
    return binary(
        name,
        word,
        refuses=refuses,
        number_first=False,
        operators=(f"__{name}__", None, None),
        alias=(alias,) if alias else (),
        arrays=name in ("eq", "ne"),  # Python would compare identities
        document=f"Whether ``input {symbol} other``, elementwise; a bool tensor.",
    )


eq = _comparison("eq", "equal", "==", refuses="")
ne = _comparison("ne", "not_equal", "!=", "not_equal", refuses="")
lt = _comparison("lt", "less", "<", "less")
le = _comparison("le", "less_equal", "<=", "less_equal")
gt = _comparison("gt", "greater", ">", "greater")
ge = _comparison("ge", "greater_equal", ">=", "greater_equal")


def _extreme(name: str, grad_x: Any, grad_y: Any, document: str) -> Any:
    return binary(
        name,
        x=grad_x,
        y=grad_y,
        refuses="c",
        numbers=False,
        inplace=(),
        document=document,
    )


# Two equal operands share the gradient; where one is NaN both get it all.
def _maximum_x(F, g, x, y):
    return F.where(x == y, g / 2, F.where(x < y, 0, g))


def _maximum_y(F, g, x, y):
    return F.where(x == y, g / 2, F.where(x > y, 0, g))


# fmax and fmin give all of it to the first of two equal operands.
def _fmax_x(F, g, x, y):
    return F.where((x >= y) | F.isnan(y), g, 0)


def _fmax_y(F, g, x, y):
    return F.where((x >= y) | F.isnan(y), 0, g)


def _fmin_x(F, g, x, y):
    return F.where((x <= y) | F.isnan(y), g, 0)


def _fmin_y(F, g, x, y):
    return F.where((x <= y) | F.isnan(y), 0, g)


maximum = _extreme("maximum", _maximum_x, _maximum_y, "The larger of two; NaN if one is NaN.")
minimum = _extreme("minimum", _maximum_y, _maximum_x, "The smaller of two; NaN if one is NaN.")
fmax = _extreme("fmax", _fmax_x, _fmax_y, "The larger of two; NaN only if both are NaN.")
fmin = _extreme("fmin", _fmin_x, _fmin_y, "The smaller of two; NaN only if both are NaN.")


class IsClose(Op):
    """Whether |x - y| <= atol + rtol |y|."""

    layout_agnostic = True
    layout = elementwise
    name = "isclose"

    def forward(F, x, y, *, rtol, atol, equal_nan):
        same = x == y
        if equal_nan:
            same = same | ((x != x) & (y != y))
        if rtol == 0 and atol == 0:
            return same
        distance = F.abs(x - y) if x.dtype.kind != "b" else F.astype(x != y, F.int64)
        size = F.abs(y) if y.dtype.kind not in "bu" else F.astype(y, F.float64)
        return same | (F.isfinite(distance) & (distance <= atol + rtol * size))


@public("torch", "method")
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``, elementwise; a bool tensor.

    Raises RuntimeError for different dtypes or negative tolerances.
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.short_name} did not match {other.dtype.short_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:  # NaN neither
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    return apply(IsClose, input, other, rtol=rtol, atol=atol, equal_nan=bool(equal_nan))


@public("torch", "method")
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, see `isclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


class Equal(Op):
    """Whether two arrays of one shape hold the same values."""

    layout_agnostic = True
    name = "equal_all"

    def forward(F, x, y):
        return F.all(x == y)


@public("torch", "method")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and values."""
    expect_values("equal", input)
    if input._storage.physical.shape != other._storage.physical.shape:
        return False
    operands = as_operands((input, other), operand_dtype(input, other))
    return bool(apply(Equal, *operands))
