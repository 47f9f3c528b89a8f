"""Compiles kernels with NVRTC and says what they use; this needs no GPU and no driver."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from cupy.cuda import nvrtc

from tensorflow_lite_clone.backends.cupy.binaries import options

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


def _bodies(ptx: str) -> dict[str, str]:
    parts = re.split(r"^(?:\.\w+ )?\.entry (\w+)", ptx, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def compile_instances(text: str, names: list[str], architecture: str) -> Compiled:
    """Compile `names` for one architecture; a failure raises ValueError with the compiler's log."""
    program: Any = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        # The driver's cache would leave out what the assembler says.
        os.environ["CUDA_CACHE_DISABLE"] = "1"
        try:
            nvrtc.compileProgram(program, (*options(architecture), "--ptxas-options=-v"))
        except nvrtc.NVRTCError:
            raise ValueError(nvrtc.getProgramLog(program).strip()) from None
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
    return Compiled([line for line in log.splitlines() if "): warning" in line], usage)
