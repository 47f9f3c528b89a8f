"""Sums, products and powers of which an operand is sparse, with PyTorch's places and order."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import can_cast
from tensorflow_lite_clone.ops.create.constructors import tensor, zeros
from tensorflow_lite_clone.ops.index.sort import searchsorted
from tensorflow_lite_clone.ops.pointwise._operands import as_number, operand_dtype
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.sparse.functions import function, method
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor

_NO_DENSE = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."


@function("add", "__add__")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input + alpha * other`` of two sparse tensors, or of a dense and a sparse one: dense.

    Two whose values lie in memory without gaps are merged, as in PyTorch (not on CUDA): the lesser
    of the places that both are at comes next, and equal ones become one. Else one follows the
    other. RuntimeError for different shapes, and for a sparse tensor plus a dense one.
    """
    if not isinstance(other, SparseTensor):
        raise RuntimeError(_NO_DENSE)
    if not isinstance(input, SparseTensor):
        return _added_to(_dense(input, other), other, alpha)
    empty = not (input._nnz() and other._nnz())
    if input._size != other._size or not (empty or input.sparse_dim() == other.sparse_dim()):
        raise RuntimeError(
            "add: expected sizes of 'self' and 'other' to match, but "
            f"{list(input._size)} != {list(other._size)}"
        )
    dtype = operand_dtype(input._elements, other._elements)
    first, second = input._elements.to(dtype), _times(other._elements.to(dtype), alpha)
    if not other._nnz():
        return input._with(first)
    if not input._nnz():
        return other._with(second)
    both = input._coalesced and other._coalesced
    joined = SparseTensor(cat([input._places, other._places], 1), cat([first, second]), input._size)
    if both:
        return joined.coalesce()
    if input.is_cuda or not (first.is_contiguous() and second.is_contiguous()):
        return joined
    return _gathered(joined, _merged(input._flat().tolist(), other._flat().tolist()))


def _merged(first: list[int], second: list[int]) -> list[int]:
    """Per place of two lists where it is in the merged list; equal heads are one."""
    places = [0] * (len(first) + len(second))
    i = j = count = 0
    while i < len(first) or j < len(second):
        takes_first = j == len(second) or (i < len(first) and first[i] <= second[j])
        takes_second = i == len(first) or (j < len(second) and second[j] <= first[i])
        if takes_first:
            places[i] = count
            i += 1
        if takes_second:
            places[len(first) + j] = count
            j += 1
        count += 1
    return places


def _gathered(x: SparseTensor, where: list[int]) -> SparseTensor:
    """The elements of `x`, each added to those that come to the same of the new places."""
    count = max(where) + 1
    owner = dict(zip(reversed(where), range(len(where) - 1, -1, -1), strict=True))
    sources = tensor([owner[place] for place in range(count)], device=x.device)
    elements = x._elements.new_zeros((count, *x._elements.shape[1:]))
    elements = elements.index_add(0, tensor(where, device=x.device), x._elements)
    return SparseTensor(x._places.index_select(1, sources), elements, x._size)


def _dense(input: Any, other: SparseTensor) -> Tensor:
    """What `other` is added to, in the dtype of the sum; RuntimeError for another shape."""
    shape = input.shape if isinstance(input, Tensor) else ()
    if shape != other._size:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(shape)} "
            f"while other has size {list(other._size)} (FYI: dense-sparse addition does not "
            "currently support broadcasting)"
        )
    dense: Tensor = input.to(operand_dtype(input, other._elements))
    return dense


def _added_to(dense: Tensor, other: SparseTensor, alpha: Any, suffix: str = "") -> Tensor:
    """`dense` with the elements of `other` added, or, with the suffix ``_``, in its memory."""
    values = _times(other._elements.to(dense.dtype), alpha)
    rows = other._places
    total: Tensor
    if rows.shape[0] == 1:
        total = getattr(dense, f"index_add{suffix}")(0, rows[0], values)
    elif rows.shape[0] == 0:
        total = getattr(dense, f"add{suffix}")(values.sum(0))
    else:
        total = getattr(dense, f"index_put{suffix}")(tuple(rows), values, accumulate=True)
    return total


