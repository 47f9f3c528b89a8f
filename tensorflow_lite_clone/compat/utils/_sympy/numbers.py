"""``torch.utils._sympy.numbers``: the size that has no bound."""

from __future__ import annotations

from tensorflow_lite_clone.export._sizes import Infinity as IntInfinity
from tensorflow_lite_clone.export._sizes import int_oo

__all__ = ["IntInfinity", "int_oo"]
