"""Namespaces of operations that programs add: ``torch.ops.NAMESPACE.NAME``; see `library`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.torch_function import asked_first, intercepting


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


def register(namespace: Namespace) -> None:
    """Enter a namespace of its own kind."""
    namespaces[namespace.name] = namespace


def namespace(name: str) -> dict[str, Any]:
    """The members of a namespace, which is made if need be."""
    return namespaces.setdefault(name, Namespace(name)).members


class Schema(NamedTuple):
    """What is known of an operation's signature: its names."""

    name: str
    overload_name: str
    is_mutable: bool


class OpOverload:
    """One overload of an operation, as in ``torch.ops.aten.add.Tensor``.

    There is one object per name, so that it serves as the key of tables and in comparisons.
    """

    def __init__(self, packet: OpOverloadPacket, overload: str, function: Any) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.namespace, self._opname = packet._qualified_op_name.split("::")
        self._function = function
        self.__name__ = f"{self._opname}.{overload}"
        self.__module__ = f"torch._ops.{self.namespace}"
        suffix = "" if overload == "default" else overload
        self._name = packet._qualified_op_name + (suffix and f".{suffix}")
        mutable = self._opname.endswith("_") and not self._opname.endswith("__")
        self._schema = Schema(packet._qualified_op_name, suffix, mutable)
        self.tags: list[Any] = []

    def name(self) -> str:
        """The name with the overload's behind a dot, unless that is the default: "aten::mm"."""
        return self._name

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplemented: the operations that are seen are composed of no others."""
        return NotImplemented

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        packet = self.overloadpacket
        return f"<OpOverload(op='{packet}', overload='{self._overloadname}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if intercepting:
            return asked_first(self, str(self), self._run, args, kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(f"{self}: PyTorch's machinery alone calls it")
        return self._function(*args, **kwargs)


class OpOverloadPacket:
    """An operation of PyTorch's library by its name there, with its overloads as attributes.

    The overloads are one function unless they were given functions of their own.
    """

    def __init__(self, name: str, function: Any = None) -> None:
        self._qualified_op_name, self._function = name, function
        self.__name__ = name.partition("::")[2]
        self._overloads: dict[str, OpOverload] = {}

    def overloads(self) -> list[str]:
        """The names of the overloads that were asked for."""
        return list(self._overloads)

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if intercepting:
            return asked_first(self, str(self), self.default._run, args, kwargs)
        return self.default(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self.overload(overload, self._function)

    def overload(self, name: str, function: Any) -> OpOverload:
        """The overload called `name`, which runs `function` if it is new."""
        if name not in self._overloads:
            self._overloads[name] = OpOverload(self, name, function)
        return self._overloads[name]


#: Operations that programs use as keys of tables, and that have no function of their own here.
_KEYS = (
    "_fft_c2c",
    "_pin_memory",
    "_sparse_addmm",
    "_sparse_mm_reduce_impl",
    "_to_copy",
    "alias",
    "index",
    "slice",
    "sym_constrain_range_for_size",
)


class Aten(Namespace):
    """``torch.ops.aten``: the functions and methods of the face by their names.

    `later` is called before an operation is first looked up: it enters those without a function.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.later: list[Callable[[], None]] = []

    def load(self) -> None:
        """Let all operations be entered."""
        while self.later:
            self.later.pop()()

    def __getattr__(self, name: str) -> Any:
        self.load()
        members = vars(self)["members"]
        if name not in members:
            places = [EXPORTS.get(place, {}) for place in ("torch", "method", "functional")]
            functions = [place[name] for place in places if name in place]
            prefix, _, rest = name.partition("_")
            if prefix in ("linalg", "fft", "special") and rest in EXPORTS.get(prefix, {}):
                functions.append(EXPORTS[prefix][rest])
            if not functions and name not in _KEYS:
                return super().__getattr__(name)
            members[name] = OpOverloadPacket(f"aten::{name}", functions[0] if functions else None)
        return members[name]


aten = namespaces["aten"] = Aten("aten")
