"""The code and the links of README.md and docs/ work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.markdown import ROOT, blocks, links, pages
from tests.tools.readme import COMMANDS, command


def program(text: str) -> str:
    """A page's `python` blocks as one module, each line at its own line number.

    A block whose fence says more than `python` (`python no-run`) is only shown.
    """
    lines = [""] * len(text.splitlines())
    for block in blocks(text):
        if block.info == "python":
            code = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(code)] = code
    return "\n".join(lines).rstrip() + "\n"


RUNNER = """
import sys
page = sys.argv[1]
exec(compile(sys.stdin.read(), page, "exec"), {"__name__": "__main__"})
"""


def run_page(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page's code in a process of its own, in an empty folder, warnings being errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER, str(path)],
        input=program(path.read_text()),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


PAGES = [path for path in pages() if program(path.read_text()).strip()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_of_a_page_runs(path: Path, tmp_path: Path) -> None:
    done = run_page(path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_has_code() -> None:
    assert ROOT / "README.md" in PAGES


def test_a_failing_page_is_noticed_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\ntext\n```python\nassert x == 2\n```\n")
    done = run_page(page, tmp_path)
    assert done.returncode == 1
    assert f'"{page}", line 8' in done.stderr


def test_shown_blocks_are_not_run() -> None:
    assert not program("```python no-run\n1 / 0\n```\n```sh\nls\n```\n").strip()


def broken_links(path: Path) -> list[str]:
    """Relative links of a page to files that are not there."""
    return [
        target
        for target in links(path.read_text())
        if "://" not in target
        and not target.startswith("#")
        and not (path.parent / target.split("#")[0]).exists()
    ]


@pytest.mark.parametrize(
    "path",
    sorted({*pages(), *ROOT.glob("*.md"), ROOT / "kernels" / "README.md"}),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_of_a_page_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[here](page.md#top) [gone](gone.md) [web](https://example.org)\n")
    assert broken_links(page) == ["gone.md"]


@pytest.mark.parametrize("name", COMMANDS)
def test_readme_commands_set_up_everything_in_one_line(name: str) -> None:
    line = command(name, (ROOT / "README.md").read_text())
    steps = line.split(" && ")
    assert steps[0].startswith("python3 -m venv")
    assert " install " in steps[1]
    assert steps[2].startswith(".venv/bin/python " + COMMANDS[name])


def test_a_missing_command_is_noticed() -> None:
    with pytest.raises(ValueError, match="expected one line"):
        command("train", "```sh\nls\n```\n")
