"""A device whose work can be captured, without a GPU: the strict device with a tape.

While a graph is captured, every call on arrays is written on a tape, and what it wrote into memory
and drew at random is undone at the end, so that a capture executes nothing; a launch runs the tape
into the same memory. What torch.compile does on the host can so be tested anywhere.
"""

from __future__ import annotations

from tests.tape_backend.backend import backend

__all__ = ["backend"]
