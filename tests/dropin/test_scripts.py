"""Scripts of many styles print under the command what they print under PyTorch.

The scripts in `scripts/` are written for PyTorch, as people write them, and know nothing of this
package. Each trains for some 20 steps and prints losses; every number that it prints must agree.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from tests.dropin.programs import printed

SCRIPTS = sorted(Path(__file__).parent.joinpath("scripts").glob("*.py"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)", re.IGNORECASE)
RTOL = 1e-3


def differences(one: str, other: str) -> list[str]:
    """Where two prints are not the same: words exactly, numbers to `RTOL`."""
    lines = one.splitlines(), other.splitlines()
    if len(lines[0]) != len(lines[1]):
        return [f"{len(lines[0])} and {len(lines[1])} lines"]
    found = []
    for left, right in zip(*lines, strict=True):
        numbers = [[float(n) for n in NUMBER.findall(line)] for line in (left, right)]
        same = NUMBER.sub("#", left).split() == NUMBER.sub("#", right).split() and all(
            math.isclose(a, b, rel_tol=RTOL, abs_tol=1e-6) or (a != a and b != b)
            for a, b in zip(*numbers, strict=True)
        )
        if not same:
            found.append(f"{left}   |   {right}")
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    theirs = printed(script, cwd=tmp_path, here=False)
    assert len(NUMBER.findall(theirs)) >= 20 and "nan" not in theirs.lower()
    assert differences(theirs, printed(script, cwd=tmp_path)) == []


def test_scripts_know_nothing_of_this_package():
    assert len(SCRIPTS) >= 30
    for path in SCRIPTS:
        assert (
            "tensorflow_lite_clone" not in path.read_text() and "import torch" in path.read_text()
        )


def test_differences_are_noticed():
    assert differences("step 1 loss 0.5000", "step 1 loss 0.5004") == []
    assert differences("step 1 loss 0.5000", "step 1 loss 0.5010") != []
    assert differences("a 1", "b 1") != [] and differences("a 1\n", "a 1\nb 2\n") != []
    assert differences("loss nan", "loss nan") == [] and differences("nan", "1.0") != []
