"""Sizes that vary: what two traces of one model, on inputs of two sizes, say about them.

A number that is the same in both traces is taken to be fixed. One that differs is a `Varying`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone.onnx._trace import Call, Trace, Value
from tensorflow_lite_clone.onnx.errors import OnnxExporterError


class Varying(NamedTuple):
    """A size as it was in the first and in the second trace."""

    first: int
    second: int


Size = int | Varying


class Symbol(NamedTuple):
    """A dimension that the caller wants dynamic: its name, and where an input has it."""

    name: str
    size: Varying
    input: str
    axis: int


class Expression(NamedTuple):
    """``factor * product of symbols + summand``."""

    factor: int
    symbols: tuple[Symbol, ...]
    summand: int

    def __str__(self) -> str:
        names = [symbol.name for symbol in self.symbols]
        text = "*".join(names if self.factor == 1 else [str(self.factor), *names])
        return text if not self.summand else f"{text} {'+-'[self.summand < 0]} {abs(self.summand)}"


def expression(size: Varying, symbols: Sequence[Symbol]) -> Expression | None:
    """A size in terms of symbols: a multiple of a product of them, else of one plus a number."""
    for count in range(1, len(symbols) + 1):
        for chosen in itertools.combinations(symbols, count):
            first = math.prod([symbol.size.first for symbol in chosen])
            second = math.prod([symbol.size.second for symbol in chosen])
            if first and size.first % first == 0 and size.first // first * second == size.second:
                return Expression(size.first // first, chosen, 0)
    for symbol in symbols:
        slope, rest = divmod(size.second - size.first, symbol.size.second - symbol.size.first)
        if not rest:
            return Expression(slope, (symbol,), size.first - slope * symbol.size.first)
    return None


def paired(first: Any, second: Any) -> Any:
    """Two parameters as one, with a `Varying` for every integer that differs."""
    if type(first) is not type(second):
        raise OnnxExporterError("an argument of an op changes its type with the size of an input")
    if type(first) is int:
        return first if first == second else Varying(first, second)
    if isinstance(first, (tuple, list)):
        if len(first) != len(second):
            raise OnnxExporterError(
                "the number of an op's arguments depends on the size of an input"
            )
        entries = [paired(a, b) for a, b in zip(first, second)]
        return type(first)(*entries) if hasattr(first, "_fields") else type(first)(entries)
    if isinstance(first, dict):
        return {key: paired(entry, second[key]) for key, entry in first.items()}
    if isinstance(first, slice):
        return slice(
            paired(first.start, second.start),
            paired(first.stop, second.stop),
            paired(first.step, second.step),
        )
    return first


def varies(parameter: Any) -> bool:
    """Whether there is a `Varying` in a parameter."""
    if isinstance(parameter, Varying):
        return True
    if isinstance(parameter, slice):
        return any(map(varies, (parameter.start, parameter.stop, parameter.step)))
    if isinstance(parameter, dict):
        parameter = list(parameter.values())
    return isinstance(parameter, (tuple, list)) and any(map(varies, parameter))


class Pairs:
    """The values of a trace with their twins of a second trace, or alone."""

    def __init__(self, trace: Trace, other: Trace | None) -> None:
        self._twins: dict[Value, Value] = {}
        self._calls: dict[Call, Call] = {}
        if other is None:
            return
        if [call.op for call in trace.calls] != [call.op for call in other.calls]:
            raise OnnxExporterError(
                "the model runs other ops when the size of a dynamic dimension changes"
            )
        for call, twin in zip(trace.calls, other.calls):
            self._calls[call] = twin
            self.join((*call.inputs, *call.outputs), (*twin.inputs, *twin.outputs))

    def join(self, values: Iterable[Value | None], twins: Iterable[Value | None]) -> None:
        """Note which values correspond."""
        values, twins = list(values), list(twins)
        if len(values) != len(twins):
            raise OnnxExporterError("the number of an op's results depends on a dynamic size")
        for value, twin in zip(values, twins):
            if value is not None and twin is not None:
                self._twins[value] = twin

    def shape(self, value: Value) -> tuple[Size, ...]:
        """The sizes of a value's dimensions."""
        twin = self._twins.get(value, value)
        if len(twin.shape) != len(value.shape):
            raise OnnxExporterError("a dynamic size changes a tensor's number of dimensions")
        return tuple([a if a == b else Varying(a, b) for a, b in zip(value.shape, twin.shape)])

    def constants(self, value: Value) -> tuple[Any, Any]:
        """A constant's values in both traces."""
        return value.constant, self._twins.get(value, value).constant

    def parameters(self, call: Call) -> dict[str, Any]:
        """A call's parameters, with a `Varying` for every integer that differs."""
        twin = self._calls.get(call)
        if twin is None:
            return call.parameters
        return {
            name: paired(parameter, twin.parameters[name])
            for name, parameter in call.parameters.items()
        }
