"""Running programs written for PyTorch, by PyTorch and by the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.tools.markdown import ROOT


def run(*arguments: str | Path, cwd: Path, here: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Python, or the command of this package where `here`, with one thread."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    command = ["-m", "tensorflow_lite_clone"] if here else []
    return subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def printed(*arguments: str | Path, cwd: Path, here: bool = True) -> str:
    """What a program prints that ends well."""
    done = run(*arguments, cwd=cwd, here=here)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
