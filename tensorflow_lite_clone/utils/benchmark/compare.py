"""`Compare`: measurements as a table."""

from __future__ import annotations

import enum
from typing import Any

from tensorflow_lite_clone.utils.benchmark.measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

GOOD, BAD, BOLD, END = "\033[92m", "\033[91m", "\033[1m", "\033[0m"
# Times up to this many times the best one are good, above the second they are bad.
NEAR, FAR = 1.1, 2.0


class Colorize(enum.Enum):
    """Which times are compared by colors."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements for each label: rows are sub-labels, columns descriptions."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._colorize = Colorize.NONE
        self._warn = False

    def extend_results(self, results: Any) -> None:
        """Add measurements; ValueError for anything else."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only the digits that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show what is fast and slow, in each column or in each row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that spread too much."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        labels = ordered_unique([result.task_spec.label for result in results])
        return "\n".join(
            [self._table([r for r in results if r.task_spec.label == label]) for label in labels]
        )

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(result.median for result in results))
        columns = ordered_unique([result.task_spec.description for result in results])
        multiple = len({result.task_spec.env for result in results}) > 1

        def row_key(result: Measurement) -> tuple[int, str]:
            name = f"{result.env}: {result.as_row_name}" if multiple else result.as_row_name
            return result.task_spec.num_threads, name

        rows = sorted(ordered_unique(map(row_key, results)), key=lambda row: row[0])
        cells = {(row_key(r), r.task_spec.description): r for r in results}
        texts = {place: self._text(cell, scale) for place, cell in cells.items()}
        left = max(len(name) for _, name in rows) + 6
        widths = [
            max(len(column or ""), *(len(texts.get((row, column), "")) for row in rows))
            for column in columns
        ]
        head = "".join(f"  |  {c or '':^{w}}" for c, w in zip(columns, widths))
        total = left + len(head)
        title = f" {results[0].task_spec.label or results[0].task_spec.stmt} "
        lines = [f"[{title:-^{total - 2}}]", " " * left + head]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(total, "-"))
            line = f"{'      ' + row[1]:<{left}}"
            for column, width in zip(columns, widths):
                text = f"{texts.get((row, column), ''):>{width}}"
                line += "  |  " + self._colored(text, cells, row, column)
            lines.append(line)
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(result.has_warnings for result in results):
            lines.append("(! XX%) Measurement has high variance: the interquartile range is XX%.")
        return "\n".join(lines) + "\n"

    def _text(self, cell: Measurement, scale: float) -> str:
        value = cell.median / scale
        if self._trim:
            digits = cell.significant_figures
            value = trim_sigfig(value, digits)
            text = f"{value:.{max(digits - len(str(int(value))), 0)}f}"
        else:
            text = f"{value:.1f}"
        if self._warn and cell.has_warnings:
            text = f"(! {cell.iqr / cell.median * 100:.0f}%) {text}"
        return text

    def _colored(self, text: str, cells: dict, row: Any, column: Any) -> str:
        if self._colorize is Colorize.NONE or (row, column) not in cells:
            return text
        along = 0 if self._colorize is Colorize.ROWWISE else 1
        peers = [r.median for place, r in cells.items() if place[along] == (row, column)[along]]
        ratio = cells[row, column].median / min(peers)
        if ratio == 1:
            return f"{GOOD}{BOLD}{text}{END}{END}"
        if ratio <= NEAR:
            return f"{GOOD}{text}{END}"
        return f"{BAD}{text}{END}" if ratio > FAR else text
