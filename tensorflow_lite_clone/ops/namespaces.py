"""Namespaces of operations that programs add: ``torch.ops.NAMESPACE.NAME``; see `library`."""

from __future__ import annotations

from typing import Any


class Namespace:
    """The operations of one namespace, as attributes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return vars(self)["members"][name]
        except KeyError:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{name}'"
            ) from None


namespaces: dict[str, Namespace] = {}


def namespace(name: str) -> dict[str, Any]:
    """The members of a namespace, which is made if need be."""
    return namespaces.setdefault(name, Namespace(name)).members
