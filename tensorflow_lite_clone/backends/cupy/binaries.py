"""Binaries of kernels for an architecture that CuPy does not compile for by itself (sm_90a).

They lie in CuPy's folder of compiled kernels (`CUPY_CACHE_DIR`) and are found there again. Where
that folder cannot be written, or CuPy is to write none (`CUPY_CACHE_IN_MEMORY`), they last as long
as the process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from cupy._core import core
from cupy.cuda import nvrtc

OPTIONS = ("-std=c++17",)


def options(architecture: str) -> tuple[str, ...]:
    """The options kernels are compiled with: ours, and what CuPy adds to them at a launch."""
    added = core.assemble_cupy_compiler_options(OPTIONS)
    return (
        *added,
        "-ftz=true",
        "--device-as-default-execution-space",
        f"-arch={architecture}",
    )


def binary(text: str, expression: str, architecture: str) -> tuple[Path, str]:
    """The file that holds one instantiation, and its name in there; ValueError with NVRTC's log."""
    chosen = options(architecture)
    key = "\0".join((text, expression, *chosen, str(nvrtc.getVersion())))
    file = f"{hashlib.sha256(key.encode()).hexdigest()}.cubin"
    for folder in _folders():
        path = folder / file
        named = path.with_suffix(".name")
        if path.exists() and named.exists():
            return path, named.read_text()
    program: Any = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        nvrtc.addNameExpression(program, expression)
        try:
            nvrtc.compileProgram(program, chosen)
        except nvrtc.NVRTCError:
            raise ValueError(nvrtc.getProgramLog(program).strip()) from None
        name = nvrtc.getLoweredName(program, expression)
        _write(named, name.encode())
        _write(path, nvrtc.getCUBIN(program))
    finally:
        nvrtc.destroyProgram(program)
    return path, name


def _folders() -> list[Path]:
    """Where binaries are looked for; new ones are written to the last."""
    if os.environ.get("CUPY_CACHE_IN_MEMORY") == "1":
        return [_passing()]
    named = os.environ.get("CUPY_CACHE_DIR")
    folder = Path(named) if named else Path.home() / ".cupy" / "kernel_cache"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return [_passing()]
    return [folder] if os.access(folder, os.W_OK) else [folder, _passing()]


@cache
def _passing() -> Path:
    """A folder that goes with the process."""
    folder = tempfile.mkdtemp(prefix="kernels-")
    atexit.register(_remove, folder, os.getpid())
    return Path(folder)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a process that has been forked since
        shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file that other processes see whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
