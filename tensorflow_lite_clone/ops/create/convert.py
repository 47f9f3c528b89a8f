"""Between dtypes, devices, NumPy and Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import edges_of, record, wrap
from tensorflow_lite_clone.autograd.inplace import write
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType, as_dtype
from tensorflow_lite_clone.core.limits import fitting_number
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops.pointwise._operands import cast, warn_imaginary
from tensorflow_lite_clone.storage import FreedArray
from tensorflow_lite_clone.tensor import Tensor


@composite
def transfer(F, x, *, device, non_blocking=False):
    """`x` on another device; as a word of F it serves arrays, over Tensors see `to_device`."""
    return backends.load(device).receive(x, F.backend, non_blocking)


class ToDevice(Op):
    """A copy on another device; recorded by hand because its output lives elsewhere."""

    label = "ToCopy"

    def forward(F, x, *, source, device):
        return F.transfer(x, device=device)

    def backward_x(F, g, *, source):
        return F.transfer(g, device=source)


def to_device(x: Tensor, device: Device, non_blocking: bool = False) -> Tensor:
    """`x` on `device`; `x` itself when it is there already."""
    source, target = x._storage.backend, backends.load(device)
    if source is target or (source.batched and source.device == target.device):
        return x
    array = source.F.transfer(x._storage.array, device=target.device, non_blocking=non_blocking)
    output = wrap(array, target)
    if mode.grad:
        edges, mask = edges_of((x,))
        if mask:
            parameters = {"source": source.device, "device": target.device}
            record(output, ToDevice, target, edges, mask, (x._storage,), parameters)
    return output


def _moved(x: Tensor, device: Device, non_blocking: bool = False) -> Tensor:
    """`to_device`; what a class with `__torch_dispatch__` has on the device stays of the class."""
    backend = x._storage.backend
    dispatches = type(x) is not Tensor and backend.dispatches
    if dispatches and backend.device == backends.load(device).device:
        return x
    return to_device(x, device, non_blocking)


@public("method")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """This tensor with another dtype and/or device; itself when nothing changes.

    ``to(dtype)``, ``to(device, dtype=None)``, ``to(other)``, with keywords `non_blocking`, `copy`
    and `memory_format`.
    """
    device, dtype, copy, memory_format, non_blocking = _parse_to(args, kwargs)
    result = self
    if device is not None:
        result = _moved(result, device, non_blocking)
    if dtype is not None:
        result = _converted(result, dtype)
    if memory_format is not None and memory_format.name not in ("preserve_format",):
        result = result.contiguous(memory_format=memory_format)
    return self.clone() if copy and result is self else result


def parse_to(*args: Any, **kwargs: Any) -> tuple[Device | None, DType | None, bool, Any]:
    """The arguments of `Tensor.to` in any of their forms: device, dtype, copy, memory format.

    Raises TypeError for other arguments, and for a device or dtype named twice.
    """
    return _parse_to(args, kwargs)[:4]


def _parse_to(args: tuple, kwargs: dict) -> tuple[Device | None, DType | None, bool, Any, bool]:
    named = dict(kwargs)
    memory_format = named.pop("memory_format", None)
    values: dict[str, Any] = {}
    flags = [value for value in args if type(value) is bool]
    for name, value in zip(("non_blocking", "copy"), flags):
        named.setdefault(name, value)
    copy = bool(named.pop("copy", False))
    non_blocking = bool(named.pop("non_blocking", False))
    given = [value for value in args if type(value) is not bool and value is not None]
    for name in ("other", "tensor", "device", "dtype"):
        value = named.pop(name, None)
        if value is not None:
            given.append(as_dtype(value) if name == "dtype" else value)
    for value in given:
        if isinstance(value, (DType, type)):
            found: dict[str, Any] = {"dtype": as_dtype(value)}
        elif isinstance(value, Tensor):
            found = {"device": value.device, "dtype": value.dtype}
        elif isinstance(value, (str, Device, int)):
            found = {"device": Device(value)}
        else:
            raise _invalid(args, kwargs)
        if found.keys() & values.keys():
            raise _invalid(args, kwargs)
        values.update(found)
    if named or len(flags) > 2:
        raise _invalid(args, kwargs)
    return values.get("device"), values.get("dtype"), copy, memory_format, non_blocking


def _invalid(args: tuple, kwargs: dict) -> TypeError:
    got = [type(value).__name__ for value in args]
    got += [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
    return TypeError(f"to() received an invalid combination of arguments - got ({', '.join(got)})")


def _converted(x: Tensor, dtype: DType) -> Tensor:
    """`cast` on request, which warns where it loses something."""
    if x.dtype.kind == "c" and dtype.kind in "fiu":
        warn_imaginary()
    return cast(x, dtype)


def _converter(dtype: DType) -> Any:
    def convert(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
        return _converted(self, dtype)

    return convert


_METHODS = {"bfloat16": dtypes.bfloat16, "byte": dtypes.uint8, "char": dtypes.int8}
for _name, _dtype in {**dtypes.ALIASES, **_METHODS}.items():
    _method = _converter(_dtype)
    _method.__name__ = _method.__qualname__ = _name
    _method.__doc__ = f"This tensor as ``{_dtype}``; itself when it has that dtype already."
    export(_method, "method", name=_name)


@public("method", flat=True)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with `other`'s dtype, on its device."""
    return to(self, other)


