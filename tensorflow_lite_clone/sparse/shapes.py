"""Functions of sparse tensors that move, choose, join or sum elements; new tensors like them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, int64
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.ops.create import constructors
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.index.sort import argsort, searchsorted
from tensorflow_lite_clone.ops.reduce.scan import cumsum
from tensorflow_lite_clone.ops.shape import join
from tensorflow_lite_clone.ops.shape.rearrange import repeat_interleave
from tensorflow_lite_clone.sparse.arithmetic import matching
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.functions import function, method
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor


@function("permute")
def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """The dimensions in another order, sparse ones among themselves and dense ones as well."""
    order = list(dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)
    order = [normalize_dim(dim, input.ndim) for dim in order]
    count = input.sparse_dim()
    if sorted(order) != list(range(input.ndim)):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions, or some come twice: {order}"
        )
    if sorted(order[:count]) != list(range(count)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
            "allowed. Only transpositions within sparse and dense dimensions are supported."
        )
    size = [input._size[dim] for dim in order]
    elements = input._elements.permute(0, *[dim - count + 1 for dim in order[count:]])
    same = input._coalesced and order[:count] == list(range(count))
    return SparseTensor(input._places[order[:count]], elements, size, same)


@function("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two dimensions exchanged, both sparse or both dense."""
    order = list(range(input.ndim))
    dim0, dim1 = normalize_dim(dim0, input.ndim), normalize_dim(dim1, input.ndim)
    order[dim0], order[dim1] = dim1, dim0
    return permute(input, order)


@function("t")
def t(input: SparseTensor) -> SparseTensor:
    """The transposed matrix."""
    if input.sparse_dim() > 2 or input.dense_dim():
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{input.sparse_dim()} sparse and {input.dense_dim()} dense dimensions"
        )
    return input if input.ndim < 2 else transpose(input, 0, 1)


for _name in ("T", "H"):
    setattr(SparseTensor, _name, property(t))
SparseTensor.mT = property(lambda self: transpose(self, -2, -1))  # type: ignore[assignment]


@function("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """A new dimension of size 1; among the sparse ones or right after them it is sparse."""
    axis = normalize_dim(dim, input.ndim + 1)
    size = [*input._size[:axis], 1, *input._size[axis:]]
    count = input.sparse_dim()
    if axis > count:
        elements = input._elements.unsqueeze(axis - count + 1)
        return SparseTensor(input._places, elements, size)
    row = input._places.new_zeros((1, input._nnz()))
    places = join.cat([input._places[:axis], row, input._places[axis:]])
    return SparseTensor(places, input._elements, size)


@function("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices number `index` along `dim`.

    They come in the order of the elements, or in that of the indices if there are no more indices
    than elements.
    """
    axis, count = normalize_dim(dim, input.ndim), input.sparse_dim()
    size = [*input._size[:axis], index.numel(), *input._size[axis + 1 :]]
    if axis >= count:
        elements = input._elements.index_select(axis - count + 1, index)
        return SparseTensor(input._places, elements, size)
    length = input._size[axis]
    if index.numel() and not -length <= index.amin().item() <= index.amax().item() < length:
        raise IndexError(f"index_select(): index out of range for tensor of size {length}")
    index = index.to(int64)
    index = index + (index < 0) * length
    order = argsort(index, stable=True)
    have, want = index[order], input._places[axis].contiguous()
    starts = searchsorted(have, want)
    counts = searchsorted(have, want, right=True) - starts
    owner = repeat_interleave(counts)
    before = cumsum(counts, 0) - counts
    partner = order[starts[owner] + arange(len(owner), device=input.device) - before[owner]]
    if index.numel() <= input._nnz():
        permutation = argsort(partner, stable=True)
        owner, partner = owner[permutation], partner[permutation]
    places = join.cat([input._places[:axis], partner.new_zeros((1, input._nnz())),
                       input._places[axis + 1 :]])[:, owner]  # fmt: skip
    places[axis] = partner
    return SparseTensor(places, input._elements[owner], size)


@function("select")
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """The slice number `index` along `dim`; dense if no sparse dimension is left."""
    axis, count = normalize_dim(dim, input.ndim), input.sparse_dim()
    length = input._size[axis]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input._size)} at "
            f"dimension {dim}"
        )
    size = [*input._size[:axis], *input._size[axis + 1 :]]
    if axis >= count:
        elements = input._elements.select(axis - count + 1, index)
        return SparseTensor(input._places, elements, size, input._coalesced)
    chosen = input._places[axis] == index % length
    elements = input._elements[chosen]
    if count == 1:
        return elements.sum(0)
    kept = [row for row in range(count) if row != axis]
    return SparseTensor(input._places[kept][:, chosen], elements, size)


