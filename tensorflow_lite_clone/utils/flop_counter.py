"""Counting multiplications and additions, as ``torch.utils.flop_counter``: not here so far."""

from __future__ import annotations

from typing import Any, Self

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """Context that counts; entering it raises NotImplementedError, so nothing is ever counted."""

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        self.depth, self.display = depth, display

    def __enter__(self) -> Self:
        raise NotImplementedError("FlopCounterMode: floating-point operations are not counted here")

    def __exit__(self, *error: object) -> None:
        pass

    def get_total_flops(self) -> int:
        """What was counted: 0."""
        return 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """What was counted, by module: nothing."""
        return {}
