"""Memory shared with NumPy, DLPack and the buffer protocol."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import dtypes, late_bound
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, get_default_dtype
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.ops.create._data import is_array, warn_if_read_only
from tensorflow_lite_clone.ops.create.constructors import (
    as_tensor,
    finish,
    from_numpy,
    requiring_grad,
    target_of,
    tensor,
)
from tensorflow_lite_clone.ops.create.convert import expect_memory, to
from tensorflow_lite_clone.tensor import Tensor


@public("method")
def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The values as a NumPy array that shares this CPU tensor's memory.

    With `force` a tensor on another device or in a graph is copied or detached first. Without it a
    tensor that requires a gradient is a RuntimeError, unless gradients are off.
    """
    if self.dtype in (dtypes.bfloat16, *dtypes.FLOAT8):
        raise TypeError(f"Got unsupported ScalarType {self.dtype.short_name}")
    if not force:
        if self.requires_grad and mode.grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        if not self.is_cpu:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to "
                "copy the tensor to host memory first."
            )
    expect_memory(self._storage)
    return self._storage.backend.to_host(self._storage.array)


@public("method")
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return array.astype(dtype)
    return array.copy() if copy else array


@public("method")
def __array_wrap__(
    self: Tensor, array: Any, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """What a NumPy function of a Tensor returns, as a Tensor; booleans as uint8."""
    if array.dtype == bool:
        array = array.astype("uint8")
    return from_numpy(array)


@public("method")
def __dlpack__(
    self: Tensor,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over this tensor's memory, or over a copy where `copy` or `dl_device` ask.

    Raises BufferError for what cannot be lent: a tensor that requires a gradient, a dtype that
    DLPack lacks, another device with ``copy=False``.
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_cpu and stream is not None:
        if not is_int(stream):
            raise TypeError(f"stream must be int or None, not {type(stream).__name__}")
        if stream != -1:  # "do not wait": there is nothing to wait for
            raise AssertionError(f"stream should be None on cpu, got {stream}")
        stream = None
    device_type = {
        "stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy,
    }  # fmt: skip
    given = {name: value for name, value in device_type.items() if value is not None}
    backend, array = self._storage.backend, self._storage.array
    return backend.guarded(backend.foreign(array.__dlpack__))(**given)


@public("method")
def __dlpack_device__(self: Tensor) -> tuple:
    """DLPack's (device type, device number)."""
    return self._storage.array.__dlpack_device__()


class _Capsule:
    """A DLPack capsule of the CPU as an object with DLPack's methods."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple:
        return 1, 0


@public("torch")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of any object with ``__dlpack__``, or of a capsule.

    Raises ValueError for negative strides.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(type(ext_tensor), "__dlpack_device__"):
        raise RuntimeError(
            f"from_dlpack expected an object with __dlpack__ or a capsule, but got "
            f"{type(ext_tensor).__name__}"
        )
    kind, index = ext_tensor.__dlpack_device__()
    backend = backends.load("cpu" if int(kind) in (1, 3) else f"cuda:{index}")
    array = backend.F.from_dlpack(ext_tensor)
    if min(backend.strides(array), default=0) < 0:
        raise ValueError(f"from_dlpack: negative strides are not supported: {array.strides}")
    shared = wrap(array, backend)
    return to(shared, device, copy=bool(copy))


@public("torch")
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over a tensor's memory; it can be consumed once."""
    return tensor.__dlpack__()


@public("torch")
def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`obj` as a Tensor over the same memory if `copy` is False, over other memory if it is True,
    and over the same if possible if it is None.

    Takes Tensors, arrays, objects with DLPack or the buffer protocol, numbers and sequences.
    Raises ValueError when memory cannot be shared.
    """
    if isinstance(obj, Tensor):
        source, device = obj, target_of(device)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        source = frombuffer(obj, dtype=dtype or get_default_dtype())
    elif hasattr(type(obj), "__dlpack__") and not hasattr(type(obj), "__array__"):
        source = from_dlpack(obj)
    elif is_array(obj):
        source = as_tensor(obj, device=device)
    elif copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    else:
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    result = to(source, device, dtype)
    if copy is False and result is not source:
        raise ValueError(
            f"can't alias tensor with dtype '{source.dtype}' on '{source.device}' into dtype "
            f"'{result.dtype}' on '{result.device}'."
        )
    if copy and result._storage.array is source._storage.array:
        result = result.clone()
    if not requires_grad or result.requires_grad:
        return result
    return requiring_grad(result)


@public("torch")
def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A one-dimensional CPU tensor over the memory of an object with the buffer protocol."""
    backend = backends.load("cpu")
    native = backend.native[as_dtype(dtype)]
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if size == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % native.itemsize:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({native.itemsize})"
        )
    if count == 0 or offset + count * native.itemsize > size:
        raise ValueError(
            f"requested buffer length ({count} * {native.itemsize} bytes) after offset ({offset} "
            f"bytes) must not be greater than actual buffer length ({size} bytes)"
        )
    end = size if count < 0 else offset + count * native.itemsize
    try:
        memory = backend.asarray(memoryview(buffer).cast("B"))  # shared
    except TypeError:
        raise RuntimeError("could not retrieve buffer from object: it has gaps") from None
    warn_if_read_only(memory)
    return finish(backend.F.bitcast(memory[offset:end], native), backend, requires_grad)


@public("method")
def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The array API namespace whose functions take this tensor, `torch.array_api`.

    Raises ValueError for a version of the standard that there is not.
    """
    return late_bound.array_namespace(api_version)


@public("method")
def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The standard's `to`: this tensor on a device, itself where it lies there already."""
    return to(self, device)
