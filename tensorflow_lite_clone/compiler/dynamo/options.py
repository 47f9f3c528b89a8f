"""A module's worth of options that programs set and nothing here reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Options:
    """Options of a compiler that is not here: any name can be set, and read after that."""

    def __init__(self, name: str) -> None:
        vars(self)["_name"] = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self._name}.{name} was not set: that compiler's options change nothing here"
        )

    @contextmanager
    def patch(self, changes: dict[str, Any] | None = None, **named: Any) -> Iterator[None]:
        """Context in which these options are set."""
        before = dict(vars(self))
        vars(self).update(changes or {}, **named)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)
