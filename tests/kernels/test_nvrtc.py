"""Every instance a kernel file declares compiles, within what its header promises."""

from __future__ import annotations

import importlib.util

import pytest

from tests.kernels.header import KERNELS, header_files, instances, kernel_files
from tests.kernels.nvrtc import ARCHITECTURES, compile_instances
from tests.kernels.samples import GOOD, HEADERS

PACKAGES = ("cupy", "nvidia.cuda_nvrtc", "nvidia.cuda_runtime")


def missing() -> list[str]:
    """The packages the compile check lacks."""
    if importlib.util.find_spec("nvidia") is None:
        return list(PACKAGES)
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


pytestmark = [
    pytest.mark.nvrtc,
    pytest.mark.skipif(bool(missing()), reason=f"kernels cannot be compiled without {missing()}"),
]


def problems(source: str, headers: dict[str, str], architecture: str) -> list[str]:
    """What breaks a promise of the header, a line each."""
    promised = instances(source)
    warnings, usage = compile_instances(
        source, headers, [instance.name for instance in promised], architecture
    )
    found = list(warnings)
    for name, registers, shared in promised:
        used = usage[name]
        if used.spilled:
            found.append(f"{name}: {used.spilled} bytes spilled")
        if used.registers > registers:
            found.append(f"{name}: {used.registers} registers, promised {registers}")
        if used.shared > shared:
            found.append(f"{name}: {used.shared} bytes shared, promised {shared}")
        if used.double and "double" not in name:
            found.append(f"{name}: double-precision instructions")
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_good_file_has_no_problems(architecture: str) -> None:
    assert problems(GOOD, HEADERS, architecture) == []


BAD = {
    "a warning": ("if (i < n)", "int unused;\n  if (i < n)", "warning"),
    "registers": ("24 registers, 0 bytes shared\n//  ", "2 registers, 0 bytes shared\n//  ", "2"),
    "shared memory": (
        "if (i < n) y",
        "__shared__ T b[256];\n  b[threadIdx.x] = x[i];\n  __syncthreads();\n"
        "  y[i] = b[255 - threadIdx.x];\n  if (i < n) y",
        "bytes shared, promised 0",
    ),
    "double precision": ("* w);", "* (w + 0.1));", "double-precision"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_noticed(name: str) -> None:
    old, new, expected = BAD[name]
    assert GOOD.count(old) == 1
    found = problems(GOOD.replace(old, new), HEADERS, "sm_90")
    assert found
    assert all(expected in line for line in found)


def test_a_file_that_does_not_compile_is_noticed() -> None:
    with pytest.raises(ValueError, match="sm_90.*undefined_name"):
        problems(GOOD.replace("T(static_cast", "undefined_name(static_cast"), HEADERS, "sm_90")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernel_files(architecture: str) -> None:
    headers = {path.name: path.read_text() for path in header_files(KERNELS)}
    found = {
        path.name: problems(path.read_text(), headers, architecture) for path in kernel_files()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
