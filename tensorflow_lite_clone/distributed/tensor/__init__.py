"""Tensors on meshes of devices, as ``torch.distributed.tensor``.

A `DTensor` says where the parts of a tensor are, and moves them; modules and optimizers compute
with the parts, which are plain tensors and parameters.
"""

from __future__ import annotations

from tensorflow_lite_clone.distributed.tensor import (
    _elementwise,  # noqa: F401  enters functions of elements
    _utils,
    placement_types,
)
from tensorflow_lite_clone.distributed.tensor._dtensor import (
    DTensor,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from tensorflow_lite_clone.distributed.tensor._modules import distribute_module
from tensorflow_lite_clone.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
)

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "_utils",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "placement_types",
    "rand",
    "randn",
    "zeros",
]
