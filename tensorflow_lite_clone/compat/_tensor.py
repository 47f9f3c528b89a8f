"""``torch._tensor``: PyTorch's place of the class of tensors."""

from __future__ import annotations

from tensorflow_lite_clone._utils import _rebuild_from_type_v2 as _rebuild_from_type_v2
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Tensor"]
