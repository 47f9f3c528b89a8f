"""Views of a part: select, narrow, diagonal, windows, splits."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_view
from tensorflow_lite_clone.autograd.inplace import ViewScatter
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import expect_storage, normalize_dim
from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.core.strides import (
    dense_strides,
    extent,
    indexed,
    may_overlap,
    sizes_of,
    unfolded,
)
from tensorflow_lite_clone.core.strides import (
    diagonal as diagonal_geometry,
)
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.storage import bytes_of_memory, offset_of, strides_of
from tensorflow_lite_clone.tensor import Tensor

_ALL = slice(None)


class Select(Op):
    """``x[index]``, whose last item is an integer; `shape` is that of x."""

    view = True

    def forward(F, x, *, index, shape):
        return F.getitem(x, index)

    def backward_x(F, g, *, index, shape):
        return F.embed(g, view=Select, parameters={"index": index, "shape": shape}, shape=shape)


class Slice(Op):
    """``x[index]``, whose last item is a slice; `shape` is that of x."""

    view = True

    def forward(F, x, *, index, shape):
        return F.getitem(x, index)

    def backward_x(F, g, *, index, shape):
        return F.embed(g, view=Slice, parameters={"index": index, "shape": shape}, shape=shape)


class BasicIndex(Op):
    """``x[index]`` with None among integers and slices; `shape` is that of x."""

    label = "Unsqueeze"
    view = True

    def forward(F, x, *, index, shape):
        return F.as_strided(x, *indexed(x.shape, F.backend.strides(x), index))

    def backward_x(F, g, *, index, shape):
        parameters = {"index": index, "shape": shape}
        return F.embed(g, view=BasicIndex, parameters=parameters, shape=shape)


class Diagonal(Op):
    """Diagonals of planes, as the last dimension; `shape` is that of x."""

    view = True

    def forward(F, x, *, offset, dim1, dim2, shape):
        strides = F.backend.strides(x)
        return F.as_strided(x, *diagonal_geometry(x.shape, strides, offset, dim1, dim2))

    def backward_x(F, g, *, offset, dim1, dim2, shape):
        parameters = {"offset": offset, "dim1": dim1, "dim2": dim2, "shape": shape}
        return F.embed(g, view=Diagonal, parameters=parameters, shape=shape)


class AsStrided(Op):
    """Any geometry over the memory; `offset` counts from x's first element."""

    view = True
    stride_dependent = True

    def forward(F, x, *, shape, strides, offset, source):
        return F.as_strided(x, shape, strides, offset)

    def backward_x(F, g, *, shape, strides, offset, source):
        return F.strided_gradient(g, shape=shape, strides=strides, offset=offset, source=source)


class Unfold(Op):
    """Windows along a dimension, in a new last one; `shape` is that of x."""

    view = True

    def forward(F, x, *, axis, size, step, shape):
        geometry = unfolded(x.shape, F.backend.strides(x), axis, size, step)
        return F.as_strided(x, *geometry)

    def backward_x(F, g, *, axis, size, step, shape):
        return F.fold_windows(g, axis=axis, size=size, step=step, shape=shape)


class FoldWindows(Op):
    """The sum of windows at the places that `Unfold` took them from."""

    label = "UnfoldBackward"

    def forward(F, g, *, axis, size, step, shape):
        if not shape:
            zero = F.zeros(shape, dtype=g.dtype)
            return zero + F.sum(g) if size else zero
        # in blocks of `step` elements: a window covers few of them, the same part of each
        count, length = g.shape[axis], shape[axis]
        step = step if count > 1 else max(size, 1)
        blocks = max(count + (size - 1) // step, -(-length // step))
        before, after = shape[:axis], shape[axis + 1 :]
        lines = F.zeros((*before, blocks, step, *after), dtype=g.dtype)
        windows = F.moveaxis(g, -1, axis + 1)
        outer = (_ALL,) * axis
        for number, first in enumerate(range(0, size, step)):
            block = windows[(*outer, _ALL, slice(first, first + step))]
            part = lines[(*outer, slice(number, number + count), slice(block.shape[axis + 1]))]
            F.backend.write(part, part + block)
        line = F.reshape(lines, (*before, blocks * step, *after))
        return F.copy(line[(*outer, slice(length))]) if blocks * step > length else line

    def backward_g(F, g, *, axis, size, step, shape):
        return F.run(Unfold, g, axis=axis, size=size, step=step, shape=shape)


class Split(Op):
    """Consecutive parts of the given sizes along a dimension."""

    view = True

    def forward(F, x, *, sizes, axis):
        before = (_ALL,) * axis
        parts = []
        start = 0
        for size in sizes:
            parts.append(F.getitem(x, (*before, slice(start, start + size))))
            start += size
        return tuple(parts)

    def backward_x(F, g, *, sizes, axis):
        return F.concat(g, axis=axis) if type(g) is tuple else g


class Unbind(Op):
    """All slices along a dimension, without it."""

    view = True

    def forward(F, x, *, axis):
        before = (_ALL,) * axis
        return tuple([F.getitem(x, (*before, i, ...)) for i in range(x.shape[axis])])

    def backward_x(F, g, *, axis):
        return F.stack(g if type(g) is tuple else (g,), axis=axis)


@public("torch", "method")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice number `index` along `dim`, without that dimension."""
    shape = input._storage.physical.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis, place = normalize_dim(dim, len(shape)), whole_number("index", index)
    size = shape[axis]
    if not -size <= place < size:
        raise IndexError(
            f"select(): index {place} out of range for tensor of size {list(shape)} at dimension "
            f"{axis}"
        )
    return apply_view(Select, input, index=(_ALL,) * axis + (place, ...), shape=shape)


@public("torch", "method")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements of dimension `dim`, from `start` on."""
    shape = input._storage.physical.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.ndim or start.dtype.kind not in "iu"):
        raise RuntimeError(
            f"narrow(): start must be a 0-dim integral Tensor, but got {start.ndim}D of "
            f"{start.dtype.short_name}"
        )
    axis = normalize_dim(dim, len(shape))
    first, length = whole_number("start", start), whole_number("length", length)
    size = shape[axis]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= first <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {first})"
        )
    if first < 0:
        first += size
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return _sliced(input, axis, slice(first, first + length))


