"""Tensors from nothing, from Python data and from NumPy arrays."""

from __future__ import annotations

import math
import operator
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.determinism import filling
from tensorflow_lite_clone.core.device import AnyLayout, Layout, named_default_device, strided
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, dtype_of_scalar, get_default_dtype
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.limits import fitting_number
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import LARGEST_STORAGE, expect_storage
from tensorflow_lite_clone.core.signature import expect_longs
from tensorflow_lite_clone.core.strides import (
    MemoryFormat,
    contiguous_format,
    dense_strides,
    extent,
    format_strides,
    preserve_format,
    sizes_of,
)
from tensorflow_lite_clone.ops.create._data import array_of, is_array, is_scalar, warn_if_read_only
from tensorflow_lite_clone.ops.create.convert import to
from tensorflow_lite_clone.ops.decorators.out import with_new_out
from tensorflow_lite_clone.ops.pointwise._operands import as_number
from tensorflow_lite_clone.storage import LazyStorage
from tensorflow_lite_clone.tensor import Tensor

export(Layout, "torch", name="layout")
export(strided, "torch", name="strided")
export(property(lambda self: strided), "property", name="layout")


def size_of(size: tuple) -> tuple[int, ...]:
    """``f(2, 3)``, ``f((2, 3))`` and ``f(tensor.shape)`` alike; TypeError for other things."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for length in size:
        if type(length) is not int or not 0 <= length <= LARGEST_STORAGE:
            return _size_of(size)
    return size


def _size_of(size: tuple) -> tuple[int, ...]:
    lengths = [length if type(length) is int else _length(length) for length in size]
    expect_longs("argument 'size'", lengths)
    for length in lengths:
        if length < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: {list(size)}"
            )
    return tuple(lengths)


def _length(value: Any) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except (TypeError, RuntimeError):
            pass
    raise TypeError(f"argument 'size' must be tuple of ints, not {type(value).__name__}")


def finish(array: Any, backend: Any, requires_grad: bool) -> Tensor:
    """Wrap a new array, as a leaf that requires a gradient if asked for."""
    tensor = wrap(array, backend)
    return requiring_grad(tensor) if requires_grad else tensor


def requiring_grad(tensor: Tensor) -> Tensor:
    """The tensor, as one that requires a gradient; RuntimeError for integers."""
    if tensor.dtype.kind not in "fc":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tensor.requires_grad_()


def _filled(
    value: Any,
    size: tuple,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    backend = backends.load(device)
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    array = _allocated(size, dtype, backend, memory_format)
    fill(array, value, dtype, backend)
    return finish(array, backend, requires_grad)


def fill(array: Any, value: Any, dtype: DType, backend: Any) -> None:
    """Write `value` into a new array; None: what deterministic algorithms ask for, or nothing."""
    if value is None:
        value = filling(dtype)
    if value is not None and array.size:
        backend.write(array, value)


def _allocated(size: tuple, dtype: DType, backend: Any, memory_format: Any) -> Any:
    """An uninitialised array in a memory format; RuntimeError for sizes beyond any memory."""
    strides = None
    if memory_format is not None and memory_format is not contiguous_format:
        strides = format_strides(size, memory_format)
    return _strided(size, strides, dtype, backend)


def _strided(size: tuple, strides: tuple | None, dtype: DType, backend: Any) -> Any:
    """An uninitialised array with these strides, which leave no gaps; None: row-major."""
    expect_storage(size, dtype.itemsize)
    if strides is None:
        return backend.empty(size, dtype)
    return backend.F.as_strided(backend.empty((math.prod(size),), dtype), size, strides)


def explicit_size(name: str, size: tuple, keyword: Any) -> tuple[int, ...]:
    """A size given positionally or as `keyword`; TypeError when there is none."""
    if keyword is not None:
        return size_of((keyword,))
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return size_of(size)


def _sparse(
    name: str,
    value: float | None,
    size: tuple,
    layout: Layout,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """An empty sparse tensor, all of whose dimensions are sparse."""
    if value:
        raise NotImplementedError(f"{name}() makes dense tensors: one in {layout} is mostly zeros")
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    made: Tensor = late_bound.empty_sparse(name, size, layout, dtype, device)
    return made.requires_grad_(requires_grad)


def _filler(name: str, value: float | None, document: str) -> Any:
    def filled(
        *args: Any,
        size: Any = None,
        dtype: DType | None = None,
        layout: AnyLayout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: MemoryFormat | None = None,
    ) -> Tensor:
        shape = explicit_size(name, args, size)
        if layout not in (None, strided):
            return _sparse(name, value, shape, layout, dtype, device, requires_grad)
        return _filled(value, shape, dtype, device, requires_grad, memory_format)

    def fill_like(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: AnyLayout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: MemoryFormat | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        if layout not in (None, strided):
            shape, like = tuple(input.shape), dtype or input.dtype
            place = input.device if device is None else device
            return _sparse(name, value, shape, layout, like, place, requires_grad)
        return _filled_like(name, value, input, dtype, device, requires_grad, memory_format)

    def new_fill(
        self: Tensor,
        *args: Any,
        size: Any = None,
        dtype: DType | None = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: AnyLayout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        shape = explicit_size(f"new_{name}", args, size)
        if layout not in (None, strided):
            place = self.device if device is None else device
            like = dtype or self.dtype
            return _sparse(name, value, shape, layout, like, place, requires_grad)
        return _filled_beside(self, value, shape, dtype or self.dtype, device, requires_grad)

    for function, exported in (
        (filled, name),
        (fill_like, f"{name}_like"),
        (new_fill, f"new_{name}"),
    ):
        function.__name__ = function.__qualname__ = exported
        function.__doc__ = document
    public("method")(new_fill)
    return public("torch")(with_new_out(filled)), public("torch")(fill_like)


zeros, zeros_like = _filler("zeros", 0, "A tensor of zeros.")
ones, ones_like = _filler("ones", 1, "A tensor of ones.")
empty, empty_like = _filler("empty", None, "A tensor of whatever lay in memory.")


def _filled_beside(
    self: Tensor, value: Any, shape: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    """A filled tensor on `device`, by default on that of `self` (with its samples, in `vmap`)."""
    backend = self._storage.backend
    if device is not None or not backend.batched:
        return _filled(value, shape, dtype, device or self.device, requires_grad)
    dtype = as_dtype(dtype)
    array = backend.empty(tuple(shape), dtype)
    fill(array, value, dtype, backend)
    return finish(array, backend, requires_grad)


def _filled_like(
    name: str,
    value: Any,
    input: Tensor,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    memory_format: Any,
) -> Tensor:
    """A filled tensor of `input`'s shape that lies as it does, without gaps and repetitions."""
    dtype = input.dtype if dtype is None else as_dtype(dtype)
    try:
        storage = input._storage
    except NotStrided as reason:
        like = reason.answer(f"{name}_like", input, dtype=dtype, device=device)
        return like.requires_grad_(requires_grad)
    backend = storage.backend
    if backend.dispatches:
        like = getattr(backend.F, f"{name}_like")(storage.array, dtype=dtype)
        return interpreters.dispatch.lower(finish(like, backend, requires_grad))
    target = backend if device is None else backends.load(device)
    fixed = memory_format is not None and memory_format is not preserve_format
    fixed = fixed or storage.__class__ is LazyStorage  # row-major, as it is told to be
    if fixed or (backend.batched and target is not backend):
        place = input.device if device is None else device
        return _filled(value, input.shape, dtype, place, requires_grad, memory_format)
    array = storage.array
    if target is backend and (backend.batched or backend.is_contiguous(array)):
        array = backend.F.empty_like(array, dtype=backend.native[dtype])
    else:
        strides = dense_strides(array.shape, backend.strides(array))
        array = _strided(array.shape, strides, dtype, target)
    fill(array, value, dtype, target)
    return finish(array, target, requires_grad)


