"""The version, and what the package was built for, as ``torch.version``.

`cuda` is None: the package is not built for a version of CUDA, CuPy is. `torch.cuda.is_available`
says whether there is a device.
"""

from __future__ import annotations

__version__ = "0.1.0"
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
