"""The namespace ``F`` over Tensors: what gradients see when they are themselves recorded.

Its counterpart over arrays is `dispatch.raw.Raw`. Functions of the array API standard are those of
`tensorflow_lite_clone.array_api`, which is imported for the first; ops are applied and recorded;
composites are inlined, so that every order of derivative follows from their bodies.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.late_bound import apply, standard_function
from tensorflow_lite_clone.dispatch.hooks import changing
from tensorflow_lite_clone.dispatch.op import TABLE

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend

_namespaces: dict[Any, Recorded] = {}
_seen_composites: dict[str, Any] = {}


def recorded(backend: Backend) -> Recorded:
    """The recorded namespace whose new tensors live on `backend`."""
    try:
        return _namespaces[backend]
    except KeyError:
        return _namespaces.setdefault(backend, Recorded(backend))


class Recorded:
    """``F`` over Tensors; words are looked up once and then plain attributes."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def run(self, op: Any, *tensors: Any, **parameters: Any) -> Any:
        """Apply an op of the table, for words whose name the standard gives another."""
        return apply(op, *tensors, **parameters)

    def __getattr__(self, name: str) -> Any:
        with changing:
            word = self._find(name)
            setattr(self, name, word)
        return word

    def _find(self, name: str) -> Any:
        if (found := standard_function(name)) is not None:
            function, creates = found
            return partial(function, device=self.backend.device) if creates else function
        entry = TABLE.get(name)
        if entry is None:
            raise AttributeError(f"F has no '{name}' over Tensors")
        if isinstance(entry, type):
            return partial(apply.function, entry)
        if name in _seen_composites:
            return partial(_inlined_or_seen, entry, _seen_composites[name], self)
        return partial(entry, self)

    def __repr__(self) -> str:
        return f"<F over Tensors on {self.backend.device}>"


def see_composite(name: str, function: Any) -> None:
    """Let ``function(*tensors, **parameters)`` run in place of a composite's body.

    That is where modes or classes with `__torch_dispatch__` see the operations of a backward pass
    that is not recorded. It may decline by returning NotImplemented.
    """
    with changing:
        _seen_composites[name] = function
        for namespace in tuple(_namespaces.values()):
            vars(namespace).pop(name, None)  # it was looked up before


def _inlined_or_seen(body: Any, seen: Any, F: Recorded, *tensors: Any, **parameters: Any) -> Any:
    if not mode.grad and mode.dispatching:
        result = seen(*tensors, **parameters)
        if result is not NotImplemented:
            return result
    return body(F, *tensors, **parameters)
