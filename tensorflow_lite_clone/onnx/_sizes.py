"""Sizes that vary: what runs of one model, on inputs of several sizes, say about them.

A number that is the same in all runs is taken to be fixed. One that differs is a `Varying`, and has
to be an expression of the dynamic sizes that holds in all runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone.onnx._trace import Trace, Value
from tensorflow_lite_clone.onnx.errors import OnnxExporterError
from tensorflow_lite_clone.trace import Call


class Varying(tuple[int, ...]):
    """A size, as it was in every run."""

    __slots__ = ()


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
    """The simplest way in which a size follows from symbols in all runs."""
    return min(_expressions(size, symbols), key=_complexity, default=None)


def _expressions(size: Varying, symbols: Sequence[Symbol]) -> Iterator[Expression]:
    for count in (1, 2, 3):
        for chosen in itertools.combinations_with_replacement(symbols, count):
            products = [math.prod(sizes) for sizes in zip(*[symbol.size for symbol in chosen])]
            difference = products[1] - products[0]
            factor, rest = divmod(size[1] - size[0], difference) if difference else (0, 1)
            summand = size[0] - factor * products[0]
            if not rest and all([factor * p + summand == n for p, n in zip(products, size)]):
                yield Expression(factor, chosen, summand)


def _complexity(found: Expression) -> int:
    return abs(found.factor) + abs(found.summand) + 2 * len(found.symbols)


def paired(values: Sequence[Any]) -> Any:
    """The values of a parameter in all runs as one, with a `Varying` for every integer that
    differs."""
    first = values[0]
    if any([type(value) is not type(first) for value in values]):
        raise OnnxExporterError("an argument of an op changes its type with the size of an input")
    if type(first) is int:
        return first if len(set(values)) == 1 else Varying(values)
    if isinstance(first, (tuple, list)):
        if any([len(value) != len(first) for value in values]):
            raise OnnxExporterError(
                "the number of an op's arguments depends on the size of an input"
            )
        entries = [paired(entry) for entry in zip(*values)]
        return type(first)(*entries) if hasattr(first, "_fields") else type(first)(entries)
    if isinstance(first, dict):
        return {key: paired([value[key] for value in values]) for key in first}
    if type(first) is float and any([value != first for value in values]) and first == first:
        raise OnnxExporterError(
            f"a number that an op is given depends on a dynamic size: it was {values} in the runs"
        )
    if isinstance(first, slice):
        return slice(*[paired(part) for part in zip(*[(v.start, v.stop, v.step) for v in values])])
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


class Twins:
    """The values of a trace with those that correspond in the other runs, of which there may be
    none."""

    def __init__(self, trace: Trace, others: Sequence[Trace]) -> None:
        self._twins: dict[Value, list[Value]] = {}
        self._calls: dict[Call, list[Call]] = {}
        for other in others:
            if [call.name for call in trace.program] != [call.name for call in other.program]:
                raise OnnxExporterError(
                    "the model runs other ops when the size of a dynamic dimension changes"
                )
            for call, twin in zip(trace.program, other.program):
                self._calls.setdefault(call, [call]).append(twin)
                self.join((*call.args, *call.results), (*twin.args, *twin.results))

    def join(self, values: Iterable[Value | None], twins: Iterable[Value | None]) -> None:
        """Note which values of another run correspond to those of the first."""
        values, twins = list(values), list(twins)
        if len(values) != len(twins):
            raise OnnxExporterError("the number of an op's results depends on a dynamic size")
        for value, twin in zip(values, twins):
            if value is not None and twin is not None:
                known = self._twins.setdefault(value, [value])
                if twin not in known:
                    known.append(twin)

    def _all(self, value: Value) -> list[Value]:
        return self._twins.get(value, [value])

    def shape(self, value: Value) -> tuple[Size, ...]:
        """The sizes of a value's dimensions."""
        shapes = [twin.shape for twin in self._all(value)]
        if len({len(shape) for shape in shapes}) > 1:
            raise OnnxExporterError("a dynamic size changes a tensor's number of dimensions")
        return paired(shapes)

    def constants(self, value: Value) -> list[Any]:
        """A constant's values in all runs."""
        return [twin.constant for twin in self._all(value)]

    def parameters(self, call: Call) -> dict[str, Any]:
        """A call's parameters, with a `Varying` for every integer that differs."""
        twins = self._calls.get(call)
        return paired([twin.kwargs for twin in twins]) if twins else call.kwargs
