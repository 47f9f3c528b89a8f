"""The pickler of checkpoints: tensors refer to storages, and names are PyTorch's."""

from __future__ import annotations

import copyreg
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

from tensorflow_lite_clone.core.device import Device, Layout
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.qscheme import QScheme, per_tensor_affine
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.ops.compat.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage
from tensorflow_lite_clone.ops.properties import _attributes
from tensorflow_lite_clone.python_dispatch.calls import with_memory
from tensorflow_lite_clone.quantized.tensor import QuantizedTensor
from tensorflow_lite_clone.serialization import _rebuild
from tensorflow_lite_clone.serialization._kinds import KINDS, StorageKind
from tensorflow_lite_clone.serialization._names import name_of
from tensorflow_lite_clone.serialization._storages import Collected, Reference
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.parameter import Parameter
from tensorflow_lite_clone.tensor.uninitialized import is_lazy

_STORAGE: Any = vars(Tensor)["_storage"]  # the slot, which subclasses hide behind properties


def pickler(module: Any, file: Any, protocol: int, storages: Collected) -> Any:
    """A pickler over that of the module `pickle`, or of one like it, such as dill.

    Where there is one in Python it is extended: pickle's C code gives no say in names. So what
    others write (cloudpickle), which have none, can be read by this package alone.
    """
    base: Any = getattr(module, "_Pickler", module.Pickler)
    has_names = hasattr(base, "save_global")
    base_reducer = getattr(base, "reducer_override", None)

    class CheckpointPickler(base):
        """Writes tensors as references and this package's classes under PyTorch's names."""

        def persistent_id(self, obj: Any) -> Any:
            if type(obj) is Reference:
                return obj.name
            if isinstance(obj, TypedStorage):
                return storages.refer(_rebuild.memory_of(obj), obj.dtype).name
            if isinstance(obj, UntypedStorage):
                return storages.refer(_rebuild.memory_of(obj), None).name
            return None

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Tensor):
                return reduced(obj, storages)
            if has_names and isinstance(obj, (DType, MemoryFormat, QScheme, StorageKind)):
                return obj.name
            if isinstance(obj, Device):
                return Device, (obj.type,) if obj.index is None else (obj.type, obj.index)
            if type(obj) is Size:
                return Size, (tuple(obj),)
            if isinstance(obj, Layout):
                return _rebuild.layout, (repr(obj),)
            state = getattr(type(obj), "_saved_state", None)  # a module's
            if state is not None and _pickles_plainly(type(obj)):
                return copyreg.__newobj__, (type(obj),), state(obj)  # type: ignore[attr-defined]
            return NotImplemented if base_reducer is None else base_reducer(self, obj)

        def save_global(self, obj: Any, name: str | None = None) -> None:
            known = name_of(obj, name)
            if known is None:
                super().save_global(obj, name)
            elif self.proto >= 4:
                for word in known:
                    self.save(word)
                self.write(pickle.STACK_GLOBAL)
                self.memoize(obj)
            else:
                self.write(pickle.GLOBAL + "".join([f"{word}\n" for word in known]).encode())
                self.memoize(obj)

        def save_function(self, obj: Any) -> None:
            if name_of(obj) is None:
                base.dispatch[FunctionType](self, obj)
            else:
                self.save_global(obj)

        dispatch = {**getattr(base, "dispatch", {}), FunctionType: save_function}

    return CheckpointPickler(file, protocol=protocol)


def _pickles_plainly(cls: type) -> bool:
    """Whether a class leaves it to pickle what its instances' state is."""
    return all(
        [
            getattr(cls, name, None) is getattr(object, name, None)
            for name in ("__reduce__", "__reduce_ex__", "__getstate__")
        ]
    )


def reduced(tensor: Tensor, storages: Collected) -> tuple:
    """How PyTorch makes a tensor again: a function and its arguments."""
    if is_lazy(tensor):
        return type(tensor), (tensor.requires_grad,)
    state = _attributes(tensor)
    if isinstance(tensor, Parameter):
        arguments: tuple = (tensor.detach(), tensor.requires_grad, OrderedDict())
        if state:
            return _rebuild.rebuild_parameter_with_state, (*arguments, state)
        return _rebuild.rebuild_parameter, arguments
    if isinstance(tensor, QuantizedTensor):
        pieces = _quantized(tensor, storages)
        if not state:
            return _rebuild.rebuild_quantized_tensor, pieces
        make_quantized = _rebuild.rebuild_quantized_tensor
        return _rebuild.rebuild_from_type, (make_quantized, Tensor, pieces, state)
    if isinstance(tensor, SparseBase):
        if isinstance(tensor, SparseTensor):
            values: tuple = tensor._elements.detach(), tensor.size(), tensor.is_coalesced()
        else:  # whose values say whether they require a gradient
            values = tensor._elements, tensor.size()
        parts = *tensor._index, *values
        pieces = tensor.layout, parts
        if not state:
            return _rebuild.rebuild_sparse_tensor, pieces
        return _rebuild.rebuild_from_type, (_rebuild.rebuild_sparse_tensor, Tensor, pieces, state)
    storage = _STORAGE.__get__(tensor)
    if storage.backend.dispatches:
        make: Any = _rebuild.rebuild_wrapper_subclass
        shown = tuple(tensor.shape), tensor.stride(), 0, tensor.layout, tensor.device
        values = type(tensor), tensor.dtype, *shown, tensor.requires_grad
    elif not storage.backend.has_values:
        make = _rebuild.rebuild_meta_tensor
        values = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad
    else:
        plain = with_memory(tensor)
        if plain is not tensor:
            plain.requires_grad_(tensor.requires_grad)
        make, values = _over_storage(plain, storages)
    if type(tensor) is Tensor and not state:
        return make, values
    return _rebuild.rebuild_from_type, (make, type(tensor), values, _divided(tensor, state))


def _divided(tensor: Tensor, state: dict) -> dict | tuple[dict, dict]:
    """A tensor's attributes, and apart from them what is in slots of its class, if any."""
    slots = {name: value for name, value in state.items() if name not in vars(tensor)}
    if not slots:
        return state
    return {name: value for name, value in state.items() if name not in slots}, slots


def _over_storage(tensor: Tensor, storages: Collected) -> tuple[Any, tuple]:
    """What makes a tensor again over memory whose bytes are in the file."""
    storage = tensor._storage
    reference = storages.refer(storage.root or storage, tensor.dtype)
    values: tuple = (
        reference,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
        OrderedDict(),
    )
    if tensor.dtype not in KINDS:
        return _rebuild.rebuild_tensor_v3, (*values, tensor.dtype)
    return _rebuild.rebuild_tensor_v2, values


def _quantized(tensor: QuantizedTensor, storages: Collected) -> tuple:
    """What `rebuild_quantized_tensor` takes: the storage of its codes, in a kind of its own."""
    scheme = tensor.qscheme()
    if scheme is per_tensor_affine:
        parameters: tuple = scheme, tensor.q_scale(), tensor.q_zero_point()
    else:
        vectors = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
        parameters = scheme, *vectors, tensor.q_per_channel_axis()
    codes = tensor._codes
    reference = storages.refer(codes._storage.root or codes._storage, tensor.dtype)
    place = codes.storage_offset(), tuple(codes.shape), codes.stride()
    return reference, *place, parameters, False, OrderedDict()
