"""What ran: watched while it runs (`Observer`), or written down as calls over values (`Tape`)."""

from __future__ import annotations

from tensorflow_lite_clone.trace.observer import Observer

__all__ = ["Observer"]
