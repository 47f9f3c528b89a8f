"""Compiles kernels with NVRTC, which needs no GPU and no driver."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")

_ENTRY = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers(?:[^\n]*?(\d+) bytes smem)?",
    re.DOTALL,
)


class Usage(NamedTuple):
    """What one instantiation uses, and whether it holds double-precision instructions."""

    registers: int
    shared: int
    spilled: int
    double: bool


class Compiled(NamedTuple):
    """The compiler's warnings, and the usage of every instantiation asked for."""

    warnings: list[str]
    usage: dict[str, Usage]


def cuda_include() -> Path:
    """The folder of CUDA's own headers, from the package nvidia-cuda-runtime-cu12."""
    import nvidia.cuda_runtime  # an optional extra

    return Path(next(iter(nvidia.cuda_runtime.__path__))) / "include"


def _bodies(ptx: str) -> dict[str, str]:
    parts = re.split(r"^(?:\.\w+ )?\.entry (\w+)", ptx, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def compile_instances(
    source: str, headers: dict[str, str], names: list[str], architecture: str
) -> Compiled:
    """Compile `names` for one architecture; a failure raises ValueError with the compiler's log."""
    from cupy.cuda import nvrtc  # an optional extra

    program = nvrtc.createProgram(
        source,
        "kernel.cu",
        tuple(text.encode() for text in headers.values()),
        tuple(name.encode() for name in headers),
    )
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (
            f"-arch={architecture}",
            "-std=c++17",
            "--ptxas-options=-v",
            f"-I{cuda_include()}",
        )
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            raise ValueError(f"{architecture}: {nvrtc.getProgramLog(program)}") from error
        log = nvrtc.getProgramLog(program)
        bodies = _bodies(nvrtc.getPTX(program).decode())
        lowered = {name: nvrtc.getLoweredName(program, name) for name in names}
    finally:
        nvrtc.destroyProgram(program)

    entries = {match[1]: match for match in _ENTRY.finditer(log)}
    usage = {}
    for name, symbol in lowered.items():
        _, stores, loads, registers, shared = entries[symbol].groups()
        usage[name] = Usage(
            int(registers), int(shared or 0), int(stores) + int(loads), ".f64" in bodies[symbol]
        )
    return Compiled([line for line in log.splitlines() if "warning" in line], usage)
