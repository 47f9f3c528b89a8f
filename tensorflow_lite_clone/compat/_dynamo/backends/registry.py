"""``torch._dynamo.backends.registry``: backends by their names."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.registry import (
    list_backends,
    lookup_backend,
    register_backend,
)

__all__ = ["list_backends", "lookup_backend", "register_backend"]
