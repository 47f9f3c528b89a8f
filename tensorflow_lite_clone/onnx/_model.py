"""From traces to an ONNX model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.onnx import rules  # noqa: F401  enters the rules
from tensorflow_lite_clone.onnx._formula import rule_of
from tensorflow_lite_clone.onnx._graph import Graph, Traced
from tensorflow_lite_clone.onnx._sizes import Symbol, Twins, Varying, expression, paired, varies
from tensorflow_lite_clone.onnx._trace import Trace, Value
from tensorflow_lite_clone.onnx.errors import (
    OnnxExporterError,
    OnnxExporterWarning,
    UnsupportedOperatorError,
)
from tensorflow_lite_clone.trace import Call
from tensorflow_lite_clone.version import __version__

FROZEN = (
    "the program depends on the inputs' values, or on a dynamic size in a way that is not known, "
    "through Python's control flow or numbers; the exported model does what it did for the example"
)
_IR_VERSION = 10  # of ONNX 1.16; readers refuse newer ones than they know


class Run:
    """A trace and what came out: the values of its inputs and outputs."""

    def __init__(self, trace: Trace, inputs: list[Value], outputs: list[Value]) -> None:
        self.trace = trace
        self.inputs = inputs
        self.outputs = outputs


def build(
    library: Any,
    run: Run,
    others: Sequence[Run],
    symbols: list[Symbol],
    output_names: Sequence[str],
    opset: int,
    weights_as_inputs: bool,
    with_weights: bool,
) -> Any:
    """The model proto of `run`, with dynamic sizes where `others` have other ones."""
    twins = Twins(run.trace, [other.trace for other in others])
    for other in others:
        twins.join(run.inputs, other.inputs)
        twins.join(run.outputs, other.outputs)
    graph = Graph(library, opset, twins, symbols)
    names = [value.name for value in run.inputs] + [*run.trace.used]
    graph.taken.update([name for name in names if name is not None], output_names)
    _Emission(graph, run).emit()
    outputs = []
    for output_name, value in zip(output_names, run.outputs, strict=True):
        graph.nodes.append(
            library.helper.make_node(
                "Identity", [graph.names[value]], [output_name], name=output_name
            )
        )
        outputs.append(_info(graph, output_name, value))
    _rename(graph, output_names)
    inputs = [_info(graph, str(value.name), value) for value in run.inputs]
    weights = dict(graph.initializers)
    read = {name for node in graph.nodes for name in node.input}
    for name, (value, array) in run.trace.used.items():
        if name in read:
            weights[name] = array
            if weights_as_inputs or not with_weights:
                inputs.append(_info(graph, name, value))
    tensors = [
        library.numpy_helper.from_array(np.asarray(array), name)
        for name, array in weights.items()
        if name in read and (with_weights or name in graph.initializers)
    ]
    made = library.helper.make_graph(graph.nodes, "main_graph", inputs, outputs, tensors)
    return library.helper.make_model(
        made,
        opset_imports=[library.helper.make_opsetid("", opset)],
        producer_name="tensorflow_lite_clone",
        producer_version=__version__,
        ir_version=_IR_VERSION,
    )


def _rename(graph: Graph, outputs: Sequence[str]) -> None:
    """Let nodes write outputs directly, where an Identity would follow a node of one use."""
    makers = {name: node for node in graph.nodes for name in node.output}
    uses: dict[str, int] = {}
    for node in graph.nodes:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    for identity in graph.nodes[len(graph.nodes) - len(outputs) :]:
        source = identity.input[0]
        if source in makers and uses[source] == 1:
            places = makers[source].output
            places[list(places).index(source)] = identity.output[0]
            graph.nodes.remove(identity)


def _info(graph: Graph, name: str, value: Value) -> Any:
    """Name, dtype and shape of an input or output."""
    shape: list[int | str] = []
    for axis, size in enumerate(graph.twins.shape(value)):
        if isinstance(size, Varying):
            found = expression(size, graph.symbols)
            shape.append(str(found) if found else f"{name}_dim_{axis}")
        else:
            shape.append(size)
    return graph.onnx.helper.make_tensor_value_info(name, graph.type_of(value.dtype), shape)


class _Emission:
    """Writes the nodes of a run into a graph, those that its outputs need."""

    def __init__(self, graph: Graph, run: Run) -> None:
        self.graph = graph
        self.run = run

    def emit(self) -> None:
        names = self.graph.names
        for value in (*self.run.inputs, *[value for value, _ in self.run.trace.used.values()]):
            names[value] = str(value.name)
        for call in self._needed():
            if not all([value in names for value in call.results]):
                self._emit(call)
        for value in self.run.outputs:
            if value not in names:
                names[value] = self._constant(value)

    def _needed(self) -> list[Call]:
        """The calls that outputs depend on, in order; constants are known without them where
        they are the same in both traces."""
        outputs = set(self.run.outputs)
        needed = []
        for call in reversed(self.run.trace.program):
            if not outputs.isdisjoint(call.results) and any(
                [value in outputs and not self._is_fixed(value) for value in call.results]
            ):
                needed.append(call)
                outputs.update([value for value in call.args if value is not None])
        return needed[::-1]

    def _is_fixed(self, value: Value) -> bool:
        if value.constant is None:
            return False
        first, *others = self.graph.twins.constants(value)
        return all([other is not None and equal(first, other) for other in others])

    def _emit(self, call: Call) -> None:
        if any([x is not None and x.dtype.kind == "c" for x in (*call.args, *call.results)]):
            raise UnsupportedOperatorError(
                f"'{call.name}': ONNX cannot compute with complex numbers"
            )
        inputs = [None if value is None else self._name(call, value) for value in call.args]
        op = Traced(self.graph, call, inputs)
        made = rule_of(op)(self.graph, op)
        results = made if type(made) is tuple else (made,)
        for value, name in zip(call.results, results, strict=True):
            if name is not None:
                self.graph.names[value] = name

    def _name(self, call: Call, value: Value) -> str:
        names = self.graph.names
        if value not in names:
            if value.constant is None:
                made = value.call.name if value.call else "nothing"
                raise UnsupportedOperatorError(
                    f"an output of '{made}' that '{call.name}' reads has no form in ONNX"
                )
            names[value] = self._constant(value)
        return names[value]

    def _constant(self, value: Value) -> str:
        """An initializer; where the traces differ, the same made from dynamic sizes."""
        graph = self.graph
        constants = graph.twins.constants(value)
        first = constants[0]
        if first is None:
            raise OnnxExporterError("an output of the model has no form in ONNX")
        if self._is_fixed(value):
            return graph.constant(first)
        shape = graph.twins.shape(value)
        if not varies(shape):
            return self._number(value, constants)
        every = np.concatenate([constant.ravel() for constant in constants])
        if every.size and (every == every[0]).all():
            return graph.node("Expand", graph.constant(every[0]), graph.shape_of(shape))
        if first.ndim == 1:
            run_list = [_progressions(constant) for constant in constants]
            alike = len(set(map(len, run_list))) == 1 and len(run_list[0]) > 0
            if alike and first.dtype.kind not in "iu":
                alike = len({run[0][:2] for run in run_list}) == 1
            if alike:
                parts = [self._progression(value, paired(list(runs))) for runs in zip(*run_list)]
                return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=0)
        raise OnnxExporterError(
            f"a constant of shape {list(first.shape)} depends on a dynamic size in a way that "
            "cannot be exported"
        )

    def _progression(self, value: Value, run: tuple) -> str:
        """``start + step * arange(count)``, where start and count may be dynamic sizes."""
        graph = self.graph
        start, step, count = run
        if not varies(run):
            return graph.constant(start + step * np.arange(count), value.dtype)
        if isinstance(step, Varying):  # of a single element the step is free
            raise OnnxExporterError("the step of a constant depends on a dynamic size")
        begin = graph.scalar(start, value)
        if not step:
            return graph.node("Expand", begin, graph.shape_of([count]))
        by = graph.scalar(step, value)
        reach = graph.node("Mul", graph.scalar(count, value), by)
        return graph.node("Range", begin, graph.node("Add", reach, begin), by)

    def _number(self, value: Value, constants: list[Any]) -> str:
        """A constant of one shape and several values: a size, or what the inputs' values give."""
        graph = self.graph
        if not value.shape and all([constant == int(constant) for constant in constants]):
            size = Varying(map(int, constants))
            if expression(size, graph.symbols):
                return graph.cast(graph.squeeze(graph.size(size), [0]), value.dtype)
        warnings.warn(FROZEN, OnnxExporterWarning, stacklevel=level_outside())
        return graph.constant(constants[0])


def _progressions(line: Any) -> list[tuple]:
    """(start, step, count) of the arithmetic progressions that a line is made of, one by one.

    A line of floats is one progression or has none.
    """
    step = line[1] - line[0] if len(line) > 1 else 1
    if line.dtype.kind not in "iu":
        whole = len(line) > 1 and equal(line[0] + step * np.arange(len(line)), line)
        return [(float(line[0]), float(step), len(line))] if whole else []
    found = []
    while len(line):
        step = int(line[1] - line[0]) if len(line) > 1 else 1
        count = 1 + int((np.cumprod(np.diff(line) == step)).sum())
        if count == 2 and abs(step) > 1:  # rather where the next one begins
            step, count = 1, 1
        found.append((int(line[0]), step, count))
        line = line[count:]
    return found


def equal(first: Any, second: Any) -> bool:
    """Whether two arrays have one shape and the same values, NaN among them."""
    return first.shape == second.shape and bool(
        np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")
    )
