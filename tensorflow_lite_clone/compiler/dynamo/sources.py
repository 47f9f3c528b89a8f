"""What the inputs of a graph are called: the expressions by which a program reaches them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor

_DEPTH = 6  # of attributes and containers that are looked into
_WIDTH = 1000  # entries of a container that are
_PACKAGE = __name__.partition(".")[0]


class Source(NamedTuple):
    """An expression over ``L``, the local variables, or ``G``, the global ones.

    `by_attribute` says that it is the attribute of a module, which is looked at before a call; the
    call looks at others.
    """

    expression: str
    by_attribute: bool

    @property
    def name(self) -> str:
        """The expression as an identifier: ``L_self_modules_linear_parameters_weight_``."""
        return re.sub("[^a-zA-Z0-9]+", "_", self.expression)


def frame_of(code: CodeType | None, frame: FrameType | None) -> FrameType | None:
    """The frame that runs `code`, from `frame` outwards."""
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


class Sources:
    """Where a call finds its tensors: in the variables of the frame of the compiled function.

    `arguments` are those of a function that has no frame of its own, or none of the program's.
    """

    def __init__(self, code: CodeType | None, arguments: Mapping[str, Any]) -> None:
        self._code = code
        self._arguments = arguments

    def find(self, tensors: list[Tensor], frame: FrameType | None) -> list[Source | None]:
        """The sources of some tensors, seen from `frame`."""
        own = frame_of(self._code, frame)
        variables = self._arguments if own is None else own.f_locals
        found: dict[int, Source] = {}
        missing = {id(tensor) for tensor in tensors}
        places: list[tuple[str, Mapping[str, Any], Any]] = [("L", variables, variables)]
        if own is not None:
            places.append(("G", own.f_globals, own.f_code.co_names))
        if frame is not None and frame is not own:
            if not frame.f_globals.get("__name__", "").startswith(_PACKAGE):
                places.append(("L", frame.f_locals, frame.f_locals))
            places.append(("G", frame.f_globals, frame.f_code.co_names))
        for space, values, names in places:
            seen: set[int] = set()
            for name in sorted(names, key=lambda name: not isinstance(values.get(name), Module)):
                if name in values:
                    for tensor, source in _walk(values[name], f"{space}['{name}']", False, seen, 0):
                        found.setdefault(id(tensor), source)
            if missing <= found.keys():
                break
        return [found.get(id(tensor)) for tensor in tensors]


def _walk(
    value: Any, path: str, by_attribute: bool, seen: set[int], depth: int
) -> Iterator[tuple[Tensor, Source]]:
    """All tensors that are reached through a value."""
    if isinstance(value, Tensor):
        yield value, Source(path, by_attribute)
        return
    is_module = isinstance(value, Module)
    if id(value) in seen or (depth > _DEPTH and not is_module):
        return
    seen.add(id(value))
    for access, entry in _entries(value):
        yield from _walk(entry, path + access, by_attribute or is_module, seen, depth + 1)


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value has, with the ways to it."""
    kind = type(value)
    if isinstance(value, Module):
        attributes = vars(value)
        for table in ("_parameters", "_buffers", "_modules"):
            for name, entry in attributes[table].items():
                yield f".{table}['{name}']", entry
        for name, entry in attributes.items():
            if not name.startswith("_"):
                yield f".{name}", entry
    elif isinstance(value, (list, tuple)):
        names = getattr(kind, "_fields", None)
        for position, entry in enumerate(value[:_WIDTH]):
            yield f"[{position}]" if names is None else f".{names[position]}", entry
    elif isinstance(value, dict):
        for key, entry in [*value.items()][:_WIDTH]:
            yield f"[{key!r}]", entry
    elif kind is FunctionType:
        for position, cell in enumerate(value.__closure__ or ()):
            with contextlib.suppress(ValueError):  # an empty one
                yield f".__closure__[{position}].cell_contents", cell.cell_contents
    elif kind is MethodType:
        yield ".__self__", value.__self__
    elif not isinstance(value, (type, ModuleType)) and not callable(value):
        namespace: Any = getattr(value, "__dict__", None)
        for name, entry in [*namespace.items()][:_WIDTH] if type(namespace) is dict else []:
            yield f".{name}", entry
