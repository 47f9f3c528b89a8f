"""Sparse gradients: how a formula makes one, and how a pass over arrays carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.dispatch.capture import forbid
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Namespace


def sparse_gradient(F: Namespace, indices: Any, values: Any, size: tuple) -> Tensor:
    """The sparse tensor of `size` with ``values[n]`` at ``indices[:, n]``, for a gradient over `F`.

    Indices may come twice. Over arrays it is a tensor all the same, as the engine wants it.
    CaptureError while a graph is captured: how many elements come of it is for the host to see.
    """
    forbid("makes a sparse gradient")
    indices, values = [
        x if isinstance(x, Tensor) else new_tensor(Storage(x, F.backend)) for x in (indices, values)
    ]
    indices = indices.to(int64)
    gradient: Tensor = late_bound.sparse_tensor(indices, values, size)
    return gradient


def value_of(gradient: Tensor) -> Any:
    """What a pass over arrays carries for a gradient: its array, or the sparse tensor itself."""
    return gradient if gradient.is_sparse else gradient._storage.physical
