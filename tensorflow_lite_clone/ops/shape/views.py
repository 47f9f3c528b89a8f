"""Views of another shape: reshape, permute, squeeze, expand and their kin.

They share memory with their input and have the strides PyTorch gives them.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_view, view_form, view_of
from tensorflow_lite_clone.core.dtypes import DType, as_dtype
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import (
    broadcast_shapes,
    infer_size,
    normalize_dim,
    normalize_dims,
)
from tensorflow_lite_clone.core.signature import checked, whole_number
from tensorflow_lite_clone.core.strides import (
    expanded,
    sizes_of,
    unsqueezed,
    view_strides,
    wanted_sizes,
)
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.reduce._arguments import override_or_raise
from tensorflow_lite_clone.ops.shape._views import storage_of
from tensorflow_lite_clone.ops.shape.slices import offset_of
from tensorflow_lite_clone.tensor import Tensor


class View(Op):
    """Another shape over the same memory; on arrays where that is impossible, a copy."""

    view = True

    def forward(F, x, *, shape, source):
        backend = F.backend
        if backend.is_contiguous(x) and (1 not in shape or 1 not in source):
            return F.reshape(x, shape)
        strides = view_strides(x.shape, backend.strides(x), shape)
        # A gradient may lie elsewhere than the value.
        return F.reshape(x, shape) if strides is None else F.as_strided(x, shape, strides)

    def backward_x(F, g, *, shape, source):
        return F.reshape(g, source)


class UnsafeView(Op):
    """Another shape in new memory, for layouts that cannot be viewed so."""

    def forward(F, x, *, shape, source):
        return F.reshape(x, shape)

    def backward_x(F, g, *, shape, source):
        return F.reshape(g, source)


class ViewDtype(Op):
    """The same bytes read as another dtype."""

    view = True

    def forward(F, x, *, dtype):
        return F.bitcast(x, F.backend.native[dtype])


class Permute(Op):
    """Dimensions in another order."""

    view = True

    def forward(F, x, *, axes):
        return F.permute_dims(x, axes)

    def backward_x(F, g, *, axes):
        return F.permute_dims(g, tuple(sorted(range(len(axes)), key=axes.__getitem__)))


class Transpose(Op):
    """Two dimensions exchanged."""

    view = True

    def forward(F, x, *, axes):
        return F.permute_dims(x, axes)

    def backward_x(F, g, *, axes):
        return F.permute_dims(g, axes)


class Squeeze(Op):
    """Without the given dimensions, of size one."""

    view = True

    def forward(F, x, *, axis, shape):
        return F.squeeze(x, axis=axis)

    def backward_x(F, g, *, axis, shape):
        return F.reshape(g, shape)


class Unsqueeze(Op):
    """With a new dimension of size one."""

    view = True

    def forward(F, x, *, axis):
        shape = x.shape
        if F.backend.is_contiguous(x):
            return F.reshape(x, (*shape[:axis], 1, *shape[axis:]))
        return F.as_strided(x, *unsqueezed(shape, F.backend.strides(x), axis))

    def backward_x(F, g, *, axis):
        return F.squeeze(g, axis=axis)


class Expand(Op):
    """Dimensions of size one repeated without a copy."""

    view = True

    def forward(F, x, *, shape):
        return F.as_strided(x, *expanded(x.shape, F.backend.strides(x), shape))

    def backward_x(F, g, *, shape):
        return g  # the engine sums over what was repeated


apply_reshape = view_form("apply_reshape", "shape", "source")
apply_permute = view_form("apply_permute", "axes")


@public("method", flat=True)
def view(self: Tensor, *shape: Any, dtype: DType | None = None, size: Any = None) -> Tensor:
    """This memory in another shape (``view(2, -1)``), or read as another dtype.

    Raises RuntimeError when the strides do not allow it; `reshape` copies then.
    """
    if dtype is not None or not shape or type(shape[0]) is not int:
        if shape and isinstance(shape[0], (DType, type)):
            return _view_dtype(self, as_dtype(shape[0]))
        if dtype is not None:
            return _view_dtype(self, as_dtype(dtype))
        if not shape:
            if size is None:
                raise TypeError("view() received neither a shape nor a dtype")
            shape = (tuple(size),)
    storage = self._storage
    array = storage.array
    source = array.shape
    sizes = wanted_sizes(shape, array.size)
    backend = storage.backend
    if not backend.is_contiguous(array) and (
        view_strides(source, backend.strides(array), sizes) is None
    ):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return apply_reshape(View, self, sizes, source)


def _view_dtype(x: Tensor, dtype: DType) -> Tensor:
    have, shape = x.dtype, x._storage.physical.shape
    strides = x._storage.backend.strides(x._storage.array)
    if have.itemsize != dtype.itemsize:
        action = f"view {have.short_name} as {dtype.short_name} (different element sizes)"
        if not shape:
            raise RuntimeError(f"self.dim() cannot be 0 to {action}")
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to {action}, but got {strides[-1]}")
        ratio = dtype.itemsize // have.itemsize
        if ratio > 1:
            if shape[-1] % ratio:
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {ratio} to {action}, but got {shape[-1]}"
                )
            offset = offset_of(x._storage)
            if offset % ratio:
                raise RuntimeError(
                    f"self.storage_offset() must be divisible by {ratio} to {action}, but got "
                    f"{offset}"
                )
            for dim, stride in enumerate(strides[:-1]):
                if stride % ratio:
                    raise RuntimeError(
                        f"self.stride({dim}) must be divisible by {ratio} to {action}, but got "
                        f"{stride}"
                    )
    return apply_view(ViewDtype, x, dtype=dtype)


@public("torch", "method", flat=True)
def reshape(input: Tensor, *args: Any, **shape: Any) -> Tensor:
    """`input` in another shape: a view where the strides allow it, else a copy.

    One size may be -1; raises RuntimeError when the number of elements does not fit.
    """
    try:
        storage = input._storage
    except AttributeError as error:
        return override_or_raise(error, reshape, input, *args, **shape)
    array = storage.array
    source = array.shape
    if shape:
        args = (sizes_of(args, "shape", shape),)
    new_shape = wanted_sizes(args, array.size)
    backend = storage.backend
    if not backend.is_contiguous(array) and (
        view_strides(source, backend.strides(array), new_shape) is None
    ):
        return apply(UnsafeView, input, shape=new_shape, source=source)
    return apply_reshape(View, input, new_shape, source)


@public("method", flat=True)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """This memory in `other`'s shape."""
    return view(self, tuple(other._storage.physical.shape))


