"""What goes wrong between processes, as the exceptions of ``torch.distributed``."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """What carries tensors between processes failed."""


class DistNetworkError(DistError):
    """A connection could not be made, or broke."""


class DistStoreError(DistError):
    """A store did not give what it was asked for, mostly in time."""
