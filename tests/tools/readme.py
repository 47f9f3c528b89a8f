"""Print one of the README's commands: `python -m tests.tools.readme train` (or `test`).

The continuous-integration script runs what this prints, so the README cannot drift from what works.
"""

from __future__ import annotations

import sys

from tests.tools.markdown import ROOT, blocks

COMMANDS = {"train": "-m examples.mnist.cnn.train", "test": "-m pytest"}


def command(name: str, text: str) -> str:
    """The one line of the page's `sh` blocks that runs `name`."""
    lines = [
        line
        for block in blocks(text)
        if block.info == "sh"
        for line in block.text.splitlines()
        if COMMANDS[name] in line
    ]
    if len(lines) != 1:
        raise ValueError(f"expected one line with {COMMANDS[name]!r} in sh blocks, found {lines}")
    return lines[0]


if __name__ == "__main__":
    print(command(sys.argv[1], (ROOT / "README.md").read_text()))
