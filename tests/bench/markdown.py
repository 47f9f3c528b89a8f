"""What the pages of measurements are made of."""

from __future__ import annotations

from collections.abc import Sequence


def us(value: float | None) -> str:
    """Microseconds: with a digit after the point below a hundred."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: words on the left, figures on the right of their columns."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows)) + "\n"
