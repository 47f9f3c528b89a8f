"""The namespace ``F`` over plain arrays.

What ``F`` has is a primitive (`primitives`), as the backend or else its array API namespace
implements it (``F.exp is numpy.exp``) unless somebody overrides it, or an op or composite of the
table. Nothing else is visible, so that code over ``F`` runs on every device and over Tensors as
well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES, is_primitive

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend


def _member(namespace: Any, name: str) -> Any:
    """A member by a name such as ``linalg.inv``, or None."""
    for part in name.split("."):
        namespace = getattr(namespace, part, None)
    return namespace


class _Part:
    """The standard's ``linalg`` or ``fft`` over one backend's arrays."""

    def __init__(self, whole: Raw, name: str) -> None:
        self._whole, self._name = whole, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._whole, f"{self._name}.{name}")
        setattr(self, name, found)
        return found


class Raw:
    """``F`` over one backend's arrays; what was looked up once is a plain attribute."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        table.namespaces.append(self)

    def run(self, op: Any, *arrays: Any, **parameters: Any) -> Any:
        """Run an op of the table whose name may also be that of a primitive."""
        return table.run(op, self.backend, arrays, parameters)

    def forget(self) -> None:
        """Look everything up anew."""
        with hooks.changing:
            known = vars(self)
            for name in [name for name in known if name != "backend"]:
                del known[name]

    def __getattr__(self, name: str) -> Any:
        with hooks.changing:
            found = self._find(name)
            setattr(self, name, found)
        return found

    def primitive(self, name: str) -> Any:
        """A primitive, or a constant of the standard, as the backend has it without overrides."""
        backend = self.backend
        found = _member(backend.primitives, name)
        if found is None:
            found = _member(backend.xp, name)
        if found is None:
            raise AttributeError(f"{backend!r} does not implement '{name}'")
        return backend.guarded(backend.foreign(found))

    def _find(self, name: str) -> Any:
        if name in PRIMITIVES:
            return table.overridden(name, self.backend, self.primitive(name))
        if name in ("linalg", "fft"):
            return _Part(self, name)
        if is_primitive(name):
            return self.primitive(name)
        if name in TABLE:
            return table.resolve(TABLE[name], self.backend)
        raise AttributeError(f"F has no '{name}', neither as a primitive nor in the table of ops")

    def __repr__(self) -> str:
        return f"<F over {self.backend.name} arrays>"
