"""``torch._dynamo.utils``: counts of what was compiled."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.settings import counters

__all__ = ["counters"]
