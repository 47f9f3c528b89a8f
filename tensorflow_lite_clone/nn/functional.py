"""Functions behind the modules, as ``torch.nn.functional``.

They are defined in `ops`, once, and many are the same objects as ``torch.relu`` or
``Tensor.softmax``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone._bind import names_of

if TYPE_CHECKING:  # the names are entered below

    def __getattr__(name: str) -> Any: ...


globals().update(names_of("functional"))
__all__ = sorted(names_of("functional"))  # noqa: PLE0605
