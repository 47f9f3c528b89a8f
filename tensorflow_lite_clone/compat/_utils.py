"""``torch._utils``: what packages take from there, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.accelerator import current_device_index
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.serialization import _rebuild
from tensorflow_lite_clone.tensor import Tensor

# With these subclasses of Tensor say how they are pickled.
_rebuild_tensor = _rebuild.rebuild_tensor
_rebuild_tensor_v2 = _rebuild.rebuild_tensor_v2
_rebuild_parameter = _rebuild.rebuild_parameter
_rebuild_wrapper_subclass = _rebuild.rebuild_wrapper_subclass
_rebuild_from_type_v2 = _rebuild.rebuild_from_type


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of tensors of one dtype as one tensor (N,)."""
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts of `flat` that have the shapes of `tensors`, as views of it."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors))


def _element_size(dtype: DType) -> int:
    """The bytes of one element. Lightning reads parts of files by it."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device that is given as one, by name, or by its number; Lightning asks.

    The current GPU's where `optional` and none is said, -1 for the CPU where that is allowed.
    Raises ValueError for the CPU and for no number otherwise.
    """
    if isinstance(device, int):
        return device
    named = None if device is None else Device(device)
    if named is not None and named.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {named}")
        return -1
    if named is not None and named.index is not None:
        return named.index
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{named}"
        )
    return current_device_index()
