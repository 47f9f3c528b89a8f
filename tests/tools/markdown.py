"""Fenced code blocks and links of Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(.*)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """One fenced block: what follows the opening fence, the line its text starts at, its text."""

    info: str
    line: int
    text: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order; an unclosed one raises ValueError."""
    found: list[Block] = []
    opened: tuple[str, int] | None = None
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = (fence[1].strip(), number)
            continue
        info, start = opened
        found.append(Block(info, start + 1, "\n".join(lines[start : number - 1]) + "\n"))
        opened = None
    if opened is not None:
        raise ValueError(f"the code block opened in line {opened[1]} is never closed")
    return found


def links(text: str) -> list[str]:
    """The targets of a page's links, code blocks left out."""
    inside = False
    found: list[str] = []
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            found += _LINK.findall(line)
    return found


def pages() -> list[Path]:
    """README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
