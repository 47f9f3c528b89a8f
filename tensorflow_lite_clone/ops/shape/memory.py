"""How a tensor lies in memory: strides, formats, copies; views made in place."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, edges_of, record
from tensorflow_lite_clone.autograd.inplace import Restride, check_inplace
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.determinism import filling
from tensorflow_lite_clone.core.errors import NotStrided, level_outside
from tensorflow_lite_clone.core.public import EXPORTS, export, public
from tensorflow_lite_clone.core.shape import Size, contiguous_strides, expect_storage, normalize_dim
from tensorflow_lite_clone.core.strides import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    contiguous_format,
    dense_strides,
    expect_format,
    format_strides,
    has_format,
    is_channels_last,
    preserve_format,
    sizes_of,
)
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.reduce._arguments import override_or_raise
from tensorflow_lite_clone.ops.shape import slices, views
from tensorflow_lite_clone.ops.shape._views import storage_of
from tensorflow_lite_clone.storage import LazyStorage, Storage, offset_of, reshaped, strides_of
from tensorflow_lite_clone.tensor import Tensor, View

for _format in (contiguous_format, preserve_format, channels_last, channels_last_3d):
    export(_format, "torch", name=_format.name)
export(contiguous_format, "torch", name="legacy_contiguous_format")
export(MemoryFormat, "torch", name="memory_format")


class Clone(Op):
    """A contiguous copy."""

    primitive = "copy"
    layout_agnostic = True

    def forward(F, x):
        return F.copy(x)

    def backward_x(F, g):
        return g


def _copied(x: Tensor, strides: tuple) -> Tensor:
    if strides == contiguous_strides(x._storage.physical.shape):
        return apply(Clone, x)
    return apply(Restride, x, strides=strides)


@public("torch", "method", flat=True)
def clone(input: Tensor, *, memory_format: MemoryFormat = preserve_format) -> Tensor:
    """A copy; dense strides are kept unless `memory_format` says otherwise."""
    try:
        storage = storage_of("clone", input)
    except NotStrided as reason:
        return reason.answer("clone", input)
    except TypeError as error:
        return override_or_raise(error, clone, input)
    shape = storage.physical.shape
    if memory_format is not preserve_format and memory_format is not None:
        return _copied(input, format_strides(shape, memory_format))
    if storage.__class__ is LazyStorage or storage.backend.is_contiguous(storage.physical):
        return apply(Clone, input)
    return _copied(input, dense_strides(shape, strides_of(storage)))


@public("method", flat=True)
def is_contiguous(self: Tensor, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the elements lie without gaps in the order of `memory_format`."""
    storage = self._storage
    array = storage.physical
    if memory_format is contiguous_format:
        return storage.__class__ is LazyStorage or storage.backend.is_contiguous(array)
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    expect_format(memory_format)
    if len(array.shape) != memory_format.ndim:
        return False
    strides = format_strides(array.shape, memory_format)
    return has_format(array.shape, strides_of(storage), strides)


