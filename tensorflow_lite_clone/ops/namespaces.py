"""Namespaces of operations that programs add: ``torch.ops.NAMESPACE.NAME``; see `library`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.public import EXPORTS


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


class Operator:
    """An operation of PyTorch's library by its name there; its overloads are one function.

    They are told apart by the name after the second dot, which serves as the key of tables.
    """

    def __init__(self, name: str, function: Any) -> None:
        self._name, self._function = name, function
        self._overloads: dict[str, Operator] = {}

    def __repr__(self) -> str:
        return f"<Operator {self._name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(f"{self._name}: PyTorch's machinery alone calls it")
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("__"):
            raise AttributeError(overload)
        if overload not in self._overloads:
            self._overloads[overload] = Operator(f"{self._name}.{overload}", self._function)
        return self._overloads[overload]


#: Operations that programs use as keys of tables, and that have no function of their own here.
_KEYS = (
    "_pin_memory",
    "_sparse_addmm",
    "_sparse_mm_reduce_impl",
    "_to_copy",
    "alias",
    "index",
    "slice",
)


class Aten(Namespace):
    """``torch.ops.aten``: the functions and methods of the face by their names."""

    def __getattr__(self, name: str) -> Any:
        members = vars(self)["members"]
        if name not in members:
            places = [EXPORTS.get(place, {}) for place in ("torch", "method", "functional")]
            functions = [place[name] for place in places if name in place]
            if not functions and name not in _KEYS:
                return super().__getattr__(name)
            members[name] = Operator(f"aten.{name}", functions[0] if functions else None)
        return members[name]


namespaces["aten"] = Aten("aten")
