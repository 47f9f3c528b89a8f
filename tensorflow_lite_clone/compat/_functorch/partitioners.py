"""``torch._functorch.partitioners``: how a graph of both passes is split."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.aot import default_partition

__all__ = ["default_partition"]
