"""The code of docs/huggingface.md runs, where transformers is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.markdown import ROOT, blocks

PAGE = ROOT / "docs" / "huggingface.md"


def code() -> list[str]:
    """The page's code, in order: what the tests of all pages run, and what needs transformers."""
    found = blocks(PAGE.read_text())
    return [block.text for block in found if block.info in ("python", "python huggingface")]


def test_the_page_has_code_for_each_step() -> None:
    text = "\n".join(code())
    for name in ("install_as_torch()", "save_pretrained", "from_pretrained", "generate"):
        assert name in text


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.splitlines()[-1] == "the cat sat on the mat"
