"""The versions, and what the package was built for, as ``torch.version``.

`__version__` names the PyTorch whose behaviour is followed, and this package's own version behind
the plus sign; `release` is the latter alone.

`cuda` is None: the package is not built for a version of CUDA, CuPy is. `torch.cuda.is_available`
says whether there is a device.
"""

from __future__ import annotations

release = "0.1.0"
__version__ = f"2.13.0+tlc{release}"
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "release", "rocm", "xpu"]
