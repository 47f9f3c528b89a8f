"""What pickles of PyTorch call to make tensors; arguments may come from anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.device import COMPRESSED, Layout, sparse_coo, strided
from tensorflow_lite_clone.core.dtypes import DType, float64, int64
from tensorflow_lite_clone.core.qscheme import per_channel_affine, per_tensor_affine
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.strides import extent
from tensorflow_lite_clone.ops.compat.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage
from tensorflow_lite_clone.ops.create.constructors import empty_strided
from tensorflow_lite_clone.ops.properties import _OWN, _set_attributes
from tensorflow_lite_clone.quantized.quantize import quantized_dtype
from tensorflow_lite_clone.quantized.tensor import QuantizedTensor
from tensorflow_lite_clone.serialization._foreign import Foreign, spreading
from tensorflow_lite_clone.sparse import construct
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.compressed import CompressedTensor
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor
from tensorflow_lite_clone.tensor.parameter import Parameter

#: Storages whose bytes stand behind the pickle -> what is to be done when they have been read.
unfilled: WeakKeyDictionary[Storage, list[Callable[[], None]]] = WeakKeyDictionary()


_MOST_DIMENSIONS = 64


def memory_of(storage: TypedStorage | UntypedStorage) -> Storage:
    """The memory that a storage object of the face stands for."""
    if isinstance(storage, UntypedStorage):
        return storage._memory
    if isinstance(storage, TypedStorage):
        return storage._untyped_storage._memory
    raise TypeError(f"expected a storage, not {type(storage).__name__}")


def whole_numbers(what: str, values: Any) -> tuple[int, ...]:
    """`values` as a tuple; ValueError unless they are integers from 0 on.

    Messages show nothing but text and numbers of a file: tuples whose parts are shared can be
    short in the file and endless when they are printed.
    """
    numbers = tuple(values)
    if len(numbers) > _MOST_DIMENSIONS:
        raise ValueError(
            f"{what} of {len(numbers)} dimensions, and there can be {_MOST_DIMENSIONS}"
        )
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
    nbytes = line.size * line.dtype.itemsize
    needed = (start + extent(shape, strides)) * dtype.itemsize
    if needed > nbytes and 0 not in shape or start * dtype.itemsize > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start}, "
            f"and itemsize {dtype.itemsize} requiring a storage size of {needed} are out of "
            f"bounds for storage of size {nbytes}"
        )
    native = backend.native[dtype]
    if line.dtype != native:
        if nbytes % dtype.itemsize:
            raise RuntimeError(f"a storage of {nbytes} bytes has no whole elements of {dtype}")
        line = backend.F.bitcast(line, native)
    array = backend.F.as_strided(line, shape, strides, start)
    return new_tensor(Storage(array, backend, memory))


def _settle(view: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    """Carry out what PyTorch would do later: conjugate, negate; then `requires_grad`."""
    names = [name for name, value in (metadata or {}).items() if value]
    if set(metadata or ()) - {"conj", "neg"}:
        raise ValueError("tensors can be conjugates and negatives, and nothing else here")

    def settled() -> Tensor:
        tensor = view
        for name in names:
            tensor = tensor.conj() if name == "conj" else -tensor
        return tensor

    def settle_late() -> None:
        with no_grad():
            tensor.copy_(settled())

    tensor = settled()
    if names:
        _when_filled([view], settle_late)
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _when_filled(tensors: list[Tensor], function: Callable[[], None]) -> bool:
    """Call `function` when the bytes of these tensors have been read, unless they are there."""
    for tensor in tensors:
        late = unfilled.get(tensor._storage.root or tensor._storage)
        if late is not None:
            late.append(function)
            return True
    return False


@spreading
def rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a typed storage."""
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


@spreading
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


@spreading
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