@public("method", flat=True)
def contiguous(self: Tensor, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """The tensor itself if it is contiguous in `memory_format`, else a copy that is."""
    storage = self._storage
    if memory_format is contiguous_format:
        if storage.__class__ is LazyStorage or storage.backend.is_contiguous(storage.physical):
            return self
        return apply(Clone, self)
    if is_contiguous(self, memory_format):
        return self
    return apply(Restride, self, strides=format_strides(storage.physical.shape, memory_format))


def in_format_of(result: Tensor, like: Tensor) -> Tensor:
    """`result`, or a copy of it, in the memory format of `like`: channels_last or row-major."""
    storage = like._storage
    shape = storage.physical.shape
    if len(shape) in (4, 5) and is_channels_last(shape, strides_of(storage)):
        target_format = channels_last if len(shape) == 4 else channels_last_3d
        return contiguous(result, memory_format=target_format)
    return contiguous(result)


@public("method", flat=True)
def stride(self: Tensor, dim: int | None = None) -> Any:
    """How many elements lie between neighbours along each dimension, or along `dim`."""
    array, strides = self._storage.physical, strides_of(self._storage)
    if array.size == 0 and not any(strides):  # NumPy has no strides for empty arrays
        strides = contiguous_strides(array.shape)
    if dim is None:
        return strides
    if not strides:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return strides[normalize_dim(dim, len(strides))]


@public("method")
def storage_offset(self: Tensor) -> int:
    """How many elements lie before the first one in its memory."""
    return offset_of(self._storage)


@public("method", names=("data_ptr", "const_data_ptr"))
def data_ptr(self: Tensor) -> int:
    """The address of the first element, 0 for an empty tensor."""
    storage = self._storage
    return storage.backend.data_pointer(storage.array) if storage.physical.size else 0


@public("torch", "method", names=("numel",), flat=True)
@public("method", names=("nelement",), flat=True)
def numel(input: Tensor) -> int:
    """The number of elements."""
    try:
        return storage_of("numel", input).physical.size
    except NotStrided as reason:
        return reason.answer("numel", input)
    except TypeError as error:
        return override_or_raise(error, numel, input)


@public("method")
def element_size(self: Tensor) -> int:
    """The bytes of one element."""
    return self._storage.physical.dtype.itemsize


@public("method", names=("dim", "ndimension"))
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._storage.physical.ndim


@public("method", flat=True)
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of dimension `dim`."""
    shape = self._storage.physical.shape
    if dim is None:
        return Size(shape)
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[normalize_dim(dim, len(shape))]


@public("torch", "method")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return input.shape == other.shape


@public("torch")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which all `shapes` broadcast; RuntimeError when there is none.

    ValueError for negative sizes.
    """
    known = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    if any([size < 0 for shape in known for size in shape]):
        raise ValueError("Attempting to broadcast a dimension with negative length!")
    return Size(views.broadcast_shapes(*known))


for _name, _getter in {
    "itemsize": property(lambda self: self._storage.physical.dtype.itemsize),
    "nbytes": property(lambda self: numel(self) * element_size(self)),
}.items():
    export(_getter, "property", name=_name)


def _adopt(target: Tensor, view: Tensor) -> Tensor:
    """Make `target` the view of itself that was just taken."""
    check_inplace(target, False)
    edges, mask = edges_of((target,)) if mode.grad else ((), 0)
    remembered, own = view._view, target._view
    assert remembered is not None
    assert remembered.last is not None
    _, (op, parameters, _) = remembered.last
    before = target._storage
    target._storage = view._storage
    if own is not None:
        target._view = View(own.base, remembered.last, remembered.version, own.restriction)
    if mask:
        record(target, op, before.backend, edges, mask, (before,), parameters)
    nothing = lambda: None  # it counts as a write
    hooks.writing(None, nothing, (before.array, before.array), {})
    before.bump()
    if own is not None:
        target._view.version = before.current_version()  # type: ignore[union-attr]
    return target


def _make_inplace(function: Any, name: str) -> None:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _adopt(self, function(self, *args, **kwargs))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Make this tensor the view that `{name[:-1]}` gives."
    export(method, "method", name=name)


for _function, _names in {
    views.t: ("t_",),
    views.transpose: ("transpose_", "swapaxes_", "swapdims_"),
    views.squeeze: ("squeeze_",),
    views.unsqueeze: ("unsqueeze_",),
    slices.as_strided: ("as_strided_",),
}.items():
    for _name in _names:
        _make_inplace(_function, _name)
export(EXPORTS["method"]["as_strided_"], "torch", name="as_strided_")


@public("method")
def resize_(self: Tensor, *sizes: Any, memory_format: MemoryFormat | None = None) -> Tensor:
    """Give this tensor another shape, over its own memory if it is large enough.

    Elements beyond the present ones are undefined. Raises RuntimeError for tensors in a graph.
    """
    shape = sizes_of(sizes)
    if mode.grad and edges_of((self,))[1]:
        raise RuntimeError("cannot resize variables that require grad")
    storage = self._storage
    backend = storage.backend
    expect_storage(shape, self.dtype.itemsize)
    changed = reshaped(storage, shape, contiguous_strides(shape))
    if changed is None:
        array = backend.empty(shape, self.dtype)
        value = filling(self.dtype)
        if value is not None:
            backend.write(array, value)
        F, count = backend.F, storage.physical.size
        backend.write(F.reshape(array, (-1,))[:count], F.reshape(storage.array, (-1,)))
        changed = Storage(array, backend)
    self._storage = changed
    return self


@public("torch", "method")
def resize_as_(self: Tensor, tensor: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """Give this tensor `tensor`'s shape; see `resize_`."""
    return resize_(self, tuple(tensor.shape))


@public("method")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """`view` for another shape of as many elements, RuntimeError for another number; deprecated."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=level_outside())
    return _resized(self, sizes_of(sizes))


@public("method")
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize` to `tensor`'s shape; deprecated."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=level_outside())
    return _resized(self, tuple(tensor.shape))


def _resized(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    if math.prod(shape) != x.numel():
        expected, have = ("x".join(map(str, size)) for size in (shape, x.shape))
        raise RuntimeError(
            f"requested resize to {expected} ({math.prod(shape)} elements in total), but the given "
            f"tensor has a size of {have} ({x.numel()} elements). autograd's resize can only "
            "change the shape of a given tensor, while preserving the number of elements. "
        )
    return x.contiguous().view(shape)
