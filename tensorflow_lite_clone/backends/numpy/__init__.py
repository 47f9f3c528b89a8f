"""The CPU backend over NumPy."""

from __future__ import annotations

from tensorflow_lite_clone.backends.numpy import loading as _loading  # noqa: F401  before others

# isort: split
from tensorflow_lite_clone.backends.numpy import activations as _activations  # noqa: F401
from tensorflow_lite_clone.backends.numpy import attention as _attention  # noqa: F401
from tensorflow_lite_clone.backends.numpy import batch_norm as _batch_norm  # noqa: F401
from tensorflow_lite_clone.backends.numpy import convolution as _convolution  # noqa: F401
from tensorflow_lite_clone.backends.numpy import fast_paths as _fast_paths  # noqa: F401
from tensorflow_lite_clone.backends.numpy import indexing as _indexing  # noqa: F401
from tensorflow_lite_clone.backends.numpy import losses, softmax  # noqa: F401  their overrides
from tensorflow_lite_clone.backends.numpy import normalization as _normalization  # noqa: F401
from tensorflow_lite_clone.backends.numpy import optimizer as _optimizer  # noqa: F401
from tensorflow_lite_clone.backends.numpy import pooling as _pooling  # noqa: F401
from tensorflow_lite_clone.backends.numpy import recurrent as _recurrent  # noqa: F401
from tensorflow_lite_clone.backends.numpy import resampling as _resampling  # noqa: F401
from tensorflow_lite_clone.backends.numpy.backend import backend

__all__ = ["backend"]
