"""Functions behind the modules, as ``torch.nn.functional``.

They are defined in `ops`, once: ``F.relu`` has the code of ``torch.relu`` and ``Tensor.relu``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone._bind import names_of

# PyTorch's private names, which code in the wild imports from here.
from tensorflow_lite_clone.ops.compat import _reduction as _Reduction  # noqa: F401
from tensorflow_lite_clone.ops.nn.multi_head_attention import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _none_or_dtype,
)

if TYPE_CHECKING:  # the names are entered below

    def __getattr__(name: str) -> Any: ...


globals().update(names_of("functional"))
__all__ = sorted(names_of("functional"))  # noqa: PLE0605
_threshold = names_of("functional")["threshold"]  # as graphs name it

#: The modes of `grid_sample`, with PyTorch's numbers.
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
