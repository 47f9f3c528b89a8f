"""An accelerator of the CPU: overrides that are machine code, compiled by Numba if installed.

They are the layer "numba" over NumPy's own (`accelerators` of the backend), and serve float32 in
row-major order from some size on; what they decline goes on to NumPy's overrides and the generic
forms. Nothing here imports Numba: `kernels/` does, when a call is first served. ``pip install
tensorflow_lite_clone[numba]`` brings it, ``TENSORFLOW_LITE_CLONE_NUMBA=0`` leaves it out.
"""

from __future__ import annotations

from tensorflow_lite_clone.backends.numba import (  # noqa: F401  their overrides
    activation,
    convolution,
    index,
    losses,
    norms,
    optimizer,
    pooling,
    recurrent,
    softmax,
    winograd,
)
