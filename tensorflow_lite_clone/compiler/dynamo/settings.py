"""The options that capturing reads, and the counts that it keeps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.compiler.dynamo.options import Options


class _Options(Options):
    """Options of which some have an older name, `_aliases`."""

    _aliases = {"cache_size_limit": "recompile_limit"}

    def __getattr__(self, name: str) -> Any:
        if name in self._aliases:
            return getattr(self, self._aliases[name])
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[self._aliases.get(name, name)] = value

    @contextmanager
    def patch(self, changes: dict[str, Any] | None = None, **named: Any) -> Iterator[None]:
        """Context, or decorator, in which these options are set."""
        changes = {**(changes or {}), **named}
        with super().patch({self._aliases.get(name, name): changes[name] for name in changes}):
            yield


#: ``torch._dynamo.config``. Those that are given here are read, others change nothing.
config: Any = _Options("torch._dynamo.config")
config.recompile_limit = 8
config.fail_on_recompile_limit_hit = False
config.suppress_errors = False
config.disable = False

#: ``torch._dynamo.utils.counters``: of graphs and calls, and of reasons for graph breaks.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
