"""What registering a hook returns."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any


class RemovableHandle:
    """What registering a hook returns: `remove()`, or leaving its ``with``, takes the hook away."""

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        # A table that was unpickled may hold numbers this process has not given out yet.
        self.id = max(RemovableHandle.next_id, max(hooks_dict, default=-1) + 1)
        RemovableHandle.next_id = self.id + 1
        tables: list[Any] = [hooks_dict]
        if extra_dict is not None:
            tables += [extra_dict] if isinstance(extra_dict, dict) else extra_dict
        self._tables = [weakref.ref(table) for table in tables]

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[list, int]:
        return [reference() for reference in self._tables], self.id

    def __setstate__(self, state: tuple[list, int]) -> None:
        tables, self.id = state
        # A table that died before the pickle is replaced by one that dies at once.
        self._tables = [weakref.ref(OrderedDict() if t is None else t) for t in tables]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
