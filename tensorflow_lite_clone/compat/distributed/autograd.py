"""Gradients through calls in other processes, as ``torch.distributed.autograd``: see `rpc`.

Each function is refused as by PyTorch before ``init_rpc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tensorflow_lite_clone.tensor import Tensor

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """False."""
    return False


def _refuse() -> NoReturn:
    raise RuntimeError(
        "Need to initialize distributed autograd using torch.distributed.autograd.init()"
    )


class context:  # noqa: N801  PyTorch's name
    """A block that gathers the gradients of all processes."""

    def __enter__(self) -> NoReturn:
        _refuse()

    def __exit__(self, *error: object) -> None: ...


def backward(context_id: int, roots: Sequence[Tensor], retain_graph: bool = False) -> NoReturn:
    """The gradients of `roots` in all processes."""
    _refuse()


def get_gradients(context_id: int) -> NoReturn:
    """The gradients of a block, by their tensors."""
    _refuse()
