"""Exception types that Python has no word for."""

from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """A device has no room left for an allocation."""


class AcceleratorError(RuntimeError):
    """Something went wrong on a device, which is known only now."""


class BackendUnavailableError(RuntimeError):
    """A device was asked for whose packages or hardware are not there."""


class CaptureError(RuntimeError):
    """Work that cannot be part of a CUDA graph was asked for while one is captured."""


class LinAlgError(RuntimeError):
    """A matrix is not what a function of linear algebra needs, such as regular."""
