"""What can be asked of a tensor without computing; pickling and copying."""

from __future__ import annotations

import copy
import copyreg
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import apply_view, wrap
from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.core.device import Device, get_tensor_type_device
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.interception import enable_for
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import plain_types, without_overrides
from tensorflow_lite_clone.ops.create import constructors
from tensorflow_lite_clone.ops.pointwise._operands import operand_dtype
from tensorflow_lite_clone.ops.reduce._arguments import override_or_type_error
from tensorflow_lite_clone.ops.shape.views import View
from tensorflow_lite_clone.storage import LazyStorage, Storage, view_of_copy
from tensorflow_lite_clone.tensor import Tensor


@public("torch")
def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


@public("torch", "method", flat=True)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    if not isinstance(input, Tensor):
        return override_or_type_error(is_floating_point, input)
    return input.dtype.kind == "f"


@public("torch", "method", flat=True)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    if not isinstance(input, Tensor):
        return override_or_type_error(is_complex, input)
    return input.dtype.kind == "c"


@public("torch", "method", flat=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype can hold negative numbers."""
    return input.dtype.is_signed


#: Kinds of tensors that PyTorch has and we do not.
for _name in """sparse sparse_csr quantized mkldnn mps xpu xla vulkan ipu maia mtia
nested""".split():
    export(property(lambda self: False), "property", name=f"is_{_name}")


@public("torch", "method")
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero."""
    return bool(input)


@public("torch", "method")
def is_inference(input: Tensor) -> bool:
    """Always False: tensors made in inference mode are ordinary ones here."""
    return False


@public("torch")
def result_type(*operands: Any, **named: Any) -> DType:
    """The dtype of an arithmetic operation between two tensors or numbers.

    By name they are (tensor, other), (scalar, tensor) or (scalar1, scalar2).
    """
    values = (*operands, *named.values())
    names = [pair[len(operands) :] for pair in _RESULT_TYPE_NAMES]
    if len(values) != 2 or not any([{*named} == {*pair} for pair in names]):
        raise TypeError(
            "result_type() received an invalid combination of arguments: expected (tensor, other), "
            f"(scalar, tensor) or (scalar1, scalar2), not {len(operands)} by position and "
            f"{list(named)} by name"
        )
    return operand_dtype(*values)


_RESULT_TYPE_NAMES = (("tensor", "other"), ("scalar", "tensor"), ("scalar1", "scalar2"))


@public("torch", "method", flat=True)
def get_device(input: Tensor) -> int:
    """The CUDA device's index, -1 for other devices."""
    index = input.device.index
    return -1 if index is None else index


@public("method")
def is_pinned(self: Tensor, device: Any = "cuda") -> bool:
    """Whether the tensor lies in page-locked host memory, which only a CUDA device in use gives."""
    kind = Device(device).type
    array = self._storage.array
    return self.is_cpu and any(
        [backend.is_pinned(array) for backend in backends.loaded() if backend.device.type == kind]
    )


@public("method")
def pin_memory(self: Tensor, device: Any = "cuda") -> Tensor:
    """A copy in page-locked memory, from which a device copies while the program goes on.

    The tensor itself when it lies there already; RuntimeError for tensors of other devices and
    where there is no CUDA device.
    """
    if not self.is_cpu:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if self.is_pinned(device):
        return self
    return wrap(backends.load(device).pinned(self._storage.array), self._storage.backend)


@public("method")
def record_stream(self: Tensor, stream: Any) -> None:
    """Say that `stream` also uses this tensor.

    Its memory is not used again before `stream` has done what is queued there when the tensor goes.
    """
    storage = self._storage
    given = getattr(stream, "handle", stream), getattr(stream, "_index", None)
    storage.backend.lend(storage.physical, *given)  # which the stream may have read as it lies
    if storage.__class__ is LazyStorage:
        storage.backend.lend(storage.array, *given)


@public("method")
def is_shared(self: Tensor) -> bool:
    """Whether other processes see the tensor's memory: that of a device, and shared memory."""
    return self._storage.backend.is_shared(self._storage.array)


@public("method")
def share_memory_(self: Tensor) -> Tensor:
    """Move the memory to where other processes see it, for good; returns the tensor itself.

    Processes that are forked, or get the tensor through `multiprocessing`, then read and write the
    same numbers. Other views that exist already stay with the former memory: share first.
    """
    storage = self._storage
    backend = storage.backend
    if not backend.is_shared(storage.array):
        root = storage.root or storage
        root.array, storage.array = backend.shared(root.array, storage.array)
    return self


#: Where the package's own classes are: as PyTorch's in a program of PyTorch's.
_PACKAGES = (__name__.partition(".")[0], "torch")
#: What a tensor's dictionary holds for the framework's own use; the rest goes along with copies.
_OWN = {"_grad", "_frozen", "_retains_grad", "_post_accumulate_hooks"}


def _attributes(tensor: Tensor) -> dict:
    """A program's attributes of a tensor, those in the slots of subclasses among them."""
    slots = [name for name in _slots(type(tensor)) if hasattr(tensor, name)]
    found = {name: value for name, value in vars(tensor).items() if name not in _OWN}
    return {**found, **{name: getattr(tensor, name) for name in slots}}


def _set_attributes(tensor: Tensor, attributes: dict) -> None:
    """Give a tensor what `_attributes` found."""
    slots = _slots(type(tensor)) & attributes.keys()
    for name, value in attributes.items():
        if name in slots:
            object.__setattr__(tensor, name, value)
        else:
            vars(tensor)[name] = value


def _slots(cls: type) -> frozenset[str]:
    """The names of the slots that a program's class adds to one of ours, as pickle knows them."""
    ours = next(kind for kind in cls.__mro__ if kind.__module__.partition(".")[0] in _PACKAGES)
    slotnames = copyreg._slotnames  # type: ignore[attr-defined]
    return frozenset(slotnames(cls)).difference(slotnames(ours))


def _over(cls: type, storage: Storage) -> Any:
    """A `cls` over `storage`, outside of any graph."""
    if cls not in plain_types:
        enable_for(cls)
    tensor: Any = object.__new__(cls)
    tensor._storage, tensor._edge, tensor._view = storage, None, None
    return tensor


def _rebuild(cls: type, array: Any, device: Device, requires_grad: bool, extra: dict) -> Tensor:
    backend = backends.load(device)
    return _completed(cls, wrap(backend.from_host(array), backend), requires_grad, extra)


def _rebuild_meta(cls: type, options: dict, requires_grad: bool, extra: dict) -> Tensor:
    return _completed(cls, constructors.empty_strided(**options), requires_grad, extra)


def _completed(cls: type, plain: Tensor, requires_grad: bool, extra: dict) -> Tensor:
    tensor = _over(cls, plain._storage)
    if requires_grad:
        tensor.requires_grad_()
    _set_attributes(tensor, extra)
    return tensor


@public("method")
def __reduce_ex__(self: Tensor, protocol: Any) -> tuple:
    storage = self._storage
    if not storage.backend.has_values:
        options = {"dtype": self.dtype, "device": self.device}
        options.update(size=tuple(self.shape), stride=self.stride())
        return _rebuild_meta, (type(self), options, self.requires_grad, _attributes(self))
    array = storage.backend.to_host(storage.array)
    arguments = type(self), array, self.device, self.requires_grad, _attributes(self)
    return _rebuild, arguments


@public("method")
def as_subclass(self: Tensor, cls: type) -> Any:
    """This tensor, in its place in the graph, as an instance of a subclass of Tensor."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"as_subclass() expects a subclass of Tensor, not {cls!r}")
    if self._edge is not None and self._view is None and isinstance(self._edge[0], Leaf):
        shape = self._storage.physical.shape
        self = apply_view(View, self, shape=shape, source=shape)  # another tensor is no leaf
    result = _over(cls, self._storage)
    result._edge, result._view = self._edge, self._view
    return result


@without_overrides
def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """An instance of `cls`, a subclass of Tensor, over the memory of `data`, out of any graph."""
    return data.detach().as_subclass(cls).requires_grad_(require_grad)


export(staticmethod(_make_subclass), "method", name="_make_subclass")


@public("method")
@without_overrides
def __copy__(self: Tensor) -> Tensor:
    """Another tensor over the same memory, as a leaf."""
    result = _over(type(self), self._storage)
    if self.requires_grad:
        result.requires_grad_()
    _set_attributes(result, _attributes(self))
    return result


@public("method")
def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    result = _over(type(self), deep_copied(self._storage, memo))
    memo[id(self)] = result
    if self.requires_grad:
        result.requires_grad_()
    if self._grad is not None:
        result._grad = self._grad.__deepcopy__(memo)
    _set_attributes(result, copy.deepcopy(_attributes(self), memo))
    return result


def deep_copied(storage: Storage, memo: dict) -> Storage:
    """A copy of the whole memory that `storage` shows, made once for all its views, and the same
    view of it."""
    backend = storage.backend
    root = storage.root or storage
    fresh = memo.get(id(root))
    if fresh is None:
        array = backend.F.restride(root.array, strides=backend.strides(root.array))
        fresh = memo[id(root)] = Storage(array, backend)
    return fresh if root is storage else view_of_copy(storage, fresh)


@without_overrides
def _legacy_constructor(cls: type, *args: Any, device: Any = None) -> Tensor:
    """``Tensor()``, ``Tensor(2, 3)`` (uninitialised) and ``Tensor(data)`` in the default dtype.

    As in PyTorch they are on the CPU where none is named, whatever the default device.
    """
    device = device or get_tensor_type_device()
    if not args:
        made = constructors.empty(0, device=device)
    elif len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, Tensor):
            made = data.detach()
        elif isinstance(data, Size):
            made = constructors.empty(data, device=device)
        else:
            made = constructors.tensor(data, dtype=get_default_dtype(), device=device)
    else:
        made = constructors.empty(*args, device=device)
    return _over(cls, made._storage)


export(_legacy_constructor, "method", name="_legacy_constructor")
