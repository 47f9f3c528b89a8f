"""Discrete Fourier transforms, as ``torch.fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone._bind import names_of

if TYPE_CHECKING:  # the names are entered below

    def __getattr__(name: str) -> Any: ...


globals().update(names_of("fft"))
__all__ = sorted(names_of("fft"))  # noqa: PLE0605