@spreading
def rebuild_meta_tensor(dtype: DType, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor on the device ``meta``, of which a file has no elements and no memory to share."""
    if not isinstance(dtype, DType):
        raise TypeError(f"expected a dtype, not {type(dtype).__name__}")
    shape, strides = whole_numbers("sizes", size), whole_numbers("strides", stride)
    tensor = empty_strided(shape, strides, dtype=dtype, device="meta")
    return tensor.requires_grad_(bool(requires_grad))


@spreading
def rebuild_sparse_tensor(layout: Layout, data: tuple) -> SparseBase:
    """A sparse tensor of its indices, values and size, and of one in coordinates whether it is
    coalesced."""
    if layout in COMPRESSED:
        return _rebuild_compressed(layout, *data)
    if layout is not sparse_coo:
        raise ValueError(f"expected the layout of a sparse tensor, not {layout}")
    indices, values, size, coalesced = data if len(data) == 4 else (*data, False)
    shape = whole_numbers("sizes", size)
    _expect_strided(indices, values)
    tensor = SparseTensor(indices, values.detach(), Size(shape), bool(coalesced))
    known = (
        indices.dtype is int64
        and indices.ndim == 2
        and values.ndim >= 1
        and values.shape[0] == indices.shape[1]
        and len(indices) + values.ndim - 1 == len(shape)
        and tuple(values.shape[1:]) == shape[len(indices) :]
    )
    if not known:
        raise ValueError("the indices, values and size of a sparse tensor do not fit each other")
    if not tensor.is_meta and not _when_filled([indices], lambda: _expect_inside(tensor)):
        _expect_inside(tensor)
    return tensor


def _expect_strided(*parts: Any) -> None:
    for part in parts:
        if not isinstance(part, Tensor) or part.layout is not strided:
            raise TypeError("a sparse tensor needs strided indices and values")


def _rebuild_compressed(
    layout: Layout, compressed: Any, plain: Any, values: Any, size: Any
) -> CompressedTensor:
    """A tensor in compressed rows or columns; RuntimeError for indices outside of the size."""
    shape = whole_numbers("sizes", size)
    _expect_strided(compressed, plain, values)

    def check() -> None:
        construct.validate(compressed, plain, values, shape, layout, ordered=False)

    if not _when_filled([compressed, plain], check):
        check()
    return CompressedTensor(layout, compressed, plain, values, shape)


def _expect_inside(tensor: SparseTensor) -> None:
    """RuntimeError for indices outside of the size."""
    for row, length in zip(tensor._indices(), tensor.shape, strict=False):
        if row.numel() and not (row.min().item() >= 0 and row.max().item() < length):
            raise RuntimeError(f"a sparse tensor has an index outside of its size {tensor.shape}")


@spreading
def rebuild_quantized_tensor(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    parameters: tuple,
    requires_grad: bool,
    backward_hooks: Any,
) -> QuantizedTensor:
    """A quantized tensor over a storage of codes.

    `parameters` are its scheme and a scale and zero point, or vectors of them and their axis.
    """
    codes = rebuild_tensor(storage, storage_offset, size, stride)
    dtype = quantized_dtype(codes)
    scheme, scale, zero_point, *axis = parameters
    if scheme is per_tensor_affine and (type(scale), type(zero_point), axis) == (float, int, []):
        return QuantizedTensor(codes, dtype, scale, zero_point)
    if scheme is not per_channel_affine or len(axis) != 1:
        raise ValueError("expected torch.per_tensor_affine or torch.per_channel_affine, and more")
    (dim,) = whole_numbers("the axis", axis)
    for vector, kind in ((scale, float64), (zero_point, int64)):
        if not isinstance(vector, Tensor) or vector.dtype is not kind:
            raise TypeError(f"the scales or zero points of a quantized tensor are not of {kind}")
        if vector.layout is not strided or vector.shape != codes.shape[dim : dim + 1]:
            raise ValueError("the scales and zero points do not fit the size of a quantized tensor")
    return QuantizedTensor(codes, dtype, scale, zero_point, dim)


@spreading
def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A Parameter over `data`; quantized it is no other than `data`, and none is sparse here."""
    if isinstance(data, SparseBase):
        return Foreign("a sparse parameter")
    if isinstance(data, QuantizedTensor):
        return data
    if not isinstance(data, Tensor):
        raise TypeError(f"expected a tensor, not {type(data).__name__}")
    return Parameter(data, bool(requires_grad))


@spreading
def rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Any:
    """A Parameter over `data` that has attributes of its own."""
    parameter = rebuild_parameter(data, requires_grad, backward_hooks)
    if type(parameter) is Foreign:
        return parameter
    take_attributes(parameter, state)
    return parameter


def rebuild_wrapper_subclass(
    cls: type,
    dtype: DType,
    size: Any,
    stride: Any,
    storage_offset: int,
    layout: Layout,
    device: Any,
    requires_grad: bool,
) -> Any:
    """An instance of a class with `__torch_dispatch__`, which has no memory of its own."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError("expected a class of tensors")
    kind: Any = cls
    return Tensor._make_wrapper_subclass(
        kind,
        whole_numbers("sizes", size),
        whole_numbers("strides", stride),
        dtype=dtype,
        device=device,
        requires_grad=bool(requires_grad),
    )


def rebuild_from_type(make: Any, cls: type, arguments: tuple, state: Any) -> Any:
    """What ``make(*arguments)`` gives, as an instance of `cls` with attributes of its own."""
    tensor = make(*arguments)
    if type(tensor) is Foreign:
        return tensor
    if not isinstance(tensor, Tensor) or not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError("expected a tensor and a class of tensors")
    if not isinstance(tensor, cls):
        requires_grad, tensor = tensor.requires_grad, tensor.detach().as_subclass(cls)
        tensor.requires_grad_(requires_grad)
    take_attributes(tensor, state)
    return tensor


def take_attributes(value: Any, state: Any) -> None:
    """Give an object attributes of a file, but none that anybody already means something by."""
    cls = Tensor if isinstance(value, Tensor) else type(value)
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        if part is None:
            continue
        for name in attribute_names(part):
            if hasattr(cls, name) or hasattr(Parameter, name) or name in _OWN:
                raise ValueError(f"a {type(value).__name__} does not take an attribute {name!r}")
        if isinstance(value, Tensor):
            _set_attributes(value, part)
        else:
            vars(value).update(part)


def attribute_names(state: Any) -> list[str]:
    """The names in a dictionary of attributes; ValueError for such as Python gives a meaning.

    NumPy and others ask objects for ``__array_interface__`` and more of that kind, and read the
    memory that it names.
    """
    if not isinstance(state, dict):
        raise TypeError(f"attributes must be a dict, not {type(state).__name__}")
    for name in state:
        if type(name) is not str:
            raise ValueError("names of attributes must be text")
        if name.startswith("__") and name.endswith("__"):
            raise ValueError(f"a file cannot set the attribute {name!r}")
    return list(state)


_LAYOUTS = {repr(layout): layout for layout in (strided, sparse_coo, *COMPRESSED)}


def layout(name: str) -> Layout | Foreign:
    """The layout called `name`."""
    if type(name) is not str or not name.startswith("torch."):
        raise ValueError("there is no such layout")
    return _LAYOUTS.get(name) or Foreign(f"a tensor in the layout {name[:40]}")


def storage_over(array: Any, backend: Any, dtype: DType | None) -> TypedStorage | UntypedStorage:
    """The storage object over a flat array of bytes: typed, or with dtype None untyped."""
    if dtype is None:
        return UntypedStorage(wrap(array, backend))
    return TypedStorage(wrap(backend.F.bitcast(array, backend.native[dtype]), backend))