def _sliced(x: Tensor, axis: int, part: slice) -> Tensor:
    return apply_view(Slice, x, index=(_ALL,) * axis + (part,), shape=x._storage.physical.shape)


@public("torch", "method")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of the planes (dim1, dim2) as last dimension; `offset` > 0 lies above."""
    shape = input._storage.physical.shape
    diagonal_geometry(shape, shape, offset, dim1, dim2)  # raises for wrong dims
    parameters = {
        "offset": offset,
        "dim1": normalize_dim(dim1, len(shape)),
        "dim2": normalize_dim(dim2, len(shape)),
    }
    return apply_view(Diagonal, input, **parameters, shape=shape)


@public("torch", "method")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory with any sizes and strides (in elements).

    `storage_offset` counts from the memory's start, by default it is the tensor's own. Raises
    RuntimeError when the view would leave the memory.
    """
    storage = input._storage
    shape, strides = sizes_of((size,)), sizes_of((stride,), "stride")
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any([step < 0 for step in strides]):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(strides)}"
        )
    array, backend = storage.array, storage.backend
    expect_storage(shape, 1)
    own = offset_of(storage)
    start = own if storage_offset is None else whole_number("storage_offset", storage_offset)
    itemsize = array.dtype.itemsize
    available = bytes_of_memory(storage)
    needed = (start + extent(shape, strides)) * itemsize
    if start < 0 or (0 not in shape and needed > available):
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start}, "
            f"and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {available}"
        )
    source = (array.shape, backend.strides(array))
    output = apply_view(
        AsStrided, input, shape=shape, strides=strides, offset=start - own, source=source
    )
    view = input._view
    if view is not None and view.base.dtype is input.dtype:
        # It may look beyond its input: after a write the way to the base must not lead there.
        base = view.base._storage
        parameters = {
            "shape": shape,
            "strides": strides,
            "offset": start - offset_of(base),
            "source": (base.array.shape, backend.strides(base.array)),
        }
        output._view.last = (None, (AsStrided, parameters, None))
    return output


