"""Counting multiplications and additions, as ``torch.utils.flop_counter``: planned."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """Context that counts; NotImplementedError where it would have to."""

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        self.depth, self.display = depth, display

    def __enter__(self) -> NoReturn:
        raise NotImplementedError("FlopCounterMode: floating-point operations are not counted yet")

    def __exit__(self, *error: object) -> None:
        pass

    get_total_flops = get_flop_counts = __enter__
