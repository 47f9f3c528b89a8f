"""Why a step is not equal, and why a module cannot be imported, where the message does not say."""

from __future__ import annotations

#: (package, step): the reason.
REASONS: dict[tuple[str, str], str] = {}
#: A module: the reason.
WITHOUT: dict[str, str] = {}
