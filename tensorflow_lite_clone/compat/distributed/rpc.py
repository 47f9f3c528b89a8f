"""Calls of functions in other processes, as ``torch.distributed.rpc``: there are no others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn


def is_available() -> bool:
    """False."""
    return False


def init_rpc(*args: Any, **kwargs: Any) -> NoReturn:
    """Meet the other processes: NotImplementedError."""
    raise NotImplementedError("torch.distributed.rpc: there are no other processes here")


def _require_initialized(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc.")

    return refuse


api = SimpleNamespace(_require_initialized=_require_initialized)
