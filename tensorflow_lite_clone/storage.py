"""Storage: one array on a device, with the version counter that guards saved values."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from weakref import WeakSet, ref

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
        if root is not None and type(root) is Lent:
            root.views.add(self)
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


class Absent:
    """Stands for an array that was given up; any use of it is a RuntimeError."""

    __slots__ = ("_reason",)
    __array_ufunc__ = None

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(self._reason)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(self._reason)


class Lent(Storage):
    """A storage whose array can be given up for a while, though tensors and graphs point to it.

    What a graph saved are storages. So once the array is given up here and in the views, nothing
    of this package holds it, and when it is put back a backward pass finds it in its place.
    Only an array in row-major order without gaps may be put back, of the same shape and dtype.
    """

    __slots__ = ("_windows", "views")

    def __init__(self, array: Any, backend: Any) -> None:
        super().__init__(array, backend)
        self.views: WeakSet[Storage] = WeakSet()
        self._windows: list[tuple[Any, tuple]] = []

    def give_up(self, reason: str) -> None:
        """Drop the array; until `put_back` every use is a RuntimeError that says `reason`."""
        start = self.backend.F.address(self.array)
        absent = Absent(reason)
        for view in self.views:
            array = view.array
            if type(array) is not Absent:
                offset = self.backend.F.address(array) - start if array.size else 0
                window = array.shape, self.backend.strides(array), offset, array.dtype
                self._windows.append((ref(view), window))
                view.array = absent
        self.array = absent

    def put_back(self, array: Any) -> None:
        """Let the storage and its views lie in `array`, which holds the same values."""
        F = self.backend.F
        line = F.reshape(array, (-1,))
        for reference, (shape, strides, offset, dtype) in self._windows:
            view = reference()
            if view is not None:
                same = line if line.dtype == dtype else F.bitcast(line, dtype)
                view.array = F.as_strided(same, shape, strides, offset // dtype.itemsize)
        self._windows.clear()
        self.array = array


def __getattr__(name: str) -> Any:
    if name in ("TypedStorage", "UntypedStorage"):  # as ``torch.storage`` has them
        return getattr(import_module("tensorflow_lite_clone.ops.typed_storage"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
