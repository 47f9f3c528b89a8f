"""The compile check notices what breaks a promise. Continuous integration runs it on all files."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tensorflow_lite_clone.kernels.__main__ import main
from tensorflow_lite_clone.kernels.check import ARCHITECTURES, check_file, missing, promises
from tests.kernels.gpu import why_not
from tests.kernels.samples import GOOD, HEADERS
from tests.tools.markdown import ROOT, blocks

REASON = missing() if importlib.util.find_spec("cupy") else "CuPy is not installed"
if REASON is None and why_not() is None:
    REASON = "in a process that uses a GPU the driver's cache leaves out the assembler's report"
SKIPPED = pytest.mark.skipif(bool(REASON), reason=f"kernels cannot be compiled: {REASON}")

PLAIN = """\
__global__ void twice(const float* x, int n, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""


def write(folder: Path, source: str) -> Path:
    """A kernel file with a header of its own, which hides the package's of that name."""
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    path = folder / "scale.cu"
    path.write_text(source)
    return path


def test_header_resource_promises_are_parsed() -> None:
    assert promises(GOOD) == {"scale_rows<float>": (24, 0), "scale_rows<__half>": (24, 0)}
    assert promises(PLAIN) == {"twice": None}
    with pytest.raises(ValueError, match="names no instance of thrice"):
        promises("template <typename T> __global__ void thrice(T* x) {}")


@pytest.mark.nvrtc
@SKIPPED
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_good_file_has_no_problems(architecture: str, tmp_path: Path) -> None:
    usage, problems = check_file(write(tmp_path, GOOD), architecture)
    assert problems == []
    assert list(usage) == ["scale_rows<float>", "scale_rows<__half>"]
    assert 0 < usage["scale_rows<float>"][0] <= 24


BAD = {
    "a warning": ("if (i < n)", "int unused;\n  if (i < n)", "scale.cu(33): warning"),
    "registers": ("24 registers, 0 bytes shared\n//  ", "2 registers, 0 bytes shared\n//  ", "2"),
    "shared memory": (
        "if (i < n) y",
        "__shared__ T b[256];\n  b[threadIdx.x] = x[i];\n  __syncthreads();\n"
        "  y[i] = b[255 - threadIdx.x];\n  if (i < n) y",
        "bytes shared, promised 0",
    ),
    "double precision": ("* w);", "* (w + 0.1));", "double-precision"),
    "an error": ("T(static_cast", "undefined_name(static_cast", "scale.cu(24): error"),
    "an unreadable promise": ("24 registers, 0", "few registers, 0", "expected 'name<"),
}


@pytest.mark.nvrtc
@SKIPPED
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_noticed(name: str, tmp_path: Path) -> None:
    old, new, expected = BAD[name]
    _, problems = check_file(write(tmp_path, GOOD.replace(old, new, 1)), "sm_90")
    assert problems
    assert all(expected in line for line in problems)


@pytest.mark.nvrtc
@SKIPPED
def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, GOOD)
    (tmp_path / "twice.cu").write_text(PLAIN)
    assert main(["check", "--arch", "sm_80,sm_90", "--jobs", "1", str(tmp_path)]) == 0
    printed = capfd.readouterr().out
    assert "scale_rows<float>: " in printed
    assert "twice: " in printed
    assert "3 instances of 2 files for sm_80, sm_90: no problems" in printed
    path.write_text(GOOD.replace("24 registers", "2 registers"))
    assert main(["check", "--arch", "sm_90", "--jobs", "1", str(path)]) == 1
    assert "PROBLEM (sm_90): scale_rows<float>: " in capfd.readouterr().out


@pytest.mark.nvrtc
@SKIPPED
def test_a_file_for_one_architecture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fence = '  asm volatile("wgmma.fence.sync.aligned;");\n'  # an instruction of sm_90a alone
    path = tmp_path / "twice_sm90.cu"
    path.write_text(PLAIN.replace("  const int i", fence + "  const int i"))
    assert main(["check", "--arch", "sm_80,sm_90", "--jobs", "1", str(path)]) == 0
    assert "twice_sm90.cu (sm_90a)" in capfd.readouterr().out


@pytest.mark.nvrtc
@SKIPPED
@pytest.mark.parametrize(
    ("page", "instances"), [("adding_a_kernel", 2), ("adding_an_optimizer", 1)]
)
def test_the_kernel_of_the_page_compiles(page: str, instances: int, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    (code,) = [block.text for block in blocks(text) if block.info == "cuda"]
    path = tmp_path / "page.cu"
    path.write_text(code)
    usage, problems = check_file(path, "sm_90")
    assert len(usage) == instances
    assert problems == []


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_a_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "softmax.cu"]) == 2
    assert "No module named 'cupy'" in capsys.readouterr().out


def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, GOOD)
    assert main(["list", "--instances", str(path), "softmax.cu"]) == 0
    printed = capsys.readouterr().out
    assert "scale.cu: Scales rows, forward and backward." in printed
    assert "ops        scale_rows, scale_rows_backward" in printed
    assert "scale_rows<__half>: at most 24 registers, 0 bytes shared" in printed
    assert "softmax.cu: " in printed
    if importlib.util.find_spec("cupy"):
        assert "overrides  log_softmax, log_softmax_backward, softmax, softmax_backward" in printed


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "nowhere.cu"]) == 2
    assert "there is no kernel file 'nowhere.cu' in " in capsys.readouterr().out
