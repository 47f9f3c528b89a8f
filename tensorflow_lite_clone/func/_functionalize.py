"""`functionalize` and `debug_unwrap`: what is below the surface of a transform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.func.batching.backend import BatchedBackend
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, whose writes into intermediate tensors nobody sees.

    In PyTorch a program that is traced from the result has no writes (`remove` "mutations"), and
    no views ("mutations_and_views"). There is no tracing here, so it is `func` itself that runs;
    its results, and writes into its inputs, are the same in both. Raises RuntimeError for another
    `remove`.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are 'mutations' and 'mutations_and_views'."
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The values of all samples that a tensor inside of `vmap` holds; any other tensor itself.

    The samples are in the first dimension. Without `recurse` those of one `vmap` alone. Not for
    computing: the result is outside of the graph.
    """
    storage = tensor._storage
    array, backend = storage.array, storage.backend
    if not isinstance(backend, BatchedBackend):
        return tensor
    while isinstance(backend, BatchedBackend):
        array, backend = array.data, backend.base
        if not recurse:
            break
    return new_tensor(Storage(array, backend))
