"""Calls of functions in other processes, as ``torch.distributed.rpc``: there are no others.

What PyTorch refuses before `init_rpc` is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Generic, NoReturn, TypeVar

_T = TypeVar("_T")


def is_available() -> bool:
    """False."""
    return False


def init_rpc(
    name: str,
    backend: Any = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: Any = None,
) -> NoReturn:
    """Meet the other processes: NotImplementedError."""
    raise NotImplementedError("torch.distributed.rpc: there are no other processes here")


def _require_initialized(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
        )

    return refuse


@_require_initialized
def rpc_sync(to: Any, func: Any, args: Any = None, kwargs: Any = None, timeout: float = -1) -> Any:
    """Call a function in another process, and wait for what it returns."""


@_require_initialized
def rpc_async(to: Any, func: Any, args: Any = None, kwargs: Any = None, timeout: float = -1) -> Any:
    """Call a function in another process: a Future of what it returns."""


@_require_initialized
def remote(to: Any, func: Any, args: Any = None, kwargs: Any = None, timeout: float = -1) -> Any:
    """Call a function in another process: a reference to what it returns."""


@_require_initialized
def get_worker_info(worker_name: str | None = None) -> Any:
    """What is known of a process."""


@_require_initialized
def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """Leave the other processes."""


class RRef(Generic[_T]):
    """A reference to a value in another process."""

    @_require_initialized
    def __init__(self, value: _T, type_hint: Any = None) -> None: ...


class TensorPipeRpcBackendOptions:
    """The options of `init_rpc`, which refuses."""

    def __init__(
        self,
        *,
        num_worker_threads: int = 16,
        rpc_timeout: float = 60.0,
        init_method: str = "env://",
        device_maps: Any = None,
        devices: Any = None,
        _transports: Any = None,
        _channels: Any = None,
    ) -> None:
        self.num_worker_threads, self.rpc_timeout = num_worker_threads, rpc_timeout
        self.init_method, self.devices = init_method, devices or []
        self.device_maps = device_maps or {}


@_require_initialized
def _all_gather(obj: Any, worker_names: Any = None, timeout: float = -1) -> Any:
    """A value of every process. PyTorch Geometric calls it in ``rpc.api``."""


api = SimpleNamespace(_all_gather=_all_gather, _require_initialized=_require_initialized)
