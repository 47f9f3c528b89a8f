"""Tables of measurements as JSON files, and one table of several that were measured apart."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Table = dict[str, Any]
BY_CONTENDER = ("times", "spread", "ratios", "peaks", "wholes", "failures")
PLACE = ("gpu", "cpu", "threads")


def today() -> str:
    """The date in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def keep(table: Table, path: Path | None) -> None:
    """Write what is known so far."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(table, indent=1) + "\n")


def joined(tables: Sequence[Table]) -> Table:
    """One table: the rows in their first order, each with what every table says of it.

    Where two measured the same contender of a row, the later one counts. What a row is (its title
    and goal) comes from the first table that says it. ValueError for tables of different machines,
    versions or modes of ``torch.compile``, and for a row that no table describes.
    """
    made: Table = {**tables[0], "versions": {}, "rows": []}
    rows: dict[str, dict[str, Any]] = {}
    for table in tables:
        versions = {**table["versions"], **made["versions"]}
        same = all(table.get(name) == made.get(name) for name in PLACE)
        if not same or not table["versions"].items() <= versions.items():
            raise ValueError(f"tables of different machines or versions: {made}, {table}")
        made["versions"] = {**made["versions"], **versions}
        made["rounds"] = min(made["rounds"], table["rounds"])
        mode = table.get("compile")
        if mode and made.get("compile", mode) not in (mode, None):
            raise ValueError(f"tables of different modes: {made['compile']}, {mode}")
        made["compile"] = made.get("compile") or mode
        for row in table["rows"]:
            rows[row["key"]] = united(rows.get(row["key"], {}), row)
    made["rows"] = list(rows.values())
    days = sorted([day for table in tables for day in table.get("date", "").split(" to ") if day])
    if days:
        made["date"] = " to ".join(dict.fromkeys((days[0], days[-1])))
    for row in made["rows"]:
        if "title" not in row:
            raise ValueError(f"no table says what {row['key']} is")
    return made


def united(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """A row of two tables."""
    found = {**second, **first}
    for kind in BY_CONTENDER:
        measured = second["times"].keys() | second["failures"].keys()
        earlier = {n: v for n, v in first.get(kind, {}).items() if n not in measured}
        found[kind] = {**earlier, **second.get(kind, {})}
    return found
