"""One signature, one place: functions say here under which names the face exports them.

``@public("torch", "method", "functional")`` on ``softmax`` makes ``torch.softmax``,
``Tensor.softmax`` and ``torch.nn.functional.softmax`` the same function object; `_bind` attaches
them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from tensorflow_lite_clone.core.signature import checked, is_checked

_F = TypeVar("_F", bound=Callable[..., Any])

#: place ("torch", "method", "property", "functional", "linalg", ...) -> name -> function
EXPORTS: dict[str, dict[str, Any]] = {}

#: Asked for every function that `public` collects, ``wrapper(function, places, names)``: what is
#: exported in its place. Rooms below `ops` enter theirs, so that no public function is left out.
on_public: list[Callable[[Any, tuple[str, ...], tuple[str, ...]], Any]] = []


def public(*places: str, names: tuple[str, ...] = (), flat: bool = False) -> Callable[[_F], _F]:
    """Export the decorated function from `places`, under its own name or under `names`.

    Its arguments are checked by their annotations, see `core.signature`; with `flat` it does so
    itself, because a call more would be felt.
    """

    def register(function: _F) -> _F:
        if not flat and type(function) is FunctionType and is_checked(function, places):
            function = checked(function)
        all_names = names or (function.__name__,)
        for wrapper in on_public:
            function = wrapper(function, places, all_names)
        for name in all_names:
            export(function, *places, name=name)
        return function

    return register


def export(function: Any, *places: str, name: str) -> None:
    """Export `function` as `name` from every place; a place has one function per name."""
    for place in places:
        entries = EXPORTS.setdefault(place, {})
        if entries.setdefault(name, function) is not function:
            raise ValueError(f"two functions want to be {place}.{name}")
