"""`override`, `resolve` and `run`: from an op and a backend to the callable that serves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.dispatch import hooks, kinds
from tensorflow_lite_clone.dispatch.op import OF_PRIMITIVES, TABLE, Op, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.dispatch.stored import REFUSALS, REFUSED, calculated, refusing

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend

#: (op name, backend name) -> the backend's own implementation
overrides: dict[tuple[str, str], Callable[..., Any]] = {}


class CallCounts:
    """Counts by (op name, backend name), each in a list of its own: adding to it costs little."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], list[int]] = {}

    def cell(self, key: tuple[str, str]) -> list[int]:
        """The list whose only item is the count of `key`."""
        return self._cells.setdefault(key, [0])

    def __getitem__(self, key: tuple[str, str]) -> int:
        return self._cells[key][0] if key in self._cells else 0

    def copy(self) -> Counter[tuple[str, str]]:
        """The counts as they are now."""
        return Counter({key: cell[0] for key, cell in tuple(self._cells.items())})


#: How often an override served a call, and how often it declined.
served, declined = CallCounts(), CallCounts()
#: Those of them that never decline: they are called directly, and not counted.
total: set[tuple[str, str]] = set()
#: The elements of the first array (or list of arrays) from which on one is asked, where it says.
min_sizes: dict[tuple[str, str], int] = {}
#: Every `Raw` namespace made, so that a new override reaches running code.
namespaces: list[Any] = []


def override(
    name: str, backend: str, declines: bool = True, least: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``function(F, *arrays, **parameters)`` as `backend`'s implementation of an op.

    `name` may also be that of a primitive. An op that is a primitive and that primitive are one:
    the function serves both, and so every formula. It has the signature of the generic forward,
    composite or primitive, and may decline a call by returning ``NotImplemented``: the generic
    form then runs, and the decline is counted. `backend` may also be one of the `accelerators`
    that a backend names: theirs are asked before its own. One that never `declines` is called
    directly. One for `least` elements or more is not asked about a first array, or list of arrays,
    of fewer. An override replaces the one that was there.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        key = _name_of(name), backend
        overrides[key] = function
        (total.discard if declines else total.add)(key)
        min_sizes[key] = least
        _forget()
        return function

    return register


def _name_of(primitive: str) -> str:
    """The name under which overrides of a primitive are kept: that of the op that it is, if any."""
    op = OF_PRIMITIVES.get(primitive)
    return primitive if op is None or primitive in TABLE else op.name


def serves(name: str, backend: Backend) -> bool:
    """Whether a backend has an implementation of its own, which may decline calls all the same."""
    return any([(name, layer) in overrides for layer in (backend.name, *backend.accelerators)])


def _forget() -> None:
    """Let everything be resolved anew: what calls a composite may have taken in its formula."""
    with hooks.changing:
        hooks.forget()
        for namespace in namespaces:
            namespace.forget()
            namespace.backend.forget()


def resolve(op: type[Op] | Callable[..., Any], backend: Backend) -> Callable[..., Any]:
    """The callable over arrays that serves `op` (an op or a composite) on `backend`."""
    F = backend.F
    name, primitive = op.__name__, None
    body: Any = op
    if is_op(op):
        name, body, primitive = op.name, op.forward, op.primitive
    generic: Callable[..., Any]
    if primitive is not None:
        alone = OF_PRIMITIVES.get(primitive) is op
        generic = F.primitive(primitive) if alone else getattr(F, primitive)
        if PRIMITIVES[primitive].kind is not kinds.elementwise:
            generic = backend.adapted(op, generic)
    else:
        generic = backend.adapted(op, partial(body, F))
        generic = backend.guarded(backend.foreign(generic, getattr(op, "view", False)))
    generic = backend.fused(name, body, generic, getattr(op, "auxiliary_outputs", ()))
    generic = _with_overrides(name, backend, generic)
    return refusing(name, backend, generic) if name in REFUSED else generic


def overridden(primitive: str, backend: Backend, generic: Callable[..., Any]) -> Callable[..., Any]:
    """What serves a primitive on `backend`: `generic`, its own form, behind the overrides.

    An op that has the name of a primitive and another signature keeps its overrides to itself.
    """
    if primitive in TABLE and OF_PRIMITIVES.get(primitive) is None:
        return generic
    return _with_overrides(_name_of(primitive), backend, generic)


def _with_overrides(name: str, backend: Backend, generic: Callable[..., Any]) -> Callable[..., Any]:
    for layer in (backend.name, *backend.accelerators):
        if (special := overrides.get((name, layer))) is not None:
            special = backend.foreign(MethodType(special, backend.F))
            if (name, layer) not in total:
                few = min_sizes.get((name, layer), 0)
                special = _with_fallback((name, layer), special, generic, few)
            # Together: at a replay on the CPU, values may be such that the override declines.
            generic = backend.guarded(special)
    return generic


def _with_fallback(
    key: tuple[str, str], special: Callable[..., Any], generic: Callable[..., Any], least: int
) -> Callable[..., Any]:
    serving, declining = served.cell(key), declined.cell(key)
    few = generic
    if least and getattr(generic, "least", 0) >= least:
        few = generic.few  # type: ignore[attr-defined]

    def call(*arrays: Any, **parameters: Any) -> Any:
        if least:
            first = arrays[0]
            size = first.size if first.__class__ is not list else sum([x.size for x in first])
            if size < least:
                return few(*arrays, **parameters)
        result = special(*arrays, **parameters)
        if result is NotImplemented:
            declining[0] += 1
            return generic(*arrays, **parameters)
        serving[0] += 1
        return result

    call.__qualname__ = key[0]  # as programs call it
    call.least, call.few = least, few  # type: ignore[attr-defined]
    return call


def run(op: type[Op], backend: Backend, arrays: Sequence[Any], parameters: dict) -> Any:
    """Run `op` on arrays of `backend`: its override, else the generic, inside active hooks."""
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    try:
        return call(*arrays, **parameters)
    except REFUSALS:
        return calculated(op, backend, call, arrays, parameters)


def prepared(op: type[Op], backend: Backend) -> Callable[..., Any]:
    """What serves `op` on `backend` inside all hooks; kept in ``op.calls`` until hooks change."""
    with hooks.changing:
        return hooks.wrapped(op, backend, resolve(op, backend))
