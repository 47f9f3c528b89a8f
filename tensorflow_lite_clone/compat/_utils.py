"""``torch._utils``: what packages take from there, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence

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
