"""``torch.utils._sympy.value_ranges``: the sizes that a dimension may have."""

from __future__ import annotations

from tensorflow_lite_clone.export._guards import ValueRanges

__all__ = ["ValueRanges"]
