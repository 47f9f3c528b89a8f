"""What pickles of PyTorch call to make tensors; arguments may come from anybody."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.core.device import Layout, strided
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.strides import extent
from tensorflow_lite_clone.ops.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.untyped_storage import UntypedStorage
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor
from tensorflow_lite_clone.tensor.parameter import Parameter


def memory_of(storage: TypedStorage | UntypedStorage) -> Storage:
    """The memory that a storage object of the face stands for."""
    if isinstance(storage, UntypedStorage):
        return storage._memory
    if isinstance(storage, TypedStorage):
        memory = storage._line._storage
        return memory.root or memory
    raise TypeError(f"expected a storage, not {type(storage).__name__}")


def whole_numbers(what: str, values: Any) -> tuple[int, ...]:
    """`values` as a tuple; ValueError unless they are integers from 0 on.

    Messages show nothing but text and numbers of a file: tuples whose parts are shared can be
    short in the file and endless when they are printed.
    """
    numbers = tuple(values)
    if not all([type(n) is int and 0 <= n < 1 << 63 for n in numbers]):
        raise ValueError(f"{what} must be integers from 0 on")
    return numbers


def _tensor(memory: Storage, dtype: DType, offset: Any, size: Any, stride: Any) -> Tensor:
    """A view of `memory`; RuntimeError for one that would leave it."""
    backend = memory.backend
    shape, strides = whole_numbers("sizes", size), whole_numbers("strides", stride)
    (start,) = whole_numbers("the offset", (offset,))
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    line = memory.array
    held = line.size * line.dtype.itemsize
    needed = (start + extent(shape, strides)) * dtype.itemsize
    if needed > held and 0 not in shape or start * dtype.itemsize > held:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start}, "
            f"and itemsize {dtype.itemsize} requiring a storage size of {needed} are out of "
            f"bounds for storage of size {held}"
        )
    native = backend.native[dtype]
    if line.dtype != native:
        if held % dtype.itemsize:
            raise RuntimeError(f"a storage of {held} bytes has no whole elements of {dtype}")
        line = backend.F.bitcast(line, native)
    array = backend.F.as_strided(line, shape, strides, start)
    return new_tensor(Storage(array, backend, memory))


def _settle(tensor: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    """Carry out what PyTorch would do later: conjugate, negate; then `requires_grad`."""
    for name, value in (metadata or {}).items():
        if name not in ("conj", "neg"):
            raise ValueError("tensors can be conjugates and negatives, and nothing else here")
        if value:
            tensor = tensor.conj() if name == "conj" else -tensor
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a typed storage."""
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """A tensor over a typed storage."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"expected a typed storage, not {type(storage).__name__}")
    tensor = _tensor(memory_of(storage), storage.dtype, storage_offset, size, stride)
    return _settle(tensor, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: DType,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """A tensor of `dtype` over a storage of bytes."""
    if not isinstance(dtype, DType):
        raise TypeError(f"expected a dtype, not {type(dtype).__name__}")
    tensor = _tensor(memory_of(storage), dtype, storage_offset, size, stride)
    return _settle(tensor, requires_grad, metadata)


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A Parameter over `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(f"expected a tensor, not {type(data).__name__}")
    return Parameter(data, bool(requires_grad))


def rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Parameter:
    """A Parameter over `data` that has attributes of its own."""
    parameter = rebuild_parameter(data, requires_grad, backward_hooks)
    take_attributes(parameter, state)
    return parameter


def rebuild_from_type(make: Any, cls: type, arguments: tuple, state: Any) -> Any:
    """What ``make(*arguments)`` gives, as an instance of `cls` with attributes of its own."""
    tensor = make(*arguments)
    if not isinstance(tensor, Tensor) or not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError("expected a tensor and a class of tensors")
    if type(tensor) is not cls:
        requires_grad, tensor = tensor.requires_grad, tensor.detach().as_subclass(cls)
        tensor.requires_grad_(requires_grad)
    take_attributes(tensor, state)
    return tensor


def take_attributes(value: Any, state: Any) -> None:
    """Give an object attributes of a file, but none that its class already means something by."""
    if isinstance(state, tuple) and len(state) == 2:  # with those that lie in slots
        state = {**(state[0] or {}), **(state[1] or {})}
    for name in state or {}:
        if type(name) is not str:
            raise ValueError("names of attributes must be text")
        if hasattr(type(value), name):
            raise ValueError(f"a {type(value).__name__} does not take an attribute {name!r}")
    vars(value).update(state or {})


def layout(name: str) -> Layout:
    """The layout called `name`, of which there is one."""
    if name != "torch.strided":
        raise ValueError("there is no such layout here: all tensors are strided")
    return strided


def storage_over(array: Any, backend: Any, dtype: DType | None) -> TypedStorage | UntypedStorage:
    """The storage object over a flat array of bytes: typed, or with dtype None untyped."""
    if dtype is None:
        return UntypedStorage(wrap(array, backend))
    return TypedStorage(wrap(backend.F.bitcast(array, backend.native[dtype]), backend))
