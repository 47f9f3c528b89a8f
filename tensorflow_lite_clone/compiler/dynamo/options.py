"""Options of compilers, as objects in the place of PyTorch's modules of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Options:
    """Options that programs set: any name can be, and read after that; `aliases` are older names.

    What is not given a value here is that of a compiler that is not here, and changes nothing.
    """

    def __init__(self, name: str, aliases: Mapping[str, str] | None = None) -> None:
        vars(self).update(_name=name, _aliases=aliases or {})

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_aliases", ()):
            return getattr(self, self._aliases[name])
        raise AttributeError(
            f"{self._name}.{name} was not set: that compiler's options change nothing here"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[self._aliases.get(name, name)] = value

    @contextmanager
    def patch(self, changes: dict[str, Any] | None = None, **named: Any) -> Iterator[None]:
        """Context, or decorator, in which these options are set."""
        before = dict(vars(self))
        for name, value in {**(changes or {}), **named}.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)