@public("method")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in `other`'s shape; see `reshape`."""
    return reshape(self, tuple(other._storage.physical.shape))


@public("torch", "method")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` made one; a zero-dim tensor becomes one-dimensional."""
    shape = input._storage.physical.shape
    ndim = len(shape)
    start, end = normalize_dim(start_dim, ndim), normalize_dim(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end and ndim:
        return input
    return reshape(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@public("torch", "method")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Dimension `dim` divided into several of the given `sizes`, one of which may be -1."""
    shape = input._storage.physical.shape
    place = normalize_dim(dim, len(shape))
    target = sizes_of((tuple(sizes),), "sizes")
    if not target:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        found = infer_size(target, shape[place])
    except RuntimeError as error:
        if "inferred" in str(error) or "dimension" in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(target)} don't multiply up to the size of dim "
            f"{dim} ({shape[place]}) in the input tensor"
        ) from None
    return view(input, (*shape[:place], *found, *shape[place + 1 :]))


@public("torch", "method")
def ravel(input: Tensor) -> Tensor:
    """All elements in one contiguous dimension."""
    return reshape(input.contiguous(), (-1,))


@public("torch", "method", flat=True)
def permute(input: Tensor, *args: Any, **dims: Any) -> Tensor:
    """Dimensions in the order `dims`; RuntimeError unless each is named once."""
    try:
        array = storage_of("permute", input).array
    except NotStrided as reason:
        return reason.answer("permute", input, *args, **dims)
    except TypeError as error:
        return override_or_raise(error, permute, input, *args, **dims)
    order = sizes_of(args, "dims", dims)
    return apply_permute(Permute, input, _ordered(order, array.ndim))


@lru_cache(1024)
def _ordered(order: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """The dims of `permute` in ``[0, ndim)``; torch's RuntimeErrors where they do not fit."""
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal "
            f"to len(dims) = {len(order)}"
        )
    axes = tuple([dim if 0 <= dim < ndim else normalize_dim(dim, ndim) for dim in order])
    if len(set(axes)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return axes


@lru_cache(1024)
def _exchanged(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    first, second = normalize_dim(dim0, ndim), normalize_dim(dim1, ndim)
    axes = list(range(ndim))
    if ndim:
        axes[first], axes[second] = second, first
    return tuple(axes)


@public("torch", "method", names=("transpose", "swapaxes", "swapdims"), flat=True)
def transpose(
    input: Tensor, dim0: Any = None, dim1: Any = None, *, axis0: Any = None, axis1: Any = None
) -> Tensor:
    """Dimensions `dim0` and `dim1` exchanged."""
    try:
        array = storage_of("transpose", input).array
    except NotStrided as reason:
        return reason.answer("transpose", input, dim0, dim1)
    except TypeError as error:
        return override_or_raise(error, transpose, input, dim0, dim1)
    if dim0 is None or dim1 is None:
        dim0, dim1 = (axis0 if dim0 is None else dim0), (axis1 if dim1 is None else dim1)
    if type(dim0) is not int or type(dim1) is not int:
        dim0, dim1 = whole_number("argument 'dim0'", dim0), whole_number("argument 'dim1'", dim1)
    return apply_permute(Transpose, input, _exchanged(array.ndim, dim0, dim1))


@public("torch", "method", flat=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions as they are."""
    try:
        array = storage_of("t", input).array
    except NotStrided as reason:
        return reason.answer("t", input)
    except TypeError as error:
        return override_or_raise(error, t, input)
    if array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {array.ndim}D")
    return apply_permute(Transpose, input, (1, 0) if array.ndim == 2 else (0,)[: array.ndim])


@public("torch", "method", names=("movedim", "moveaxis"))
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` (one or several) moved to the places `destination`."""
    ndim = input._storage.physical.ndim
    have, want = (
        (places,) if hasattr(places, "__index__") else tuple(places)
        for places in (source, destination)
    )
    if len(have) != len(want):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(have)} dims) should contain the same number of dims as destination "
            f"({list(want)} dims)"
        )
    have, want = normalize_dims(have, ndim), normalize_dims(want, ndim)
    if not ndim:
        return apply_permute(Permute, input, ())
    rest = iter([dim for dim in range(ndim) if dim not in have])
    axes = tuple([have[want.index(d)] if d in want else next(rest) for d in range(ndim)])
    return apply_permute(Permute, input, axes)


@public("torch", "method")
def squeeze(input: Tensor, dim: Any = None, *more: int) -> Tensor:
    """Without its dimensions of size one, or only those of them that `dim` names.

    Several dims are one tuple, or arguments of their own: ``x.squeeze(0, 2)``.
    """
    shape = input._storage.physical.shape
    if more:
        dim = (dim, *more)
    if dim is None:
        axes = tuple([axis for axis, size in enumerate(shape) if size == 1])
    else:
        axes = tuple([d for d in normalize_dims(dim, len(shape)) if shape and shape[d] == 1])
    return apply_view(Squeeze, input, axis=axes, shape=shape)


@public("torch", "method")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dimension of size one inserted before `dim`, at the end for -1."""
    return apply_view(Unsqueeze, input, axis=normalize_dim(dim, input._storage.physical.ndim + 1))


