"""``torch._dynamo.backends.common``: backends from compilers of aten's operations."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.aot import aot_autograd

__all__ = ["aot_autograd"]
