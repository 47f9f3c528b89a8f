"""How often arrays were copied from one order of memory to another, which tests and profiles read.

``packed``: arrays brought to channels next to each other, for a convolution or as another operand
lies so; ``settled``: ones brought back, because a program looked at them
(see `storage.LazyStorage`).
"""

from __future__ import annotations

from collections import Counter

conversions: Counter[str] = Counter()
