"""From PyTorch's values to ours and back, and from its operators to ours."""

from __future__ import annotations

import dataclasses
import io
import types
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)

DTYPES = [value for value in vars(torch).values() if isinstance(value, torch.dtype)]
#: dtypes that NumPy does not know by themselves -> integers of the same width
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


_BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


class Missing(Exception):
    """A name of PyTorch's that is not here."""


def name_of(dtype: torch.dtype) -> str:
    """ "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def _our_dtype(dtype: torch.dtype) -> Any:
    found = getattr(tlc, name_of(dtype), None)
    if found is None:
        raise Missing(f"dtype {dtype}")
    return found


def _array(tensor: torch.Tensor) -> np.ndarray:
    """The elements of a PyTorch tensor, row-major, as bits where NumPy lacks the dtype.

    They are copied: PyTorch does not resize what NumPy has seen.
    """
    flat = tensor.detach().resolve_conj().resolve_neg().clone().contiguous()
    if tensor.dtype is torch.complex32:
        return torch.view_as_real(flat).view(torch.int16).numpy()
    if tensor.dtype is torch.bfloat16 or "float8" in str(tensor.dtype):
        return flat.view(_BITS[tensor.dtype.itemsize]).numpy()
    return flat.numpy()


def _dense(array: np.ndarray, dtype: torch.dtype) -> Any:
    ours = _our_dtype(dtype)
    made = tlc.from_numpy(np.array(array, order="C"))
    if dtype is torch.complex32:
        return tlc.view_as_complex(made.view(tlc.float16))
    return made if made.dtype is ours else made.view(ours)


def _tensor(tensor: torch.Tensor, memories: dict[Any, Any] | None = None) -> Any:
    if memories is not None and id(tensor) in memories:
        return memories[id(tensor)]
    ours = _twin(tensor, memories)
    if memories is not None:
        memories[id(tensor)] = ours
    return ours


def _twin(tensor: torch.Tensor, memories: dict[Any, Any] | None) -> Any:
    if tensor.layout is torch.sparse_coo:
        ours = tlc.sparse_coo_tensor(
            _tensor(tensor._indices()), _tensor(tensor._values().detach()), tuple(tensor.shape)
        )
        ours = ours.coalesce() if tensor.is_coalesced() else ours
    elif tensor.layout is not torch.strided:
        raise Missing(f"layout {tensor.layout}")
    elif tensor.numel() == 0 or (
        memories is None
        and tensor.is_contiguous()
        and tensor.untyped_storage().nbytes() == tensor.nbytes
    ):
        ours = _dense(_array(tensor), tensor.dtype)
    else:  # the same strides, over the same memory
        extent = tensor.untyped_storage().nbytes() // tensor.dtype.itemsize
        key = tensor.untyped_storage().data_ptr(), tensor.dtype
        memory = None if memories is None else memories.get(key)
        if memory is None:
            memory = _dense(_array(tensor.detach().as_strided((extent,), (1,), 0)), tensor.dtype)
            if memories is not None:
                memories[key] = memory
        ours = memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return ours.requires_grad_(True) if tensor.requires_grad else ours


def to_ours(value: Any, memories: dict[Any, Any] | None = None) -> Any:
    """The same value for our package: tensors with their strides, dtypes, containers of them.

    Tensors of one memory share it here too, and a tensor that comes twice is one tensor, where
    `memories` is a dictionary to note them in while PyTorch's live.
    """
    if isinstance(value, torch.Tensor):
        return _tensor(value, memories)
    if isinstance(value, torch.dtype):
        return _our_dtype(value)
    if isinstance(value, torch.device):
        return tlc.device(str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        return getattr(tlc, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return tlc.Size(value)
    if type(value) in (list, tuple, set):
        return type(value)([to_ours(item, memories) for item in value])
    if type(value) is dict:
        return {key: to_ours(item, memories) for key, item in value.items()}
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return tlc.nn.utils.rnn.PackedSequence(*to_ours(tuple(value), memories))
    if isinstance(value, (types.FunctionType, *_BUILTINS)):
        return to_ours_callable(value)
    if isinstance(value, torch.nn.Module):
        return _module(value)
    if isinstance(value, torch.nn.LinearCrossEntropyOptions):
        return tlc.nn.LinearCrossEntropyOptions(**to_ours(dataclasses.asdict(value)))
    return value


def _module(module: torch.nn.Module) -> Any:
    """The module as our package reads it from the file that PyTorch writes."""
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tlc.load(file, weights_only=False)


def to_torch(value: Any) -> Any:
    """Our result as PyTorch's, for comparison: values, strides left aside."""
    if isinstance(value, tlc.Tensor):
        value = value.detach()
        if value.layout is not tlc.strided:
            value = value.to_dense()
        value = value.resolve_conj().resolve_neg().contiguous()
        dtype = getattr(torch, str(value.dtype).removeprefix("torch."))
        if dtype is torch.complex32:
            bits = tlc.view_as_real(value).view(tlc.int16).numpy()
            return torch.view_as_complex(torch.from_numpy(bits.copy()).view(torch.float16))
        if dtype is torch.bfloat16 or "float8" in str(dtype):
            bits = value.view(getattr(tlc, name_of(_BITS[dtype.itemsize]))).numpy()
            return torch.from_numpy(bits.copy()).view(dtype)
        return torch.from_numpy(np.array(value.numpy()))
    if isinstance(value, tlc.dtype):
        return getattr(torch, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return [to_torch(item) for item in value]
    return value


class _Ours(types.ModuleType):
    """Our package where a function of the table says `torch`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tlc, name)


_MODULE = _Ours("torch")


def _names(code: types.CodeType) -> set[str]:
    """The names that a function and the functions inside of it look up."""
    inner = [item for item in code.co_consts if isinstance(item, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def rebound(function: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function of PyTorch's table over our package in place of PyTorch."""
    names = dict(function.__globals__)
    for name in _names(function.__code__):
        value = names.get(name)
        if value is torch:
            names[name] = _MODULE
        elif value is torch.nn.functional:
            names[name] = tlc.nn.functional
        elif name == "freeze_rng_state":
            names[name] = nullcontext  # every call is seeded anew
        elif value is not function and _of_the_table(value):  # helpers beside it
            names[name] = rebound(value)
    cells = tuple(
        types.CellType(to_ours_callable(cell.cell_contents)) for cell in function.__closure__ or ()
    )
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _of_the_table(value: Any) -> bool:
    """Whether it is a Python function of PyTorch's tests, not of PyTorch."""
    return isinstance(value, types.FunctionType) and (
        (value.__module__ or "").startswith(("torch.testing._internal", "torch.testing._utils"))
        or value.__name__ == "<lambda>"
    )


def _named(path: str) -> Any:
    found: Any = tlc
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise Missing(path)
    return found


def to_ours_callable(value: Any) -> Any:
    """Ours for a function of PyTorch's, by its name; other values as they are."""
    if _of_the_table(value):
        return rebound(value)
    if isinstance(value, types.FunctionType):
        return _public(value, value.__module__ or "")
    if isinstance(value, _BUILTINS):
        return _public(value, "")
    return value


#: id(PyTorch's function) -> its path, for the rooms whose names users write
_PATHS: dict[int, str] = {}


def _paths() -> dict[int, str]:
    if not _PATHS:
        rooms = "Tensor nn.functional special linalg fft sparse masked signal.windows _C._nn"
        for room in [*rooms.split(), ""]:
            owner: Any = torch
            for part in room.split(".") if room else ():
                owner = getattr(owner, part)
            for name in dir(owner):
                value = getattr(owner, name, None)
                if callable(value) and not (room == "nn.functional" and name.startswith("_")):
                    path = f"{room}.{name}".strip(".")
                    _PATHS.setdefault(id(value), path.replace("_C._nn.", "nn.functional."))
    return _PATHS


def _public(function: Any, module: str) -> Any:
    path = _paths().get(id(function))
    if path is None:
        name = function.__name__
        path = f"{module}.{name}".removeprefix("torch.") if module.startswith("torch") else name
    return _named(path)


def operator(op: Any) -> Callable[..., Any]:
    """Our function for an entry of PyTorch's table; `Missing` where there is none."""
    function = op.op
    if _of_the_table(function):
        present(op)
        return rebound(function)
    return to_ours_callable(function)


def present(op: Any) -> None:
    """Raise `Missing` where an operator that is written as a Python function has no name here."""
    name = op.name
    if name.startswith("__") or hasattr(tlc, name) or hasattr(tlc.Tensor, name):
        return
    if hasattr(tlc.Tensor, name + "_"):  # uniform, exponential: in-place alone
        return
    if hasattr(torch, name) or hasattr(torch.Tensor, name):
        raise Missing(name)
