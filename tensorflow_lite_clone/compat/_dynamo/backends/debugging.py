"""``torch._dynamo.backends.debugging``: backends that run graphs as they are, and reports."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.explain import ExplainOutput
from tensorflow_lite_clone.compiler.dynamo.registry import eager

__all__ = ["ExplainOutput", "eager"]
