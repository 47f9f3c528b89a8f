"""Sorting and selecting: sort, argsort, topk, kthvalue, median, mode, searchsorted."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import int32, promote_types
from tensorflow_lite_clone.core.limits import iinfo
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import like_first
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.pointwise._operands import as_number, cast, refuse
from tensorflow_lite_clone.ops.reduce._arguments import axis_of, delivered
from tensorflow_lite_clone.ops.reduce.extremes import Picked, pick, require_elements
from tensorflow_lite_clone.ops.reduce.scan import part
from tensorflow_lite_clone.tensor import Tensor

_Sort = result_type("sort", "values", "indices")
_Topk = result_type("topk", "values", "indices")
_Kthvalue = result_type("kthvalue", "values", "indices")
_Median = result_type("median", "values", "indices")
_Nanmedian = result_type("nanmedian", "values", "indices")
_Mode = result_type("mode", "values", "indices")


class Sort(Picked):
    """All elements along an axis in order, and their places."""

    name = "sort_with_indices"
    layout = like_first
    label = "Sort"

    def forward(F, x, *, axis, keepdims, size, descending):
        index = F.argsort(x, axis=axis, descending=descending)
        return F.take_along_axis(x, index, axis=axis), index


class Topk(Picked):
    """The k largest or smallest elements along an axis, and their places."""

    def forward(F, x, *, axis, keepdims, size, k, largest):
        return F.top_k(x, k, axis=axis, largest=largest)


class Kthvalue(Picked):
    """The k-th smallest element along an axis, and its place."""

    def forward(F, x, *, axis, keepdims, size, k):
        return _at(F, x, F.arg_kth(x, k - 1, axis=axis), axis, keepdims)


class Median(Picked):
    """The lower median along an axis, and its place; NaN if there is one."""

    name = "median_with_indices"
    label = "Median"

    def forward(F, x, *, axis, keepdims, size):
        index = F.arg_kth(x, (size - 1) // 2, axis=axis)
        if x.dtype.kind in "fV":
            nan = F.isnan(x)
            first = F.argmax(F.astype(nan, F.uint8), axis=axis, keepdims=True)
            index = F.where(F.any(nan, axis=axis, keepdims=True), first, index)
        return _at(F, x, index, axis, keepdims)


class Nanmedian(Picked):
    """The lower median along an axis of what is not NaN, and its place."""

    name = "nanmedian_with_indices"
    label = "Nanmedian"

    def forward(F, x, *, axis, keepdims, size):
        order = F.argsort(x, axis=axis)  # NaN comes last
        count = size - F.sum(F.isnan(x), axis=axis, dtype=F.int64, keepdims=True)
        middle = F.maximum((count - 1) // 2, 0)
        return _at(F, x, F.take_along_axis(order, middle, axis=axis), axis, keepdims)


class Mode(Picked):
    """The most frequent element along an axis (the smallest of several), and its last place."""

    def forward(F, x, *, axis, keepdims, size):
        order = F.argsort(x, axis=axis)
        ordered = F.take_along_axis(x, order, axis=axis)
        changes = ordered[part(axis, 1, None)] != ordered[part(axis, None, -1)]
        shape = [1] * x.ndim
        shape[axis] = size
        place = F.reshape(F.arange(size), tuple(shape))
        starts = F.where(changes, place[part(axis, 1, None)], 0)
        starts = F.concat([F.zeros_like(order[part(axis, None, 1)]), starts], axis=axis)
        length = place - F.cumulative_max(starts, axis=axis)
        last = F.argmax(length, axis=axis, keepdims=True)
        return _at(F, x, F.take_along_axis(order, last, axis=axis), axis, keepdims)


def _at(F: Any, x: Any, index: Any, axis: int, keepdims: bool) -> tuple:
    values = F.take_along_axis(x, index, axis=axis)
    if keepdims:
        return values, index
    shape = values.shape[:axis] + values.shape[axis + 1 :]
    return F.reshape(values, shape), F.reshape(index, shape)


def _require_ordered(name: str, input: Tensor, boolean: bool = True) -> None:
    letter = input._storage.physical.dtype.kind
    if letter == "c" or (letter == "b" and not boolean):
        kind = "complex" if letter == "c" else "bool"
        raise RuntimeError(f"{name} does not support {kind} dtypes on CPU")


@public("torch", "method")
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: Any = None,
) -> Any:
    """The elements in order along `dim` as (values, indices); always stable, NaN is largest."""
    _require_ordered("Sort", input)
    return delivered(
        "sort", pick(Sort, _Sort, input, dim, True, descending=descending), out, (input,)
    )


@public("torch", "method")
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The indices that put the elements in order along `dim`."""
    with no_grad():
        return delivered("argsort", sort(input, dim, descending)[1], out, (input,))