def _times(values: Tensor, alpha: Any) -> Tensor:
    return values if type(alpha) is int and alpha == 1 else values * alpha


@function("add_", "__iadd__")
def add_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of `add`; a dense tensor keeps its memory."""
    if isinstance(input, SparseTensor):
        added: Any = add(input, other, alpha=alpha)
        return input._assign(added)
    if not can_cast(_dense(input, other).dtype, input.dtype):
        raise RuntimeError(
            f"Can't convert result type {other.dtype.short_name} to output "
            f"{input.dtype.short_name} in add operation"
        )
    return _added_to(input, other, alpha, "_")


@method("__radd__")
def _reflected_add(self: SparseTensor, other: Any) -> Tensor:
    return add(other, self)


@function("sub", "subtract", "__sub__")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input - alpha * other``; see `add`."""
    return add(input, other, alpha=-alpha)


@function("sub_", "subtract_", "__isub__")
def sub_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of `sub`."""
    return add_(input, other, alpha=-alpha)


@method("__rsub__")
def _reflected_sub(self: SparseTensor, other: Any) -> Tensor:
    return sub(other, self)


@function("mul", "multiply", "__mul__", "__rmul__")
def mul(input: Any, other: Any) -> SparseTensor:
    """The product with a number, a dense tensor that broadcasts, or a sparse one of the same shape.

    It has a sparse factor's places. Of two sparse ones that are both coalesced, those in common;
    else those of the one that is not, or has fewer, with zeros where the other has none.
    """
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if isinstance(other, SparseTensor):
        return _common(input, other)
    if isinstance(other, Tensor) and other.ndim:
        if other.ndim > input.ndim:
            size = other.shape[: other.ndim - input.ndim] + input._size
            return mul(input.coalesce().to_dense().expand(size).to_sparse(), other)
        other = other.expand(input._size)[tuple(input._places)]
    return input._with(input._elements * other)


def matching(ordered: SparseTensor, source: SparseTensor) -> tuple[Tensor, Tensor]:
    """Per place of `source` whether `ordered`, which is coalesced, has it, and its element there.

    The element is zero where it has not.
    """
    have, want = ordered._flat(), source._flat()
    if not ordered._nnz():
        return want < 0, ordered._elements.new_zeros((len(want), *ordered._elements.shape[1:]))
    at = searchsorted(have, want).clamp(max=ordered._nnz() - 1)
    found = have[at] == want
    flags = found.reshape((-1,) + (1,) * ordered.dense_dim())
    return found, ordered._elements[at].masked_fill(~flags, 0)


def _common(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    if x._size == y._size and not (x._nnz() and y._nnz()):
        return zero_(x.detach().to(operand_dtype(x._elements, y._elements), copy=True))
    if x._size != y._size or x.sparse_dim() != y.sparse_dim():
        raise RuntimeError(
            "mul: expected 'self' and 'other' to have same sizes and sparse dimensions, but got "
            f"{list(x._size)} and {list(y._size)}"
        )
    both = x._coalesced and y._coalesced
    if x._coalesced == y._coalesced:
        swapped = x._nnz() < y._nnz()
    else:
        swapped = y._coalesced
    ordered, source = (y, x) if swapped else (x, y)  # look up each place of `source` in `ordered`
    found, factor = matching(ordered.coalesce(), source)
    if both:
        places = source._places[:, found]
        return SparseTensor(places, (source._elements * factor)[found], x._size, True)
    return source._with(source._elements * factor)


@function("mul_", "multiply_", "__imul__")
def mul_(input: Tensor, other: Any) -> Tensor:
    """In-place form of `mul`; a sparse tensor gets new values, as in PyTorch."""
    product = mul(input, other)
    if isinstance(input, SparseTensor):
        return input._assign(product)
    return input.copy_(product.to_dense())


def _divisor(input: Any, other: Any) -> None:
    if isinstance(other, Tensor) and (other.ndim or not isinstance(input, SparseTensor)):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(other.shape)} for divisor)"
        )


@function("div", "divide", "true_divide", "__truediv__")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """A sparse tensor over a number or zero-dim tensor; coalesced first if the result is rounded.

    RuntimeError for other divisors.
    """
    _divisor(input, other)
    x = input if rounding_mode is None else input.coalesce()
    quotient: SparseTensor = x._with(x._elements.div(other, rounding_mode=rounding_mode))
    return quotient


@method("__rtruediv__")
def _reflected_div(self: SparseTensor, other: Any) -> SparseTensor:
    return div(other if isinstance(other, Tensor) else tensor(other), self)


@function("div_", "divide_", "true_divide_", "__itruediv__")
def div_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of `div`."""
    _divisor(input, other)
    if rounding_mode is None:
        input._elements.div_(other)
        return input
    return input._assign(div(input, other, rounding_mode=rounding_mode))


