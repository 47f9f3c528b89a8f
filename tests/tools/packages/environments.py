"""Two environments with the same packages: one with PyTorch, one without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.expected_skips import PINNED
from tests.tools.markdown import ROOT

REQUIREMENTS = ROOT / "tests" / "packages" / "requirements.txt"
ORACLES = (f"torch=={PINNED}", "torchvision==0.28.0")


class Environments(NamedTuple):
    """The Python of the environment with PyTorch, and of the one without."""

    torch: Path
    ours: Path

    def command(self, program: str, *arguments: str, ours: bool) -> list[str]:
        """How a program of `tests/packages` is run."""
        path = str(ROOT / "tests" / "packages" / program)
        if ours:
            return [str(self.ours), "-m", "tensorflow_lite_clone", path, *arguments]
        return [str(self.torch), path, *arguments]


def variables(scratch: str | Path) -> dict[str, str]:
    """The environment variables of a run: one thread, nothing kept outside of `scratch`.

    This package lies in a folder ``site-packages`` there, as if it were installed: of a module
    elsewhere dill, and so datasets, would pickle the content.
    """
    installed = Path(scratch, "site-packages")
    installed.symlink_to(ROOT)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_CORETYPE")}
    return kept | {
        "PYTHONPATH": str(installed),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "HOME": str(scratch),
        "HF_HOME": str(scratch),
        "YOLO_CONFIG_DIR": str(scratch),
        "PYTHONWARNINGS": "ignore",
    }


def made(folder: Path) -> Environments:
    """The two environments in a folder; what is not there yet is installed by pip."""
    found = Environments(*(folder / name / "bin" / "python" for name in ("torch", "ours")))
    if not found.torch.exists():
        _create(found.torch)
        _install(found.torch, *ORACLES)
        _install(found.torch, "-r", str(REQUIREMENTS))
    if not found.ours.exists():
        _create(found.ours)
        frozen = _pip(found.torch, "freeze", "--all").splitlines()
        oracles = {each.partition("==")[0] for each in ORACLES} | {"triton"}
        rest = [line for line in frozen if line.partition("==")[0] not in oracles]
        _install(found.ours, "--no-deps", *rest)
        _install(found.ours, "numba")
    return found


def _create(python: Path) -> None:
    folder = str(python.parents[1])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)


def _install(python: Path, *what: str) -> None:
    _pip(python, "install", "-q", *what)


def _pip(python: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--python", str(python), *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
