"""Linear algebra, as ``torch.linalg``: what there is of it so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone._bind import names_of

if TYPE_CHECKING:  # the names are entered below

    def __getattr__(name: str) -> Any: ...


globals().update(names_of("linalg"))
__all__ = sorted(names_of("linalg"))  # noqa: PLE0605
