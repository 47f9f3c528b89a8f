"""What the package calculates with, as ``torch.__config__``."""

from __future__ import annotations

import importlib.metadata
import platform

from tensorflow_lite_clone.ops.settings import get_num_threads
from tensorflow_lite_clone.version import __version__


def show() -> str:
    """The versions of this package and of the libraries below it, in lines of text."""
    lines = [f"tensorflow_lite_clone {__version__}, which is Python:"]
    lines.append(f"  - Python {platform.python_version()} ({platform.platform()})")
    for library in ("numpy", "scipy", "ml_dtypes", "cupy"):
        try:
            lines.append(f"  - {library} {importlib.metadata.version(library)}")
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"  - {library} is not installed")
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """How many threads NumPy's libraries use."""
    return f"Threads of NumPy's libraries: {get_num_threads()}\n"