@public("method")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` elements along `dimension`, every `step`, in a new last dimension."""
    shape = self._storage.physical.shape
    axis = normalize_dim(dimension, len(shape))
    unfolded(shape, shape, axis, size, step)  # raises for wrong sizes
    return apply_view(Unfold, self, axis=axis, size=size, step=step, shape=shape)


def _place(name: str, input: Tensor, dim: Any) -> tuple[tuple, int]:
    shape = input._storage.physical.shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    return shape, normalize_dim(dim, len(shape))


@public("torch", "method")
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple:
    """Consecutive views of `split_size` elements (the last may be smaller) or of listed sizes."""
    if split_size_or_sections is None:
        split_size_or_sections = split_size
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    shape, axis = _place("split", tensor, dim)
    step, size = whole_number("split_size", split_size_or_sections), shape[axis]
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0:
        if size:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
            )
        sizes: tuple = (0,)
    else:
        count = max(-(-size // step), 1)
        sizes = (step,) * (count - 1) + (size - step * (count - 1),)
    return apply(Split, tensor, sizes=sizes, axis=axis)


@public("torch", "method")
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple:
    """Consecutive views of the listed sizes, which must add up to the dimension's."""
    shape, axis = _place("split_with_sizes", input, dim)
    sizes = sizes_of((tuple(split_sizes),), "split_sizes")
    if any([size < 0 for size in sizes]):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[axis]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[axis]} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    return apply(Split, input, sizes=sizes, axis=axis) if sizes else ()


@public("torch", "method")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple:
    """At most `chunks` views of equal size; the last may be smaller."""
    shape, axis = _place("chunk", input, dim)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = shape[axis]
    step = -(-size // chunks)
    if step == 0:
        return apply(Split, input, sizes=(0,) * chunks, axis=axis)
    return split(input, step, axis)


@public("torch", "method")
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *,
    indices: Any = None, sections: Any = None,
) -> tuple:  # fmt: skip
    """Views of nearly equal size, their number given, or the places where to split."""
    splits = indices_or_sections
    if splits is None:
        splits = sections if indices is None else indices
    shape, axis = _place("tensor_split", input, dim)
    if isinstance(splits, Tensor):
        splits = splits.tolist()
    size = shape[axis]
    if not isinstance(splits, (tuple, list)):
        count = whole_number("wanted", splits)
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        bounds = [i * (size // count) + min(i, size % count) for i in range(count + 1)]
        pairs = list(zip(bounds, bounds[1:]))
    else:
        places = list(sizes_of((tuple(splits),), "indices"))
        pairs = list(zip([0, *places], [*places, size]))
    return tuple([_sliced(input, axis, slice(start, stop)) for start, stop in pairs])


def _divided(name: str, input: Tensor, splits: Any, axis: int, least: int) -> tuple:
    shape = input._storage.physical.shape
    if len(shape) < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension"
            f"{'s' if least > 1 else ''}, but got a tensor with {len(shape)} dimensions!"
        )
    if not isinstance(splits, (tuple, list)):
        count = whole_number("wanted", splits)
        if count <= 0 or shape[axis] % count:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {axis}, but the size of the "
                f"dimension {shape[axis]} is not divisible by the split_size {count}!"
            )
    return tensor_split(input, splits, axis)


@public("torch", "method")
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Views divided along the second dimension (the first of one-dimensional tensors)."""
    axis = 0 if input._storage.physical.ndim == 1 else 1
    return _divided("hsplit", input, indices_or_sections, axis, 1)


@public("torch", "method")
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Views divided along the first dimension."""
    return _divided("vsplit", input, indices_or_sections, 0, 2)


@public("torch", "method")
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Views divided along the third dimension."""
    return _divided("dsplit", input, indices_or_sections, 2, 3)


def _unbind(input: Tensor, dim: int = 0) -> tuple:
    """A tuple of all slices along `dim`, as views without that dimension."""
    shape = input._storage.physical.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = normalize_dim(dim, len(shape))
    return apply(Unbind, input, axis=axis) if shape[axis] else ()


# Two objects, for a subclass that overrides the method calls the function to do so.
_unbind.__name__ = _unbind.__qualname__ = "unbind"
unbind = public("torch")(_unbind)
unbind_method = public("method")(_unbind)


def _scattered(input: Tensor, src: Tensor, op: type[Op], parameters: dict) -> Tensor:
    """A copy of `input` with `src` where the view ``op(x, **parameters)`` looks."""
    storage = input._storage
    have = storage.backend.F.run(op, storage.array, **parameters).shape
    if src._storage.physical.shape != have:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(have)}"
        )
    if src.dtype is not input.dtype:
        src = src.to(input.dtype)
    shape, strides = storage.physical.shape, strides_of(storage)
    if may_overlap(shape, strides):
        strides = dense_strides(shape, strides)
    return apply(ViewScatter, input, src, chain=((op, parameters, None),), strides=strides)


@public("torch", "method")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` as the slice number `index` along `dim`."""
    shape = input._storage.physical.shape
    axis = normalize_dim(dim, len(shape))
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)}")
    place = (_ALL,) * axis + (index, ...)
    return _scattered(input, src, Select, {"index": place, "shape": shape})


@public("torch", "method")
@with_out
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy of `input` with `src` as its part ``start:end:step`` along `dim`."""
    shape = input._storage.physical.shape
    place = (_ALL,) * normalize_dim(dim, len(shape)) + (slice(start, end, step),)
    return _scattered(input, src, Slice, {"index": place, "shape": shape})


@public("torch", "method")
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of `input` with `src` as the diagonals that `diagonal` shows."""
    shape = input._storage.physical.shape
    parameters = {
        "offset": offset,
        "dim1": normalize_dim(dim1, len(shape)),
        "dim2": normalize_dim(dim2, len(shape)),
        "shape": shape,
    }
    return _scattered(input, src, Diagonal, parameters)
