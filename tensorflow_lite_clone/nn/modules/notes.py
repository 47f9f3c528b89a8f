"""What an error says of the layer it was raised in: a note (PEP 678), printed below its message.

The module that an exception leaves first writes the note. Those around it, which the exception
leaves after that, write their part of the path.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tensorflow_lite_clone.core.errors import Interruption
from tensorflow_lite_clone.core.torch_function import without_overrides
from tensorflow_lite_clone.tensor.tensor import Tensor

#: Exceptions that say where a computation ends, not what is wrong with it.
_CONTROL_FLOW = (StopIteration, StopAsyncIteration, Interruption)
_LONGEST = 200  # characters of a module or an argument
_MOST = 8  # entries of a list


class LayerNote(str):
    """The note: a module's path from `top`, the outermost module left so far, and what it was.

    In a pickle it is plain text, and it keeps no module alive.
    """

    def __new__(cls, top: Any, path: str, description: str) -> LayerNote:
        note = super().__new__(
            cls, f"In layer {path}: {description}" if path else f"In {description}"
        )
        note.path, note.description = path, description
        note.top = weakref.ref(top)
        return note

    path: str
    description: str
    top: weakref.ref[Any] | None  # None if a module above did not have it

    def __reduce__(self) -> Any:
        return str, (str(self),)

    def within(self, module: Any) -> LayerNote:
        """The note as it is once the exception leaves `module`, too."""
        top = None if self.top is None else self.top()
        if top is None or top is module:
            return self
        for name, part in module.named_modules():
            if part is top:
                return LayerNote(module, _joined(name, self.path), self.description)
        note = LayerNote(top, _joined(type(top).__name__, self.path), self.description)
        note.top = None
        return note


@without_overrides
def add_layer_note(error: Exception, module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Let `error`, which leaves a call of `module`, name it, or what was called in it."""
    if isinstance(error, _CONTROL_FLOW):
        return
    with suppress(Exception):  # of a `__repr__`, say: the error itself is what matters
        notes = getattr(error, "__notes__", [])
        for position, note in enumerate(notes):
            if type(note) is LayerNote:
                notes[position] = note.within(module)
                return
        error.add_note(LayerNote(module, "", f"{_line(module)}, called with {_call(args, kwargs)}"))


def _joined(*names: str) -> str:
    return ".".join(filter(None, names))


def _line(module: Any) -> str:
    """A module on one line, without its children; its type if it has no `repr` as yet."""
    try:
        text = repr(module)
        if module._modules:
            text = f"{module._get_name()}({module.extra_repr() or '...'})"
    except Exception:
        text = type(module).__name__
    return _shortened(" ".join(text.split()))


def _call(args: tuple, kwargs: dict[str, Any]) -> str:
    named = [f"{name}={_shown(value)}" for name, value in kwargs.items()]
    return ", ".join([*map(_shown, args), *named]) or "nothing"


def _shown(value: Any) -> str:
    """Dtypes and shapes of tensors, also in lists and mappings; plain values; else the type."""
    if isinstance(value, Tensor):
        where = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{value.dtype} {list(value.shape)}{where}"
    if isinstance(value, (tuple, list)):
        more = ["..."] if len(value) > _MOST else []
        return f"({', '.join([*map(_shown, value[:_MOST]), *more])})"
    if isinstance(value, Mapping):
        parts = [f"{key!r}: {_shown(value[key])}" for key in list(value)[:_MOST]]
        return f"{{{', '.join(parts + ['...'] * (len(value) > _MOST))}}}"
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return _shortened(repr(value))
    return type(value).__name__


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
