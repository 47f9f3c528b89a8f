"""One signature, one place: functions say here under which names the face exports them.

``@public("torch", "method", "functional")`` on ``softmax`` makes ``torch.softmax``,
``Tensor.softmax`` and ``torch.nn.functional.softmax`` of it; `_bind` attaches them. As in PyTorch
these are three functions, which graphs and overrides tell apart, but all have the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from tensorflow_lite_clone.core.forwarding import twin
from tensorflow_lite_clone.core.signature import checked, is_checked

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGE = __name__.partition(".")[0]

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


#: What was exported, and what it was exported for.
_exported: dict[FunctionType, Any] = {}
#: place -> the module of its functions, and how their names begin.
_HOMES = {
    "torch": ("", ""),
    "method": (".tensor.tensor", "Tensor."),
    "functional": (".nn.functional", ""),
    **{place: (f".{place}", "") for place in ("linalg", "fft", "special")},
}
#: Functions of `torch.nn.functional` that are the same objects in `torch`.
SHARED = frozenset(
    """
    adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink
    native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_
    selu_ threshold_
    """.split()
)
_SHARING = {"torch": "functional", "functional": "torch"}


def export(function: Any, *places: str, name: str) -> None:
    """Export `function` as `name` from every place; a place has one function per name.

    The first place has the function itself, others have twins of it.
    """
    for place in places:
        entries = EXPORTS.setdefault(place, {})
        before = entries.setdefault(name, function)
        if before is not function:
            if _exported.get(before, before) is not function:
                raise ValueError(f"two functions want to be {place}.{name}")
        elif type(function) is FunctionType and place in _HOMES:
            other = EXPORTS.get(_SHARING.get(place, ""), {}).get(name) if name in SHARED else None
            if other is not None and _exported.get(other) is function:
                entries[name] = other
            elif function not in _exported:
                _exported[function] = function
            else:
                module, prefix = _HOMES[place]
                copied = twin(function, _PACKAGE + module, prefix + name)
                _exported[copied] = function
                entries[name] = copied
