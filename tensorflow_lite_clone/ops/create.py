"""Tensors from nothing, from Python data and from NumPy arrays."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.autograd.inplace import with_out
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, dtype_of_scalar, get_default_dtype
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.convert import to
from tensorflow_lite_clone.tensor import Tensor


def size_of(size: tuple) -> tuple[int, ...]:
    """``f(2, 3)``, ``f((2, 3))`` and ``f(tensor.shape)`` alike."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = tuple(size[0])
    for length in size:
        if not hasattr(length, "__index__"):
            raise TypeError(f"size must be a tuple of ints, not of {type(length).__name__}")
        if length < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: {list(size)}"
            )
    return tuple([int(length) for length in size])


def finish(array: Any, backend: Any, requires_grad: bool) -> Tensor:
    """Wrap a new array, as a leaf that requires a gradient if asked for."""
    tensor = wrap(array, backend)
    return _requiring_grad(tensor) if requires_grad else tensor


def _requiring_grad(tensor: Tensor) -> Tensor:
    if tensor.dtype.kind not in "fc":
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )
    return tensor.requires_grad_()


def _filled(
    value: Any, size: tuple, dtype: DType | None, device: Any, requires_grad: bool
) -> Tensor:
    backend = backends.load(device)
    array = backend.empty(size, dtype or get_default_dtype())
    if value is not None and array.size:
        backend.write(array, value)
    return finish(array, backend, requires_grad)


def _explicit_size(size: tuple, keyword: Any) -> tuple[int, ...]:
    return size_of(size if keyword is None else (keyword,))


