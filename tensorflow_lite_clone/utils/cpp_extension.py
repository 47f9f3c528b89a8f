"""``torch.utils.cpp_extension``: importable, so that packages choose their Python code instead.

Extensions in C++ are compiled against PyTorch's headers and libraries, which this package does not
have. What would build or load one raises NotImplementedError; kernels of a program's own are CUDA
sources, see `library` for how operations are added.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

from tensorflow_lite_clone.utils.file_baton import FileBaton

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "FileBaton",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]


def _cuda_home() -> str | None:
    """The folder of the CUDA toolkit: of the environment, of the compiler, or the usual one."""
    named = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if named:
        return named
    compiler = shutil.which("nvcc")
    if compiler:
        return str(Path(compiler).parent.parent)
    return "/usr/local/cuda" if Path("/usr/local/cuda").exists() else None


CUDA_HOME = _cuda_home()
ROCM_HOME = HIP_HOME = None
IS_HIP_EXTENSION = False


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: extensions in C++ need PyTorch's headers and libraries, which "
        "tensorflow_lite_clone does not have; add operations in Python by torch.library"
    )


def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: nothing can be compiled against PyTorch's headers."""
    _refuse(f"load({name!r})")


def load_inline(name: str, cpp_sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: nothing can be compiled against PyTorch's headers."""
    _refuse(f"load_inline({name!r})")


def CppExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802
    """NotImplementedError: nothing can be compiled against PyTorch's headers."""
    _refuse(f"CppExtension({name!r})")


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802
    """NotImplementedError: nothing can be compiled against PyTorch's headers."""
    _refuse(f"CUDAExtension({name!r})")


class BuildExtension:
    """A command of setup scripts in PyTorch; NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The command itself."""
        return cls


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers: the CUDA toolkit's for "cuda", as there are none of PyTorch."""
    return _cuda_folders(device_type, "include")


def library_paths(
    device_type: str = "cpu",
    torch_include_dirs: bool = True,
    cross_target_platform: str | None = None,
) -> list[str]:
    """The folders of libraries: the CUDA toolkit's for "cuda", as there are none of PyTorch."""
    return _cuda_folders(device_type, "lib64")


def _cuda_folders(device_type: str, folder: str) -> list[str]:
    if device_type != "cuda":
        return []
    if CUDA_HOME is None:
        raise OSError("CUDA_HOME environment variable is not set and no CUDA toolkit was found.")
    return [str(Path(CUDA_HOME) / folder)]


def get_default_build_root() -> str:
    """The folder in which extensions are built when ``TORCH_EXTENSIONS_DIR`` names no other."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(cache) / "torch_extensions")


def is_ninja_available() -> bool:
    """Whether the program ``ninja`` is found."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """RuntimeError where there is no program ``ninja``."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
