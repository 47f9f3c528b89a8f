"""Storage: one array on a device, with the version counter that guards saved values."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Each is called with the root of every storage that is written to in place: capture.
watchers: list[Any] = []
#: Each is called with the new storages that are made outside of ops: profilers of memory.
births: list[Any] = []


class Storage:
    """An array, the backend it lives on, and its place among views of the same memory.

    A view's storage points to the `root` storage whose memory it shares; in-place writes through
    any of them are counted in the root's `version`.
    """

    __slots__ = ("__weakref__", "array", "backend", "root", "version")

    array: Any
    backend: Any
    version: int
    root: Storage | None

    def __init__(self, array: Any, backend: Any, root: Storage | None = None) -> None:
        self.array = array
        self.backend = backend
        self.root = root
        self.version = 0
        if births:
            for born in births:
                born(self)

    def current_version(self) -> int:
        """How many in-place writes this memory has seen."""
        return (self.root or self).version

    def bump(self) -> None:
        """Count one in-place write."""
        root = self.root or self
        root.version += 1
        if watchers:
            for watcher in watchers:
                watcher(root)


def __getattr__(name: str) -> Any:
    if name in ("TypedStorage", "UntypedStorage"):  # as ``torch.storage`` has them
        return getattr(import_module("tensorflow_lite_clone.ops.typed_storage"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
