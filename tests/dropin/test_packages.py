"""Packages that are written for PyTorch work under the command, and print the same numbers.

The programs in `packages/` use one package each. What is not installed is skipped.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.dropin.programs import printed
from tests.dropin.test_scripts import NUMBER, differences

PROGRAMS = sorted(Path(__file__).parent.joinpath("packages").glob("*.py"))
PACKAGES = {"vit": "vit_pytorch"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_package(program: Path, tmp_path: Path) -> None:
    word = program.stem.partition("_")[0]
    package = PACKAGES.get(word, word)
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    printed(Path(__file__).parent / "forked.py", program, cwd=tmp_path, here=False)
    expected = (tmp_path / f"{program.name}.txt").read_text()
    assert len(NUMBER.findall(expected)) >= 10 and "nan" not in expected.lower()
    assert differences(expected, printed(program, cwd=tmp_path)) == []
