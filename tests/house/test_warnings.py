"""A warning names the line of whoever called the package, not a line of the package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.sources import modules


def _warnings_without_a_caller(source: str) -> list[int]:
    """The lines of calls of `warnings.warn` whose `stacklevel` is not that of the caller."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
            levels = [word.value for word in node.keywords if word.arg == "stacklevel"]
            if [ast.unparse(level) for level in levels] != ["level_outside()"]:
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("path", modules().values(), ids=modules())
def test_warnings_name_the_line_of_the_caller(path: Path) -> None:
    lines = _warnings_without_a_caller(path.read_text())
    assert not lines, f"{path}: lines {lines} warn with a fixed or no stacklevel: level_outside()"


def test_the_check_finds_fixed_levels_and_passes_others() -> None:
    source = (
        "import warnings\n"
        "warnings.warn('a', stacklevel=2)\n"
        "warnings.warn('b', UserWarning)\n"
        "warnings.warn('c', UserWarning, stacklevel=level_outside())\n"
        "other.warn('d', stacklevel=2)\n"
    )
    assert _warnings_without_a_caller(source) == [2, 3]
