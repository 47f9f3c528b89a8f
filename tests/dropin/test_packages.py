"""Jobs of packages print the same by PyTorch and by the command, within one environment.

`tests/packages/jobs/` has them for many packages, and `python -m tests.tools.packages` runs them
all; here run those of the packages that the tests are installed with.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.tools.packages.__main__ import FOLDER, chosen, lines
from tests.tools.packages.compare import judged
from tests.tools.packages.page import module_of

JOBS = list(chosen(["einops", "safetensors", "torchmetrics", "vit-pytorch"]))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.parent.name}/{job.stem}")
def test_package(job: Path) -> None:
    module = module_of(job.parent.name)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    program = [str(FOLDER / "run.py"), str(job)]
    (oracle, text), (here, _) = (
        lines([sys.executable, *command, *program])
        for command in ([], ["-m", "tensorflow_lite_clone"])
    )
    found = judged(oracle, here)  # older versions of a package may fail at a step under PyTorch
    assert [step for step in found if step["result"] in ("differs", "fails")] == []
    assert sum(step["result"] == "equal" for step in found) >= 10, text
