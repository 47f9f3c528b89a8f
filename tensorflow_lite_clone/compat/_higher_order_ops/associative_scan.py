"""``torch._higher_order_ops.associative_scan``: transformers' Mamba imports it."""

from __future__ import annotations

from tensorflow_lite_clone.func.scan import associative_scan

__all__ = ["associative_scan"]
