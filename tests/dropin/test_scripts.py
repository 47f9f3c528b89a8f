"""Scripts of many styles print under the command what they print under PyTorch.

The scripts in `scripts/` are written for PyTorch, as people write them, and know nothing of this
package. Each trains for some 20 steps and prints losses; every number that it prints must agree.
"""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import pytest

from tests.dropin.programs import printed

FOLDER = Path(__file__).parent
SCRIPTS = sorted(FOLDER.joinpath("scripts").glob("*.py"))
LACKING = set()  # scripts that PyTorch cannot run here
if importlib.util.find_spec("torchvision") is None:
    LACKING = {path for path in SCRIPTS if "torchvision" in path.read_text()}
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)", re.IGNORECASE)
RTOL = 1e-3
# PyTorch runs all scripts before the first one is compared.
pytestmark = pytest.mark.timeout(600)


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


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """What the scripts of this run print under PyTorch, a file each."""
    folder = tmp_path_factory.mktemp("pytorch")
    items = [item for item in request.session.items if item.path == request.path]
    wanted = {item.callspec.params["script"] for item in items if hasattr(item, "callspec")}
    printed(FOLDER / "forked.py", *sorted(wanted - LACKING), cwd=folder, here=False)
    return folder


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path, theirs: Path, tmp_path: Path) -> None:
    if script in LACKING:
        pytest.skip("torchvision is not installed")
    expected = (theirs / f"{script.name}.txt").read_text()
    assert len(NUMBER.findall(expected)) >= 20 and "nan" not in expected.lower()
    assert differences(expected, printed(script, cwd=tmp_path)) == []


def test_scripts_know_nothing_of_this_package() -> None:
    assert len(SCRIPTS) >= 30
    for path in SCRIPTS:
        text = path.read_text()
        assert "tensorflow_lite_clone" not in text and re.search("^(import|from) torch", text, re.M)


def test_differences_are_noticed() -> None:
    assert differences("step 1 loss 0.5000", "step 1 loss 0.5004") == []
    assert differences("step 1 loss 0.5000", "step 1 loss 0.5010") != []
    assert differences("a 1", "b 1") != [] and differences("a 1\n", "a 1\nb 2\n") != []
    assert differences("loss nan", "loss nan") == [] and differences("nan", "1.0") != []
