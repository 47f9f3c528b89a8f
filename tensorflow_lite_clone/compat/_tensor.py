"""``torch._tensor``: PyTorch's place of the class of tensors."""

from __future__ import annotations

from tensorflow_lite_clone.serialization._rebuild import rebuild_from_type
from tensorflow_lite_clone.tensor import Tensor

_rebuild_from_type_v2 = rebuild_from_type  # Lightning reads files part by part with it

__all__ = ["Tensor"]
