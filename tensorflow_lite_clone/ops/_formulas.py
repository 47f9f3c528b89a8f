"""Words that several gradients share."""

from __future__ import annotations

from typing import Any


def conj(F: Any, x: Any) -> Any:
    """The complex conjugate; real values as they are, without a copy."""
    return F.conj(x) if x.dtype.kind == "c" else x
