"""A deep-learning framework in pure Python with PyTorch's face.

``import tensorflow_lite_clone as torch``: NumPy arrays on the CPU, CuPy arrays and hand-written
CUDA kernels on the GPU.
"""

from __future__ import annotations

from tensorflow_lite_clone import _bind, array_api, autograd, ops
from tensorflow_lite_clone.core import dtypes as _dtypes
from tensorflow_lite_clone.core.device import Device as device
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.tensor import Tensor

_bind.bind_tensor()
globals().update(_dtypes.NAMES)
globals().update(_bind.names_of("torch"))