@function("floor_divide", "__floordiv__")
def floor_divide(input: Any, other: Any) -> SparseTensor:
    """`div` rounded down."""
    return div(input, other, rounding_mode="floor")


@function("floor_divide_", "__ifloordiv__")
def floor_divide_(input: Any, other: Any) -> Tensor:
    """In-place form of `floor_divide`."""
    return div_(input, other, rounding_mode="floor")


@function("pow", "__pow__")
def power(input: Any, exponent: Any) -> SparseTensor:
    """Each element of the coalesced tensor to a power that is a number other than 0."""
    number = as_number(exponent)
    if number is None or not isinstance(input, SparseTensor):
        raise NotImplementedError("powers of sparse tensors by numbers only")
    if number == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor "
            "dense"
        )
    x = input.coalesce()
    return x._with(x._elements**exponent)


@function("neg", "negative", "__neg__")
def neg(input: SparseTensor) -> SparseTensor:
    """``-input``."""
    return input._with(-input._elements)


@function("neg_", "negative_")
def neg_(input: SparseTensor) -> SparseTensor:
    """In-place form of `neg`."""
    input._elements.neg_()
    return input


@function("positive", "__pos__")
def positive(input: SparseTensor) -> SparseTensor:
    """`input` itself."""
    return input


@function("zero_")
def zero_(input: SparseTensor) -> SparseTensor:
    """Forget all elements."""
    places = zeros((input.sparse_dim(), 0), dtype=input._places.dtype, device=input.device)
    elements = input._elements.new_zeros((0, *input._elements.shape[1:]))
    return input._assign(SparseTensor(places, elements, input._size, True))


@function("copy_")
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Become a copy of another sparse tensor; RuntimeError between dense and sparse ones."""
    if not isinstance(src, SparseTensor) or not isinstance(input, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input.type()} and src type = {src.type()}"
        )
    return input._assign(src.to(input.device).clone())


#: Functions that leave zero at zero: over the values of the coalesced tensor. Those in the second
#: list have in-place forms in all layouts; here these want the tensor coalesced.
_POINTWISE = "isnan isinf isposinf isneginf signbit square nan_to_num"
IN_PLACE = """abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf
    erfinv expm1 floor frac log1p rad2deg relu round sgn sign sin sinh sqrt tan tanh trunc"""


def _pointwise(name: str) -> None:
    def call(input: SparseTensor, *args: Any) -> SparseTensor:
        x = input.coalesce()
        return x._with(getattr(x._elements, name)(*args))

    def call_(input: SparseTensor) -> SparseTensor:
        if not input._coalesced:
            raise RuntimeError(f"{name}_ requires coalesced input")
        return input._assign(call(input))

    call.__name__, call_.__name__ = name, f"{name}_"
    call.__doc__ = f"`{name}` of the values, once the tensor is coalesced."
    call_.__doc__ = f"In-place form of `{name}`, of a coalesced tensor."
    function(name, *(["__abs__"] if name == "abs" else []))(call)
    if name in IN_PLACE.split():
        function(f"{name}_")(call_)


for _name in f"{_POINTWISE} {IN_PLACE}".split():
    _pointwise(_name)