@method("__getitem__")
def item_at(self: SparseBase, index: Any) -> Tensor:
    """Slices by numbers, of some dimensions; NotImplementedError for parts of a dimension."""
    indices = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in indices:
        at = indices.index(Ellipsis)
        left_out = self.ndim - len(indices) + indices.count(None) + 1
        indices[at : at + 1] = [slice(None)] * left_out
    found: Tensor = self
    dim = 0
    for number in indices:
        if isinstance(number, Tensor) and not number.ndim:
            number = number.item()
        if type(number) is int:
            found = found.select(dim, number)
        elif number is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif isinstance(number, slice) and number == slice(None):
            dim += 1
        else:
            raise NotImplementedError("sparse tensors are indexed by numbers, `:`, `...` and None")
    return found


@function("narrow_copy")
def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """The elements of which the index along `dim` is one of `length` numbers from `start` on."""
    axis, count = normalize_dim(dim, input.ndim), input.sparse_dim()
    size = list(input._size)
    if not 0 <= start <= start + length <= size[axis]:
        raise RuntimeError(
            f"narrow_copy(): start ({start}) + length ({length}) exceeds dimension size "
            f"({size[axis]})"
        )
    size[axis] = length
    if axis >= count:
        elements = input._elements.narrow(axis - count + 1, start, length)
        return SparseTensor(input._places, elements, size, input._coalesced)
    chosen = (input._places[axis] >= start) & (input._places[axis] < start + length)
    places = input._places[:, chosen]
    places[axis] -= start
    return SparseTensor(places, input._elements[chosen], size, input._coalesced)