def _fill_value(name: str, value: Any, dtype: DType | None) -> tuple[Any, DType]:
    """The Python number to fill with and the dtype to fill; raises for what does not fit."""
    number = value.item() if isinstance(value, Tensor) else as_number(value)
    if number is None:
        raise TypeError(
            f"{name}(): argument 'fill_value' must be Number, not {type(value).__name__}"
        )
    if dtype is None:
        dtype = value.dtype if isinstance(value, Tensor) else dtype_of_scalar(number)
    dtype = as_dtype(dtype)
    return fitting_number(number, dtype), dtype


def _size_of_full(name: str, size: Any) -> tuple[int, ...]:
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    return size_of((size,))


@public("torch")
@with_new_out
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of shape `size` filled with one number, in the number's dtype by default."""
    number, dtype = _fill_value("full", fill_value, dtype)
    return _filled(number, _size_of_full("full", size), dtype, device, requires_grad)


@public("torch")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor like `input` filled with one number."""
    fill_value, dtype = _fill_value("full_like", fill_value, dtype or input.dtype)
    return _filled_like("full", fill_value, input, dtype, device, requires_grad, memory_format)


@public("method")
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A filled tensor with this tensor's dtype and device."""
    number, dtype = _fill_value("new_full", fill_value, dtype or self.dtype)
    shape = _size_of_full("new_full", size)
    return _filled_beside(self, number, shape, dtype, device, requires_grad)


