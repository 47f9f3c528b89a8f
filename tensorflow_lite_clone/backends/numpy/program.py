"""A tape of calls as a function of straight Python: one line for each call, one name per value.

Which values stay where they are is known once nothing of the captured program is left but what it
handed out (results, gradients, what modules keep). These lie at fixed places: the call that makes
one writes there, or its result is copied there. Views of fixed memory are made once. Everything
else is a local variable, and is let go of after the line that reads it last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.chains import joined
from tensorflow_lite_clone.backends.numpy.formulas import title_of
from tensorflow_lite_clone.backends.numpy.recording import Live, Number, Tape, Value
from tensorflow_lite_clone.backends.numpy.tiles import Chain
from tensorflow_lite_clone.trace import Call, values_in


class Program:
    """`run` does what was taped; `text` is what it is made of.

    ``run(kept)`` takes the list of what the programs of a pool hand on to each other.
    """

    def __init__(self, tape: Tape, F: Any) -> None:
        self._names: dict[int, str] = {}
        self._space: dict[str, Any] = {"copy": np.copyto, "asarray": np.asarray}
        self._counts: dict[str, int] = {}
        self._keep: list[Any] = []  # what names were given to, so that ids stay theirs
        self._own = set(tape.computed)
        self._known: set[int] = set()  # values that earlier lines have made or read
        _place(tape)
        entries = [entry for entry in tape.calls if not self._is_view_of_fixed(entry)]
        entries = joined(entries, F)
        last = self._last_uses(entries)
        self.chains = [entry.target for entry in entries if isinstance(entry.target, Chain)]
        lines = ["def run(kept):"]
        for position, entry in enumerate(entries):
            lines += self._lines(entry, [v for v in last.get(position, ())])
        if len(lines) == 1:
            lines.append("    pass")
        self.text = "\n".join(lines) + "\n"
        exec(compile(self.text, "<captured step>", "exec"), self._space)
        self.run = self._space["run"]

    def listing(self) -> str:
        """The text, and what the chains in it do to a tile, for a reader."""
        parts = [f"# {self._names[id(chain)]}\n{chain.text}" for chain in self.chains]
        return "\n".join([self.text, *parts])

    def _is_view_of_fixed(self, entry: Call) -> bool:
        """Whether a call gives a view of memory that stays; the view is then made for good."""
        value = entry.result
        if not isinstance(value, Value) or value.base is None or value not in self._own:
            return False
        given = list(values_in((entry.args, entry.kwargs)))
        if len(given) != 1 or given[0].array is None or given[0] is value:
            return False
        if value.array is None:
            value.array = value.alive()
        if value.array is None:
            value.array = entry.target(*_plain(entry.args), **_plain(entry.kwargs))
        return True

    def _last_uses(self, entries: list[Call]) -> dict[int, list[Value]]:
        """After which entry each local variable is not read any more."""
        last: dict[int, tuple[int, Value]] = {}
        for position, entry in enumerate(entries):
            for value in values_in(entry):
                last[id(value)] = position, value
        found: dict[int, list[Value]] = {}
        for position, value in last.values():
            if value.array is None:
                found.setdefault(position, []).append(value)
        return found

    def _lines(self, entry: Call, free: list[Value]) -> Iterator[str]:
        for value in values_in((entry.args, entry.kwargs)):
            if value.array is None and value not in self._own and self._is_first(value):
                yield f"    {self._name(value)} = kept[{value.shared}]"
        arguments = [self._source(x) for x in entry.args]
        arguments += [f"{name}={self._source(x)}" for name, x in entry.kwargs.items()]
        call = f"{self._constant(entry.target, title_of(entry.target))}("
        result = entry.result
        if isinstance(entry.target, Chain):
            places = [self._place(value, value in entry.args) for value in result]
            arguments.append(f"into=[{', '.join(places)}]")
        if self._writes_directly(entry):
            self._known.add(id(result))
            yield f"    {call}{', '.join(arguments)}, out={self._name(result)})"
        else:
            after: list[str] = []
            target = self._target(result, after)
            yield f"    {target}{call}{', '.join(arguments)})"
            yield from after
        if free:
            yield f"    del {', '.join([self._name(value) for value in free])}"

    def _is_first(self, value: Value) -> bool:
        """Whether no line before has made or read a value; from now on one has."""
        first = id(value) not in self._known
        self._known.add(id(value))
        return first

    def _writes_directly(self, entry: Call) -> bool:
        """Whether a call can write its result into the fixed place where that belongs."""
        value, call = entry.result, entry.target
        if not isinstance(call, np.ufunc) or entry.kwargs or len(entry.args) != call.nin:
            return False
        return isinstance(value, Value) and self._is_new_and_fixed(value)

    def _is_new_and_fixed(self, value: Value) -> bool:
        """Whether nothing has been written yet into the place where a value stays."""
        if value.array is None or value.base is not None:
            return False
        return value in self._own and id(value) not in self._known

    def _place(self, value: Value, given: bool) -> str:
        """Where a chain is to write a result: None for new memory."""
        if given or self._is_new_and_fixed(value):
            self._known.add(id(value))
            return self._name(value)
        return "None"

    def _target(self, result: Any, after: list[str]) -> str:
        """What a call's result is assigned to, and the lines that follow."""
        pattern = self._pattern(result, after)
        return "" if pattern == "_" else f"{pattern} = "

    def _pattern(self, result: Any, after: list[str]) -> str:
        if isinstance(result, list):
            parts = [self._pattern(entry, after) for entry in result]
            return "_" if set(parts) <= {"_"} else f"[{', '.join(parts)}]"
        scalar = isinstance(result, tuple)
        value = result[0] if scalar else result
        if isinstance(value, Number):
            return self._named(value, "number")
        if value is None:
            return "_"
        name = self._name(value)
        first = self._is_first(value)
        if value.array is not None:
            if value not in self._own or value.base is not None or not first:
                return "_"  # it lies there
            made = self._named(value, "made")
            after.append(f"    copy({name}, {made})")
            after.append(f"    del {made}")
            return made
        if scalar:
            after.append(f"    {name} = asarray({name})")
        if value.shared is not None:
            after.append(f"    kept[{value.shared}] = {name}")
        return name

    def _name(self, value: Value) -> str:
        """The variable, or the constant, that a value is."""
        if value.array is not None:
            return self._constant(value.array, "array")
        return self._named(value, "v")

    def _source(self, value: Any) -> str:
        """An argument as Python."""
        kind = value.__class__
        if kind is Value:
            return self._name(value)
        if kind is Live:
            return f"{self._constant(value.values, 'numbers')}[{value.place}]"
        if kind is Number:
            return self._named(value, "number")
        if value is None or kind is int or kind is bool or kind is str:
            return repr(value)
        if kind is float and math.isfinite(value):
            return repr(value)
        if kind is list:
            return f"[{', '.join([self._source(entry) for entry in value])}]"
        if kind is tuple:
            return f"({''.join([f'{self._source(entry)}, ' for entry in value])})"
        if kind is dict:
            pairs = [f"{name!r}: {self._source(entry)}" for name, entry in value.items()]
            return f"{{{', '.join(pairs)}}}"
        return self._constant(value, getattr(kind, "__name__", "").lower() or "value")

    def _constant(self, value: Any, title: str) -> str:
        name = self._named(value, title)
        self._space[name] = value
        return name

    def _named(self, value: Any, title: str) -> str:
        name = self._names.get(id(value))
        if name is None:
            count = self._counts[title] = self._counts.get(title, 0) + 1
            name = self._names[id(value)] = f"{title}_{count}"
            self._keep.append(value)
        return name


def _place(tape: Tape) -> None:
    """Find the values that are held from outside: they lie where they lie for good."""
    for value in tape.computed:  # parents come before what shares their memory
        if value.base is None or value.base.array is not None:
            value.array = value.alive()


def _plain(described: Any) -> Any:
    """A description with arrays in place of values."""
    if isinstance(described, Value):
        return described.array
    if isinstance(described, (list, tuple)):
        return type(described)([_plain(entry) for entry in described])
    if isinstance(described, dict):
        return {name: _plain(entry) for name, entry in described.items()}
    return described