@public("torch", "method")
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in order along the first dimension."""
    return delivered("msort", sort(input, 0)[0], out, (input,))


@public("torch", "method")
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
) -> Any:
    """The `k` largest (or smallest) elements along `dim` in order, as (values, indices).

    Raises RuntimeError when there are fewer than `k`.
    """
    _require_ordered("topk", input, boolean=False)
    shape = input._storage.physical.shape
    axis = axis_of(dim, len(shape))
    if not 0 <= k <= (shape[axis] if shape else 1):
        raise RuntimeError("selected index k out of range")
    k = k if shape else 1  # PyTorch gives a zero-dim tensor's element for k = 0 as well
    result = pick(Topk, _Topk, input, dim, True, k=k, largest=largest)
    return delivered("topk", result, out, (input,))


@public("torch", "method")
def kthvalue(
    input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The `k`-th smallest element along `dim`, counted from 1, as (values, indices)."""
    _require_numbers("kthvalue", input)
    shape = input._storage.physical.shape
    axis = axis_of(dim, len(shape))
    if not 1 <= k <= (shape[axis] if shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    return delivered("kthvalue", pick(Kthvalue, _Kthvalue, input, dim, keepdim, k=k), out, (input,))


class MedianOfAll(Op):
    """The lower median of a flat array; elements that tie share the gradient."""

    label = "Median"

    def forward(F, x):
        return Median.forward(F, x, axis=0, keepdims=False, size=x.shape[0])[0]

    def backward_x(F, g, x, out):
        return _share_one(F, g, x, out)


class NanmedianOfAll(Op):
    """The lower median of a flat array without its NaN; elements that tie share the gradient."""

    label = "Nanmedian"

    def forward(F, x):
        return Nanmedian.forward(F, x, axis=0, keepdims=False, size=x.shape[0])[0]

    def backward_x(F, g, x, out):
        return _share_one(F, g, x, out)


def _share_one(F: Any, g: Any, x: Any, out: Any) -> Any:
    return F.share_backward(g, x, out, axis=(0,))


def _require_numbers(name: str, input: Tensor) -> None:
    if input._storage.physical.dtype.kind in "bc":
        refuse(f"{name}_cpu", input.dtype)


def _median(name: str, op: Any, whole: Any, kind: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    if dim is not None:
        require_elements(name, input, dim)
        _require_numbers(name, input)
        return pick(op, kind, input, dim, keepdim)
    if not input._storage.physical.size and input.dtype.kind in "fc":
        return input.sum() + float("nan")  # its gradient is empty
    _require_numbers(name, input)
    if not input._storage.physical.size:
        return input.new_full((), iinfo(input.dtype).min)
    return apply(whole, input.reshape(-1))


@public("torch", "method")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower median of all, or along `dim` as (values, indices); NaN if there is one."""
    result = _median("median", Median, MedianOfAll, _Median, input, dim, keepdim)
    return delivered("median", result, out, (input,))


@public("torch", "method")
def nanmedian(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The lower median of what is not NaN, of all or along `dim` as (values, indices)."""
    result = _median("nanmedian", Nanmedian, NanmedianOfAll, _Nanmedian, input, dim, keepdim)
    return delivered("nanmedian", result, out, (input,))


@public("torch", "method")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent element along `dim` as (values, indices); the smallest of several."""
    require_elements("mode", input, dim)
    return delivered("mode", pick(Mode, _Mode, input, dim, keepdim), out, (input,))


class Searchsorted(Op):
    """Where values would be inserted into sorted rows."""

    name = "search_sorted"

    def forward(F, rows, values, sorter, *, side):
        if sorter is not None:
            rows = F.take_along_axis(rows, sorter, axis=-1)
        return F.searchsorted(rows, values, side=side)


@public("torch")
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Where each value of `input` would be inserted into the sorted last dimension.

    `sorted_sequence` is one row for all values, or has `input`'s leading dimensions. Raises
    RuntimeError for shapes that do not match.
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    values = _values_like(sorted_sequence, input)
    rows = sorted_sequence.shape
    if sorter is not None and sorter.shape != rows:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(rows)} and got sorter tensor {list(sorter.shape)}"
        )
    if not rows or (len(rows) > 1 and rows[:-1] != values.shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(rows)} and input value tensor {list(values.shape)}"
        )
    return _search(sorted_sequence, values, sorter, right or side == "right", out_int32, out)


@public("torch")
def bucketize(
    input: Any,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Which of the sorted `boundaries` each value would be inserted before."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    values = _values_like(boundaries, input)
    return _search(boundaries, values, None, right, out_int32, out)


def _values_like(boundaries: Tensor, input: Any) -> Tensor:
    if isinstance(input, Tensor):
        return input
    if as_number(input) is None:
        raise TypeError(f"argument 'input' must be Tensor or Number, not {type(input).__name__}")
    backend = boundaries._storage.backend
    dtype = boundaries.dtype
    if isinstance(input, float) and dtype.kind != "f":
        dtype = promote_types(dtype, boundaries.new_zeros(0).float().dtype)
    return wrap(backend.constant(input, backend.native[dtype]), backend)


def _search(
    rows: Tensor,
    values: Tensor,
    sorter: Tensor | None,
    right: bool,
    out_int32: bool,
    out: Tensor | None,
) -> Tensor:
    dtype = promote_types(rows.dtype, values.dtype)
    side = "right" if right else "left"
    result = apply(Searchsorted, cast(rows, dtype), cast(values, dtype), sorter, side=side)
    if out_int32:
        result = cast(result, int32)
    return delivered("searchsorted", result, out, (rows, values))