@function("unbind")
def unbind(input: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along `dim`."""
    return tuple([select(input, dim, i) for i in range(input._size[dim])])


@method("__iter__")
def _iterate(self: SparseTensor) -> Any:
    return iter(unbind(self))


def _all_sparse(tensors: Sequence[Tensor]) -> list[SparseTensor]:
    for place, value in enumerate(tensors):
        if not isinstance(value, SparseTensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {place}."
            )
    return list(tensors)  # type: ignore[arg-type]


@function("cat", "concat", "concatenate")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> SparseTensor:
    """Sparse tensors one after the other along `dim`."""
    parts = _all_sparse(tensors)
    first = parts[0]
    axis, count = normalize_dim(dim, first.ndim), first.sparse_dim()
    for part in parts:
        others = [(a, b) for d, (a, b) in enumerate(zip(first._size, part._size)) if d != axis]
        if part.ndim != first.ndim or part.sparse_dim() != count or any(a != b for a, b in others):
            raise RuntimeError(
                "All tensors must have the same shape and sparse dimensions but along the one of "
                f"concatenation, but got {list(first._size)} and {list(part._size)}"
            )
    starts = list(accumulate([part._size[axis] for part in parts], initial=0))
    size = [*first._size[:axis], starts[-1], *first._size[axis + 1 :]]
    places, elements = [part._places for part in parts], [part._elements for part in parts]
    for number, start in enumerate(starts[:-1]):
        if axis < count:
            shift = places[number].new_zeros((count, 1))
            shift[axis] = start
            places[number] = places[number] + shift
        else:
            shape = list(elements[number].shape)
            inner = axis - count + 1
            shape[inner] = start
            left = elements[number].new_zeros(shape)
            shape[inner] = starts[-1] - starts[number + 1]
            right = elements[number].new_zeros(shape)
            elements[number] = join.cat([left, elements[number], right], inner)
    return SparseTensor(join.cat(places, 1), join.cat(elements), size)


@function("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> SparseTensor:
    """Sparse tensors of one shape along a new dimension."""
    parts = _all_sparse(tensors)
    return cat([unsqueeze(part, dim) for part in parts], dim)


@function("sum")
def total(
    input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The sum over some dimensions: dense if no sparse dimension is left, else coalesced."""
    source = input if dtype is None else input.to(dtype)
    if dim is None or (not is_int(dim) and not len(dim)):
        return source._elements.sum()
    axes = {normalize_dim(axis, input.ndim) for axis in ([dim] if is_int(dim) else dim)}
    count = input.sparse_dim()
    inner = [axis - count + 1 for axis in sorted(axes) if axis >= count]
    elements = source._elements.sum(inner) if inner else source._elements
    kept = [axis for axis in range(count) if axis not in axes]
    size = [length for axis, length in enumerate(input._size) if axis not in axes]
    result: Any
    if kept:
        result = SparseTensor(source._places[kept], elements, size).coalesce()
    else:
        result = elements.sum(0)
    if keepdim:
        for axis in sorted(axes):
            result = result.unsqueeze(axis)
    summed: Tensor = result
    return summed


@function("norm")
def norm(
    input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of all elements, places that come twice summed."""
    if dim is not None and len([dim] if is_int(dim) else dim) not in (0, input.ndim):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
            "contain all dimensions of the input"
        )
    values = input.coalesce()._elements
    return (values if dtype is None else values.to(dtype)).norm(2 if p in ("fro", None) else p)


@function("any")
def has_any(input: SparseTensor) -> Tensor:
    """Whether some element is not zero."""
    return input.coalesce()._elements.any()


@function("item")
def item(input: SparseTensor) -> Any:
    """The one element as a Python number; RuntimeError where there are several."""
    return input.to_dense().item()


@method("__float__")
def _float(self: SparseTensor) -> float:
    return float(item(self))


@method("__int__")
def _int(self: SparseTensor) -> int:
    return int(item(self))


@function("sparse_mask")
def sparse_mask(input: SparseTensor, mask: SparseBase) -> SparseBase:
    """The elements at the places of `mask`, zeros where there are none."""
    elements = matching(input.coalesce(), mask._coordinates())[1]
    return mask._with(elements.reshape(mask._elements.shape))


def _empty(size: Any, sparse_dim: int, dtype: DType, device: Any) -> SparseTensor:
    """A sparse tensor without elements."""
    places = constructors.zeros((sparse_dim, 0), dtype=int64, device=device)
    elements = constructors.zeros((0, *tuple(size)[sparse_dim:]), dtype=dtype, device=device)
    return SparseTensor(places, elements, size, True)


def _like(input: SparseTensor, *, dtype: Any = None, device: Any = None) -> SparseTensor:
    return _empty(input._size, input.sparse_dim(), dtype or input.dtype, device or input.device)


SparseTensor.functions |= {"zeros_like": _like, "empty_like": _like}


@method("new_tensor")
def _new_tensor(self: SparseTensor, data: Any, **options: Any) -> Tensor:
    """A dense tensor of `data` in this one's dtype."""
    return self._elements.new_tensor(data, **options)


def _resized(input: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    if (sparse_dim, dense_dim) != (input.sparse_dim(), input.dense_dim()) and input._nnz():
        raise RuntimeError(
            "changing the number of sparse or dense dimensions of a non-empty sparse tensor is not "
            "supported"
        )
    return SparseTensor(input._places, input._elements, size, input._coalesced)


@method("sparse_resize_")
def _sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    found: SparseTensor = self._assign(_resized(self, size, sparse_dim, dense_dim))
    return found


@method("sparse_resize_and_clear_")
def _sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, _: int) -> SparseTensor:
    found: SparseTensor = self._assign(_empty(size, sparse_dim, self.dtype, self.device))
    return found


@method("resize_as_", "resize_as_sparse_")
def _resize_as_(self: Any, other: SparseTensor, **_: Any) -> SparseTensor:
    found: SparseTensor = _sparse_resize_(self, other._size, other.sparse_dim(), other.dense_dim())
    return found


def converting(name: str) -> Any:
    """The method `name`, to a dtype, of sparse tensors."""

    def convert(self: SparseBase) -> SparseBase:
        return self.to(getattr(self._elements[:0], name)().dtype)

    convert.__doc__ = f"The same places with values in ``{name}``."
    return convert


for _name in "bfloat16 bool byte cdouble cfloat char double float half int long short".split():
    method(_name)(converting(_name))
