"""CUDA kernels in `.cu` files: `Kernel` launches one, the command line lists and checks them.

    python -m tensorflow_lite_clone.kernels list|check|index [FILE|FOLDER ...]

Nothing here needs CuPy before a kernel is launched, or a GPU before that.
"""

from __future__ import annotations

from tensorflow_lite_clone.kernels.kernel import Kernel, KernelError
from tensorflow_lite_clone.kernels.steps import fused_step

__all__ = ["Kernel", "KernelError", "fused_step"]
