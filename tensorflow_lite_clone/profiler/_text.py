"""Figures and tables as plain text."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def _scaled(value: float, step: int, units: str) -> str:
    """Three digits and a unit."""
    number = 0
    while abs(value) >= 999.5 and number < len(units) - 1:
        value /= step
        number += 1
    digits = 0 if abs(value) >= 99.5 or (number == 0 and value == int(value)) else 3
    text = f"{value:.{digits}g}" if digits else f"{value:.0f}"
    return f"{text} {units[number]}".strip()


def amount(count: int) -> str:
    """A number in thousands, millions, ...: ``25.6 M``."""
    return _scaled(count, 1000, " kMGTP")


def size(count: int | None) -> str:
    """Bytes: ``1.5 MiB``; a dash for None."""
    if count is None:
        return "-"
    text = _scaled(count, 1024, " KMGTP")
    return f"{text}iB" if text[-1].isalpha() else f"{text} B"


def duration(microseconds: float | None) -> str:
    """A time: ``12.3 us``; a dash for None."""
    if microseconds is None:
        return "-"
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= 0.9995 * factor:
            return f"{microseconds / factor:.{2 if microseconds < 1e2 * factor else 0}f} {unit}"
    return f"{microseconds:.1f} us"


def table(titles: list[str], lines: list[list[str]], remarks: list[str]) -> str:
    """Columns of equal width under their titles; the last line is a sum. Two columns of words."""
    widths = [max(map(len, column)) for column in zip(titles, *lines)]

    def row(cells: list[str]) -> str:
        words = [cell.ljust(width) for cell, width in zip(cells[:2], widths)]
        numbers = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:])]
        return "  ".join([*words, *numbers]).rstrip()

    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    shown = [row(titles), rule, *map(row, lines[:-1]), rule, row(lines[-1]), *remarks]
    return "\n".join(shown)


def print_with_rich(
    titles: Sequence[str],
    lines: Sequence[Sequence[str]],
    remarks: Sequence[str],
    words: int,
    styles: Sequence[str | None] = (),
    title: str | None = None,
) -> bool:
    """Print a table, whose first columns are `words`, by `rich`; False if that cannot be done:
    it is not installed, or standard output is no terminal."""
    try:
        from rich.console import Console  # an optional extra
        from rich.table import Table
    except ImportError:
        return False
    if not sys.stdout.isatty():
        return False
    shown = Table(title=title, caption="\n".join(remarks), caption_justify="left")
    for number, heading in enumerate(titles):
        side = "left" if number < words else "right"
        shown.add_column(heading, justify=side, no_wrap=number == 0)  # type: ignore[arg-type]
    for number, cells in enumerate(lines):
        shown.add_row(*cells, style=styles[number] if styles else None)
    Console(markup=False).print(shown)
    return True
