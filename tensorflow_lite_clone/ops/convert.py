"""Between dtypes, devices, NumPy and Python."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import edges_of, record, wrap
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import standard_words
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._operands import cast
from tensorflow_lite_clone.tensor import Tensor


@composite
def transfer(F, x, *, device):
    """`x` on another device; as a word of F it serves arrays, over Tensors see `to_device`."""
    return backends.load(device).from_host(F.backend.to_host(x))


class ToDevice(Op):
    """A copy on another device; recorded by hand because its output lives elsewhere."""

    label = "ToCopy"

    def forward(F, x, *, source, device):
        return F.transfer(x, device=device)

    def backward_x(F, g, *, source):
        return F.transfer(g, device=source)


def to_device(x: Tensor, device: Device) -> Tensor:
    """`x` on `device`; `x` itself when it is there already."""
    source, target = x._storage.backend, backends.load(device)
    if source is target:
        return x
    output = wrap(source.F.transfer(x._storage.array, device=target.device), target)
    if mode.grad:
        edges, mask = edges_of((x,))
        if mask:
            parameters = {"source": source.device, "device": target.device}
            record(output, ToDevice, target, edges, mask, (x._storage,), parameters)
    return output


standard_words["transfer"] = lambda x, *, device: to_device(x, device)


@public("method")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """This tensor with another dtype and/or device; itself when nothing changes.

    ``to(dtype)``, ``to(device, dtype=None)``, ``to(other)``, with keywords `non_blocking`, `copy`
    and `memory_format`.
    """
    device, dtype, copy, memory_format = parse_to(*args, **kwargs)
    result = self
    if device is not None:
        result = to_device(result, device)
    if dtype is not None:
        result = cast(result, dtype)
    if memory_format is not None and memory_format.name not in ("preserve_format",):
        result = result.contiguous(memory_format=memory_format)
    return self.clone() if copy and result is self else result


def parse_to(
    *args: Any,
    device: Any = None,
    dtype: DType | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
    other: Tensor | None = None,
) -> tuple[Device | None, DType | None, bool, Any]:
    """The arguments of `Tensor.to` in any of their forms: device, dtype, copy, memory format."""
    flags = []
    for value in args:
        if isinstance(value, DType):
            dtype = value
        elif isinstance(value, Tensor):
            other = value
        elif isinstance(value, bool):
            flags.append(value)
        elif isinstance(value, (str, Device, int)):
            device = value
        elif value is not None:
            raise TypeError(
                f"to() received an invalid combination of arguments - got "
                f"({', '.join(type(argument).__name__ for argument in args)})"
            )
    if len(flags) > 1:
        copy = flags[1]
    if other is not None:
        device, dtype = other.device, other.dtype
    return None if device is None else Device(device), dtype, copy, memory_format


def _converter(dtype: DType) -> Any:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        return cast(self, dtype)

    return convert


for _name, _dtype in {**dtypes.ALIASES, "bfloat16": dtypes.bfloat16}.items():
    _method = _converter(_dtype)
    _method.__name__ = _method.__qualname__ = _name
    _method.__doc__ = f"This tensor as ``{_dtype}``; itself when it has that dtype already."
    export(_method, "method", name=_name)


@public("method")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with `other`'s dtype, on its device."""
    return to(self, other)


@public("method")
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor in host memory."""
    return to_device(self, Device("cpu"))


@public("method")
def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """This tensor on a CUDA device, the current one by default."""
    return to_device(self, Device("cuda" if device is None else device))


@public("method", names=("type",))
def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The type's name (``torch.FloatTensor``), or this tensor in another dtype."""
    if dtype is None:
        prefix = "torch." if self.is_cpu else f"torch.{self.device.type}."
        return f"{prefix}{self.dtype.short_name}Tensor"
    if isinstance(dtype, str):
        word = dtype.rpartition(".")[2].removesuffix("Tensor")
        matches = [candidate for candidate in dtypes.ALL if candidate.short_name == word]
        if not matches:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = matches[0]
    return cast(self, getattr(dtype, "tensor_dtype", dtype))


def _host(tensor: Tensor) -> Any:
    storage = tensor._storage
    return storage.backend.to_host(storage.array)


@public("method")
def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The values as a NumPy array that shares this CPU tensor's memory.

    With `force` a tensor on another device or in a graph is copied or detached first.
    """
    if not force:
        if self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        if not self.is_cpu:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to "
                "copy the tensor to host memory first."
            )
        if self.dtype is dtypes.bfloat16:
            raise TypeError("Got unsupported ScalarType BFloat16")
    return _host(self)


@public("method")
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


@public("method")
def __dlpack__(self: Tensor, **kwargs: Any) -> Any:
    """A DLPack capsule over this tensor's memory."""
    if self.requires_grad:
        raise BufferError(
            "Can't export tensors that require gradient, use tensor.detach()"
        )
    return self._storage.array.__dlpack__(**kwargs)


@public("method")
def __dlpack_device__(self: Tensor) -> tuple:
    """DLPack's (device type, device number)."""
    return self._storage.array.__dlpack_device__()


@public("torch")
def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of any object with ``__dlpack__``."""
    kind = ext_tensor.__dlpack_device__()[0]
    backend = backends.load("cpu" if int(kind) in (1, 3) else "cuda")
    return wrap(backend.xp.from_dlpack(ext_tensor), backend)


@public("method")
def item(self: Tensor) -> Any:
    """The value of a one-element tensor as a Python number."""
    array = self._storage.array
    if array.size != 1:
        raise RuntimeError(
            f"a Tensor with {array.size} elements cannot be converted to Scalar"
        )
    value = _host(self).item()
    return value if type(value) in (float, int, bool, complex) else float(value)


@public("method")
def tolist(self: Tensor) -> Any:
    """The values as nested lists of Python numbers (a number for a zero-dim tensor)."""
    array = _host(self)
    if self.dtype is dtypes.bfloat16:
        array = array.astype("float32")
    return array.tolist()


@public("method")
def __bool__(self: Tensor) -> bool:
    array = self._storage.array
    if array.size != 1:
        if array.size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(_host(self).item())


def _only(tensor: Tensor) -> Any:
    if tensor._storage.array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return item(tensor)


@public("method")
def __float__(self: Tensor) -> float:
    return float(_only(self))


@public("method")
def __int__(self: Tensor) -> int:
    return int(_only(self))


@public("method")
def __complex__(self: Tensor) -> complex:
    return complex(_only(self))


@public("method")
def __index__(self: Tensor) -> int:
    if self.dtype.kind not in "biu" or self._storage.array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))
