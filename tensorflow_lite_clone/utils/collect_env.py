"""What a report of a fault should say about where it happened, as ``torch.utils.collect_env``."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from typing import Any, NamedTuple

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.backends import load
from tensorflow_lite_clone.cuda._devices import layer
from tensorflow_lite_clone.ops.settings import get_num_threads
from tensorflow_lite_clone.version import __version__, release

# The version of PyTorch whose behaviour is followed.
FOLLOWED = __version__.partition("+")[0]
LIBRARIES = ("numpy", "ml_dtypes", "scipy", "cupy", "threadpoolctl", "pillow", "matplotlib")


class SystemEnv(NamedTuple):
    """What was found; None is what could not be."""

    version: str
    torch_version: str
    python_version: str
    python_platform: str
    os: str | None
    cpu_info: str | None
    cpu_count: int
    num_threads: int
    blas: str | None
    is_cuda_available: bool
    cuda_runtime_version: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: list[str]
    libraries: dict[str, str | None]


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a command (in a shell if it is one string): exit code, output, errors, both stripped."""
    try:
        done = subprocess.run(
            command, shell=isinstance(command, str), capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return 127, "", "Command not found"
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return platform.platform(terse=True) or None


def _cpu_name() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _library_version(name: str) -> str | None:
    # CuPy's distributions are named after the versions of CUDA that they are for.
    names = (name, "cupy-cuda12x", "cupy-cuda13x") if name == "cupy" else (name,)
    for distribution in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(distribution)
    return None


def _blas() -> str | None:
    try:
        found = load("cpu").xp.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (KeyError, TypeError):
        return None
    return f"{found.get('name')} {found.get('version')}"


def _cuda_version(number: int) -> str:
    """13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


def get_env_info() -> SystemEnv:
    """Look around."""
    available = cuda.is_available()
    runtime = layer("runtime").runtime if available else None
    return SystemEnv(
        version=release,
        torch_version=FOLLOWED,
        python_version=f"{sys.version.splitlines()[0]} ({sys.maxsize.bit_length() + 1}-bit)",
        python_platform=platform.platform(),
        os=_os_name(),
        cpu_info=_cpu_name(),
        cpu_count=os.cpu_count() or 1,
        num_threads=get_num_threads(),
        blas=_blas(),
        is_cuda_available=available,
        cuda_runtime_version=_cuda_version(runtime.runtimeGetVersion()) if runtime else None,
        nvidia_driver_version=_cuda_version(runtime.driverGetVersion()) if runtime else None,
        nvidia_gpu_models=[
            f"GPU {i}: {cuda.get_device_name(i)}" for i in range(cuda.device_count())
        ],
        libraries={name: _library_version(name) for name in LIBRARIES},
    )


def _text(value: Any) -> str:
    if value is None:
        return "Could not collect"
    return "\n".join(["", *value]) if isinstance(value, list) else str(value)


def get_pretty_env_info() -> str:
    """What `get_env_info` finds, as a text."""
    found = get_env_info()
    rows: list[tuple[str, Any]] = [
        ("tensorflow_lite_clone version", found.version),
        ("Follows PyTorch version", found.torch_version),
        ("", ""),
        ("OS", found.os),
        ("Python version", found.python_version),
        ("Python platform", found.python_platform),
        ("CPU", found.cpu_info),
        ("CPU count", found.cpu_count),
        ("Threads used", found.num_threads),
        ("BLAS of NumPy", found.blas),
        ("", ""),
        ("Is CUDA available", found.is_cuda_available),
        ("CUDA runtime version", found.cuda_runtime_version),
        ("Newest CUDA version of the driver", found.nvidia_driver_version),
        ("GPU models", found.nvidia_gpu_models or None),
    ]
    lines = [f"{name}: {_text(value)}" if name else "" for name, value in rows]
    lines += ["", "Versions of relevant libraries:"]
    lines += [f"{name}: {version or 'not installed'}" for name, version in found.libraries.items()]
    return "\n".join(lines)


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