@public("method", flat=True)
def expand(self: Tensor, *args: Any, implicit: bool = False, **size: Any) -> Tensor:
    """Dimensions of size one repeated, and new leading ones, without a copy; -1 keeps a size."""
    storage = self._storage
    array, backend = storage.array, storage.backend
    new_shape = sizes_of(args, "size", size)
    shape, strides = expanded(array.shape, backend.strides(array), new_shape)
    if hooks.around_op:
        return apply_view(Expand, self, shape=shape)
    part = backend.F.as_strided(array, shape, strides)
    return view_of(Expand, self, part, {"shape": shape})


@public("method", flat=True)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor expanded to `other`'s shape."""
    return expand(self, tuple(other._storage.physical.shape))


@public("torch", "method")
def broadcast_to(input: Tensor, *args: Any, **size: Any) -> Tensor:
    """`input` expanded to the shape `size`, a tuple or several ints."""
    return expand(input, *args, **size)


@public("torch")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape; RuntimeError when there is none."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*[storage_of("broadcast_tensors", t).physical.shape for t in tensors])
    return tuple([expand(tensor, shape) for tensor in tensors])


def _at_least(name: str, change: Any) -> None:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            if isinstance(tensors[0], Tensor):
                return change(tensors[0])
            tensors = tuple(tensors[0])
        for tensor in tensors:
            storage_of(name, tensor)
        return tuple([change(tensor) for tensor in tensors])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The tensors, or each of several, with at least {name[8]} dimensions."
    export(checked(function), "torch", name=name)


def _one(x: Tensor) -> Tensor:
    return x if x._storage.physical.ndim else reshape(x, (1,))


def _two(x: Tensor) -> Tensor:
    x = _one(x)
    return unsqueeze(x, 0) if x._storage.physical.ndim == 1 else x


def _three(x: Tensor) -> Tensor:
    x = _two(x)
    return unsqueeze(x, -1) if x._storage.physical.ndim == 2 else x


for _name, _change in (("atleast_1d", _one), ("atleast_2d", _two), ("atleast_3d", _three)):
    _at_least(_name, _change)
