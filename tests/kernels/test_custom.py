"""The example of an op with kernels from outside the package works, and is as short as it says."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorflow_lite_clone.kernels.check import check_file, missing
from tests.kernels.gpu import needs_gpu
from tests.tools.markdown import ROOT

FOLDER = ROOT / "examples" / "custom_kernel"


def run(device: str, folder: Path) -> str:
    """What the example prints, run in a process of its own: it enters ops into the table."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.custom_kernel", "--device", device],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_on_the_cpu(tmp_path: Path) -> None:
    printed = run("cpu", tmp_path)
    assert "gradients of first and second order are right" in printed
    assert "swiglu_backward: 0 calls were served by the kernel" in printed


@pytest.mark.cuda
@needs_gpu[1]
def test_on_a_gpu(tmp_path: Path) -> None:
    assert "swiglu: 0 calls" not in run("cuda", tmp_path)


@pytest.mark.nvrtc
@pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None or missing() is not None,
    reason="kernels cannot be compiled without CuPy and NVRTC",
)
def test_its_kernels_compile() -> None:
    usage, problems = check_file(FOLDER / "swiglu.cu", "sm_90")
    assert len(usage) == 8
    assert problems == []


def test_it_takes_fewer_than_40_lines() -> None:
    lines = (FOLDER / "swiglu.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 40
