"""Settings of deterministic computations, as ``torch.utils.deterministic``."""

from __future__ import annotations

import sys
from types import ModuleType

from tensorflow_lite_clone.core.flags import flags


class _Module(ModuleType):
    """A module with an attribute that lives elsewhere."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and others fill, while `use_deterministic_algorithms` is on."""
        return flags.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"expected a bool, but got {type(value).__name__}")
        flags.fill_uninitialized_memory = value


sys.modules[__name__].__class__ = _Module
