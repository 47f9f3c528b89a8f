"""What ran: watched while it runs (`Observer`), or written down as calls over values (`Tape`)."""

from __future__ import annotations

from tensorflow_lite_clone.trace.observer import Observer
from tensorflow_lite_clone.trace.tape import Call, OpTape, Table, Tape, Value, values_in

__all__ = ["Call", "Observer", "OpTape", "Table", "Tape", "Value", "values_in"]
