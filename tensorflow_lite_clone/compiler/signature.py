"""What a call looks like: the key under which a captured step is kept."""

from __future__ import annotations

import types
from collections import OrderedDict
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.decorators.autocast import state as autocast
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.tensor import Tensor

#: Values that are what they are: compared by equality.
SCALARS = frozenset((int, float, bool, str, bytes, complex, type(None)))
_VALUES = SCALARS | {DType, Device, Size, slice}
_BY_IDENTITY = (Module, Optimizer, type, types.FunctionType, types.MethodType)
_switches = tuple(flags.__slots__)


class UnsuitableError(Exception):
    """Why a call cannot be captured."""


class UnstableError(UnsuitableError):
    """The function did something else than in the call before; a later call may be captured."""


class StaleError(Exception):
    """A number that is a constant in a graph has changed since."""


def signature(args: tuple, kwargs: dict[str, Any], tensors: list[Tensor]) -> tuple:
    """A hashable key of a call, equal for calls that one capture can serve.

    Tensors count by shape, strides, dtype, device and whether they require a gradient, and are
    appended to `tensors`. Raises UnsuitableError for arguments whose contents cannot be told.
    """
    parts = [_describe(value, tensors) for value in args]
    for name, value in kwargs.items():
        parts.append((name, _describe(value, tensors)))
    return tuple(parts)


def global_state() -> tuple:
    """What a call depends on besides its arguments: modes and switches of the process."""
    return (
        mode.grad,
        mode.inference,
        get_default_dtype(),
        *[getattr(flags, name) for name in _switches],
        tuple(autocast.dtypes.items()) if autocast.dtypes else None,
    )


def _describe(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value)
        storage = value._storage
        array = storage.array
        # A dtype's number stands for it: hashing and comparing dtypes takes long.
        dtype = array.dtype.num
        return array.shape, array.strides, dtype, storage.backend, value._edge is not None
    kind = value.__class__
    if kind in _VALUES:
        if kind is slice:
            return kind, value.start, value.stop, value.step
        return kind, value if value or kind is not float else str(value)  # 0.0 is not -0.0
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return kind, tuple([_describe(entry, tensors) for entry in value])
    if kind is dict or kind is OrderedDict:
        return kind, tuple(value), tuple([_describe(entry, tensors) for entry in value.values()])
    if isinstance(value, _BY_IDENTITY):
        return value
    raise UnsuitableError(f"it has an argument of type {kind.__name__}")
