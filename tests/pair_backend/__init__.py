"""Two devices of one kind without a GPU: arrays that insist on their device being current.

As with CUDA one device is current in a thread, what computes with arrays does so on the current
device, and what it makes lies there. An array of the other device is an error, where CUDA would be
slow, or wrong. Views may be taken anywhere.
"""

from __future__ import annotations

from tests.pair_backend.backend import backend

__all__ = ["backend"]