@public("method")
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A copy of `data` with this tensor's dtype and device."""
    return tensor(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


def target_of(device: Any) -> Any:
    """Where what is made of a Tensor lies: on `device`, else on a default device that a program
    has named; None: where the Tensor is."""
    return named_default_device() if device is None else device


@public("torch")
def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A copy of `data`: a number, nested sequences, a NumPy array or a Tensor.

    Floats become the default dtype, ints int64; arrays keep their dtype. Raises ValueError for
    ragged sequences and TypeError for what is no number.
    """
    if isinstance(data, Tensor):
        copied = to(data.detach(), target_of(device), dtype, copy=True)
        return requiring_grad(copied) if requires_grad else copied
    backend = backends.load(device)
    if is_array(data) and not is_scalar(data):  # its strides are kept
        copied = to(wrap(array_of(data, None, backend), backend), None, dtype, copy=True)
        return requiring_grad(copied) if requires_grad else copied
    return finish(array_of(data, dtype, backend), backend, requires_grad)


@public("torch")
def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """`data` as a Tensor: a Tensor itself, or over a NumPy array's memory, where possible."""
    if isinstance(data, Tensor):
        return to(data, target_of(device), dtype)
    backend = backends.load(device)
    if not is_array(data) or is_scalar(data):
        return wrap(array_of(data, dtype, backend), backend)
    array = array_of(data, None, backend)
    if array is data:
        warn_if_read_only(data)
    return to(wrap(array, backend), None, dtype)


@public("torch")
def from_numpy(ndarray: Any) -> Tensor:
    """A CPU tensor that shares the memory of a NumPy array.

    Raises TypeError for other objects and unsupported dtypes, ValueError for negative strides.
    """
    backend = backends.load("cpu")
    if not isinstance(ndarray, backend.array_type):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    warn_if_read_only(ndarray)
    return wrap(array_of(ndarray, None, backend), backend)


@public("torch")
def scalar_tensor(
    s: Any,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A zero-dim tensor of one number in the default dtype."""
    number, dtype = _fill_value("scalar_tensor", s, dtype or get_default_dtype())
    return _filled(number, (), dtype, device, requires_grad)


@public("torch")
@with_new_out
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The n x m matrix with ones on the diagonal."""
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise RuntimeError(f"n and m must be greater or equal to 0, got {n} and {columns}")
    backend = backends.load(device)
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    array = backend.F.eye(n, columns, dtype=backend.native[dtype])
    return finish(array, backend, requires_grad)


@public("torch")
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor of the given shape and strides (in elements)."""
    backend = backends.load(device)
    shape, steps = size_of((tuple(size),)), sizes_of((stride,), "stride")
    if len(shape) != len(steps):
        raise RuntimeError(
            f"mismatch in length of strides and shape: {len(steps)} strides for {len(shape)} sizes"
        )
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if min(steps, default=0) < 0:
        raise RuntimeError(f"empty_strided: negative strides are not supported, got {list(steps)}")
    length = max(extent(shape, steps), 1)
    expect_storage((length,), dtype.itemsize)
    memory = backend.empty((length,), dtype)
    fill(memory, None, dtype, backend)
    return finish(backend.F.as_strided(memory, shape, steps), backend, requires_grad)


@public("method")
def new_empty_strided(
    self: Tensor, size: Any, stride: Any, dtype: DType | None = None, **options: Any
) -> Tensor:
    """`empty_strided` with this tensor's dtype and device."""
    options["device"] = options.get("device") or self.device
    return empty_strided(size, stride, dtype=dtype or self.dtype, **options)


@public("torch")
def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """An uninitialised dense tensor whose dimensions lie in memory in the order
    `physical_layout`, from the slowest to the fastest."""
    shape = size_of((tuple(size),))
    if sorted(physical_layout) != list(range(len(shape))):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout or it "
            f"is no permutation: {list(shape)}, {list(physical_layout)}"
        )
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(physical_layout):
        strides[dim] = step
        step *= shape[dim]
    return empty_strided(shape, strides, **options)
