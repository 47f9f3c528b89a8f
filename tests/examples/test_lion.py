"""The example of an optimizer from outside the package works, and its kernel compiles."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tensorflow_lite_clone.kernels.check import check_file, missing
from tests.kernels.gpu import needs_gpu
from tests.tools.markdown import ROOT


def run(device, folder):
    """What the example prints, run in a process of its own: it enters a step into the table."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.lion", "--device", device],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_on_the_cpu(tmp_path):
    assert run("cpu", tmp_path).count("\n") == 4  # a line for each check


@pytest.mark.cuda
@needs_gpu[1]
def test_on_a_gpu(tmp_path):
    assert "lion_step: 0 calls" not in run("cuda", tmp_path)


@pytest.mark.nvrtc
@pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None or missing() is not None,
    reason="kernels cannot be compiled without CuPy and NVRTC",
)
def test_its_kernel_compiles():
    usage, problems = check_file(ROOT / "examples" / "lion" / "lion.cu", "sm_90")
    assert len(usage) == 4
    assert problems == []
