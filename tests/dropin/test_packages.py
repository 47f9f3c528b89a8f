"""Packages import and do the same by PyTorch and by the command, within one environment.

`tests/packages/jobs/` has jobs of many packages, and `python -m tests.tools.packages` runs them
all; here run those of the packages that the tests are installed with.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.tools.packages.__main__ import FOLDER, chosen, import_results, lines
from tests.tools.packages.compare import judged
from tests.tools.packages.environments import Environments
from tests.tools.packages.page import module_of

PACKAGES = ["einops", "safetensors", "torchmetrics", "vit-pytorch"]
JOBS = list(chosen(PACKAGES))


def module_or_skip(package: str) -> str:
    """The module of a package that is installed."""
    module = module_of(package)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    return module


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_that_imports_under_pytorch_imports_here(package: str) -> None:
    module = module_or_skip(package)
    python = Path(sys.executable)
    found = import_results(module, Environments(python, python))
    assert found["oracle"] > 0 and found["lost"] == {}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.parent.name}/{job.stem}")
def test_package(job: Path) -> None:
    module_or_skip(job.parent.name)
    program = [str(FOLDER / "run.py"), str(job)]
    (oracle, text), (here, _) = (
        lines([sys.executable, *command, *program])
        for command in ([], ["-m", "tensorflow_lite_clone"])
    )
    found = judged(oracle, here)  # older versions of a package may fail at a step under PyTorch
    assert [step for step in found if step["result"] in ("differs", "fails")] == []
    assert sum(step["result"] == "equal" for step in found) >= 10, text
