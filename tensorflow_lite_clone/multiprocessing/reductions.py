"""How `multiprocessing` pickles tensors. What becomes of their memory, the backends decide."""

from __future__ import annotations

import pickle
from multiprocessing import reduction
from typing import Any

from tensorflow_lite_clone.tensor import Tensor


def reduce_tensor(tensor: Tensor) -> Any:
    """A tensor's parts; RuntimeError for one whose graph would stay behind."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the "
            "data, call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    return tensor.__reduce_ex__(pickle.DEFAULT_PROTOCOL)


def init_reductions() -> None:
    """Tell `multiprocessing` about tensors."""
    reduction.register(Tensor, reduce_tensor)