def _filler(name: str, value: float | None, document: str) -> Any:
    def fill(
        *args: Any,
        size: Any = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return _filled(value, _explicit_size(args, size), dtype, device, requires_grad)

    def fill_like(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return _filled_like(value, input, dtype, device, requires_grad)

    def new_fill(
        self: Tensor,
        *args: Any,
        size: Any = None,
        dtype: DType | None = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        shape = _explicit_size(args, size)
        return _filled(value, shape, dtype or self.dtype, device or self.device, requires_grad)

    for function, exported, place in (
        (fill, name, "torch"),
        (fill_like, f"{name}_like", "torch"),
        (new_fill, f"new_{name}", "method"),
    ):
        function.__name__ = function.__qualname__ = exported
        function.__doc__ = document
        public(place)(with_out(function) if function is fill else function)
    return fill, fill_like


zeros, zeros_like = _filler("zeros", 0, "A tensor of zeros.")
ones, ones_like = _filler("ones", 1, "A tensor of ones.")
empty, empty_like = _filler("empty", None, "A tensor of whatever lay in memory.")


def _filled_like(
    value: Any, input: Tensor, dtype: DType | None, device: Any, requires_grad: bool
) -> Tensor:
    """A filled tensor of `input`'s shape that keeps the order of its strides."""
    storage = input._storage
    if device is not None and backends.load(device) is not storage.backend:
        return _filled(value, input.shape, dtype or input.dtype, device, requires_grad)
    backend = storage.backend
    native = None if dtype is None else backend.native[dtype]
    array = backend.xp.empty_like(storage.array, dtype=native)
    if value is not None and array.size:
        backend.write(array, value)
    return finish(array, backend, requires_grad)


@public("torch")
@with_out
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of shape `size` filled with one number, in the number's dtype by default."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if dtype is None:
        dtype = dtype_of_scalar(fill_value)
    return _filled(fill_value, size_of((size,)), dtype, device, requires_grad)


@public("torch")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor like `input` filled with one number."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    return _filled_like(fill_value, input, dtype, device, requires_grad)


@public("method")
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A filled tensor with this tensor's dtype and device."""
    shape = size_of((size,))
    return _filled(fill_value, shape, dtype or self.dtype, device or self.device, requires_grad)


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


def _plain(data: Any) -> Any:
    """Nested sequences with one-element Tensors replaced by their numbers."""
    if isinstance(data, Tensor):
        return data.item() if data.ndim == 0 else data.tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(entry) for entry in data]
    return data


def _check_rectangular(data: Any, depth: int = 0) -> None:
    """Raise torch's ValueError for the first ragged level of nested sequences."""
    if not isinstance(data, (list, tuple)) or not data:
        return
    first = data[0]
    if not isinstance(first, (list, tuple)):
        for entry in data:
            if isinstance(entry, (list, tuple)):
                raise TypeError(f"must be a real number, not {type(entry).__name__}")
        return
    for entry in data:
        if not isinstance(entry, (list, tuple)):
            raise TypeError("not a sequence")
        if len(entry) != len(first):
            raise ValueError(
                f"expected sequence of length {len(first)} at dim {depth + 1} (got {len(entry)})"
            )
        _check_rectangular(entry, depth + 1)


def _has_tensor(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and any(
        [isinstance(entry, Tensor) or _has_tensor(entry) for entry in data]
    )


def _no_number(data: Any) -> Exception:
    """torch's complaint about the first entry of nested sequences that cannot be a number."""
    first = False
    while isinstance(data, (list, tuple)) and data:
        text = next((entry for entry in data if isinstance(entry, (str, bytes))), data[0])
        first = text is data[0]
        data = text
    kind = type(data)
    if kind is int:
        return ValueError("Overflow when unpacking long long")
    if first and kind is str and data:  # a sequence too
        return ValueError("too many dimensions 'str'")
    if kind is str or kind is bytes:
        return TypeError(f"new(): invalid data type '{kind.__name__}'")
    return RuntimeError(f"Could not infer dtype of {kind.__name__}")


def _array_of(data: Any, dtype: DType | None, backend: Any) -> Any:
    """A native array of Python or NumPy data with torch's inferred dtype; may share memory."""
    if hasattr(data, "__array__") and hasattr(data, "dtype"):
        array = data
        if array.dtype not in backend.dtypes:
            raise TypeError(
                f"can't convert np.ndarray of type {array.dtype}. The only supported types are: "
                f"{', '.join(d.name for d in dtypes.ALL)}."
            )
        array = backend.from_host(array)
        return array if dtype is None else backend.F.astype(array, dtype)
    if _has_tensor(data):
        data = _plain(data)
    try:
        array = backend.asarray(data)
    except ValueError:
        _check_rectangular(data)
        raise
    if array.dtype not in backend.dtypes:
        _check_rectangular(data)
        raise _no_number(data)
    if dtype is None:
        dtype = backend.dtypes[array.dtype]
        if dtype is dtypes.float64:
            dtype = get_default_dtype()
        elif dtype is dtypes.complex128:
            dtype = get_default_dtype().to_complex()
    return backend.F.astype(array, dtype)


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
        copied = to(data.detach(), device, dtype, copy=True)
        return _requiring_grad(copied) if requires_grad else copied
    backend = backends.load(device)
    array = _array_of(data, dtype, backend)
    if hasattr(data, "__array__"):
        array = backend.F.copy(array)
    return finish(array, backend, requires_grad)


@public("torch", names=("as_tensor", "asarray"))
def as_tensor(
    data: Any,
    dtype: DType | None = None,
    device: Any = None,
    *,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`data` as a Tensor, sharing memory with Tensors and NumPy arrays where possible."""
    if isinstance(data, Tensor):
        return to(data, device, dtype, copy=bool(copy))
    if copy:
        return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
    backend = backends.load(device)
    return finish(_array_of(data, dtype, backend), backend, requires_grad)


@public("torch")
def from_numpy(ndarray: Any) -> Tensor:
    """A CPU tensor that shares the memory of a NumPy array.

    Raises TypeError for other objects and unsupported dtypes, ValueError for negative strides.
    """
    backend = backends.load("cpu")
    if not isinstance(ndarray, backend.array_type):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if any(stride < 0 for stride in ndarray.strides):  # type: ignore[attr-defined]
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().)"
        )
    return wrap(_array_of(ndarray, None, backend), backend)


@public("torch")
def scalar_tensor(s: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A zero-dim tensor of one number in the default dtype."""
    return _filled(s, (), dtype, device, False)


@public("torch")
@with_out
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The n x m matrix with ones on the diagonal."""
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise RuntimeError(f"n and m must be greater or equal to 0, got {n} and {columns}")
    backend = backends.load(device)
    array = backend.xp.eye(n, columns, dtype=backend.native[dtype or get_default_dtype()])
    return finish(array, backend, requires_grad)


@public("torch")
def empty_strided(
    size: Any, stride: Any, *, dtype: DType | None = None, device: Any = None, **ignored: Any
) -> Tensor:
    """An uninitialised tensor of the given shape and strides (in elements)."""
    backend = backends.load(device)
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    memory = backend.empty((max(span, 1),), dtype or get_default_dtype())
    return wrap(backend.F.as_strided(memory, tuple(size), tuple(stride)), backend)

