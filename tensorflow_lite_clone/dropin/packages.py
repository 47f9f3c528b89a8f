"""The command ``python -m tensorflow_lite_clone packages``: which packages were tried."""

from __future__ import annotations

import importlib.metadata
import json
from importlib.resources import files

_HEADER = ("package", "installed", "tried", "equal steps")


def main() -> None:
    """Print what is known of the packages that are installed and were tried with this one."""
    tried = json.loads(files(__package__).joinpath("packages.json").read_text())
    rows, notes = [_HEADER], []
    for name, known in tried.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        rows.append((name, version, known["version"], f"{known['equal']} of {known['steps']}"))
        notes += known["notes"]
        if version != known["version"]:
            notes.append(f"{name} {version} was not tried; {known['version']} was.")
    if len(rows) == 1:
        print(f"None of the {len(tried)} packages that were tried is installed.")
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )
    for note in notes:
        print(f"* {note}")
