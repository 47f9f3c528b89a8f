"""The errors of capturing graphs, as ``torch._dynamo.exc``."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackendCompilerFailed",
    "FailOnRecompileLimitHit",
    "InvalidBackend",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
]


class TorchDynamoException(RuntimeError):
    """What all of these are, but for `FailOnRecompileLimitHit`."""


class Unsupported(TorchDynamoException):
    """A function of which one graph was asked for needs several."""

    def __init__(self, message: str, real_stack: list[Any] | None = None) -> None:
        super().__init__(message)
        self.msg = message
        self.real_stack = real_stack or []


class TorchRuntimeError(TorchDynamoException):
    """A captured call would fail."""


class UserError(Unsupported):
    """A program asks for what cannot be captured."""


class InvalidBackend(TorchDynamoException):
    """A name that no backend is registered under."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available "
            "backends."
        )


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised `inner_exception` while it compiled a graph."""

    def __init__(self, backend: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend, "__name__", type(backend).__name__)
        self.inner_exception = inner_exception
        super().__init__(
            f"backend={self.backend_name!r} raised:\n"
            f"{type(inner_exception).__name__}: {inner_exception}"
        )


class FailOnRecompileLimitHit(Exception):
    """A function of which one graph was asked for needs more of them than the limit allows."""