@public("method")
def cpu(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor in host memory."""
    return _moved(self, Device("cpu"))


@public("method", flat=True)
def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """This tensor on a CUDA device, the current one by default."""
    return _moved(self, Device("cuda" if device is None else device), non_blocking)


@public("method", names=("type",))
def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The type's name (``torch.FloatTensor``), or this tensor in another dtype."""
    if dtype is None:
        prefix = "torch." if self.is_cpu else f"torch.{self.device.type}."
        return f"{prefix}{self.dtype.short_name}Tensor"
    name = getattr(dtype, "tensor_type", dtype)
    if isinstance(name, str):
        space, _, word = name.rpartition(".")
        matches = [d for d in dtypes.ALL if f"{d.short_name}Tensor" == word]
        if not matches or space.partition(".")[0] != "torch":
            raise ValueError(f"invalid type: '{name}'")
        device = space.partition(".")[2] or "cpu"
        return to(self, self.device if device == self.device.type else device, matches[0])
    if not isinstance(dtype, DType):
        raise ValueError(f"invalid type: {dtype!r}")
    return _converted(self, dtype)


def expect_memory(storage: Any) -> None:
    """Raise RuntimeError for a tensor that `func.vmap` maps over, as no one array is its values,
    and for one whose memory was given up."""
    if type(storage.array) is FreedArray:
        storage.array.refuse()
    if storage.backend.differs(storage.array):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def _host(tensor: Tensor) -> Any:
    storage = tensor._storage
    return storage.backend.numbers(storage.array)


@public("method")
def item(self: Tensor) -> Any:
    """The value of a one-element tensor as a Python number."""
    array = self._storage.array
    if array.size != 1:
        raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    value = self._storage.backend.number(array)
    return value if type(value) in (float, int, bool, complex) else float(value)


@public("method")
def tolist(self: Tensor) -> Any:
    """The values as nested lists of Python numbers (a number for a zero-dim tensor)."""
    expect_memory(self._storage)
    return _host(self).tolist()


@public("method")
def __bool__(self: Tensor) -> bool:
    array = self._storage.array
    if array.size != 1:
        if array.size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if self._storage.backend.differs(array):
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
            "flow. We don't support that yet, please file an issue at "
            "https://github.com/pytorch/pytorch/issues ."
        )
    return bool(self._storage.backend.number(array))


def _only(tensor: Tensor) -> Any:
    if tensor._storage.physical.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return item(tensor)


def _real(value: Any, dtype: DType) -> Any:
    return fitting_number(value, dtype) if isinstance(value, complex) else value


@public("method")
def __float__(self: Tensor) -> float:
    return float(_real(_only(self), dtypes.float64))


@public("method")
def __int__(self: Tensor) -> int:
    return int(_real(_only(self), dtypes.int64))


@public("method")
def __complex__(self: Tensor) -> complex:
    return complex(_only(self))


@public("method")
def __index__(self: Tensor) -> int:
    if self.dtype.kind not in "biu" or self._storage.physical.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


@public("method")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by ``callable(element)``, called in Python; for CPU tensors."""
    return map_(self, None, lambda value, _: callable(value))


@public("method")
def map_(self: Tensor, tensor: Tensor | None, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by ``callable(element, element of tensor)``, called in Python."""
    if self.requires_grad:
        raise RuntimeError(
            "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead."
        )
    if not self.is_cpu:
        raise TypeError("apply_ is only implemented on CPU tensors")
    backend, array = self._storage.backend, self._storage.array
    values = array.reshape(-1).tolist()
    others = values if tensor is None else tensor.expand(self.shape).reshape(-1).tolist()
    results = [callable(value, other) for value, other in zip(values, others)]
    write(self, backend.asarray(results, self.dtype).reshape(array.shape))
    return self


@public("method")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace every element by ``callable(element, of x, of y)``, called in Python.

    Raises TypeError for other dtypes, RuntimeError where a gradient would be wanted.
    """
    if self.requires_grad or x.requires_grad or y.requires_grad:
        raise RuntimeError(
            "Can't call map2_() on Variable that requires grad. Use var.detach().map2_() instead."
        )
    for name, other in (("x", x), ("y", y)):
        if other.type() != self.type():
            raise TypeError(
                f"map2_: expected {self.type()} for argument '{name}' (got {other.type()})"
            )
    if not self.is_cpu:
        raise TypeError("map2_ is only implemented on CPU tensors")
    lists = [part.expand(self.shape).reshape(-1).tolist() for part in (self, x, y)]
    backend, array = self._storage.backend, self._storage.array
    write(self, backend.asarray(list(map(callable, *lists)), self.dtype).reshape(array.shape))
    return self
