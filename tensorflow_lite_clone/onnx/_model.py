"""From traces to an ONNX model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.onnx import rules  # noqa: F401  enters the rules
from tensorflow_lite_clone.onnx._graph import RULES, Graph, Traced
from tensorflow_lite_clone.onnx._sizes import Pairs, Symbol, Varying, expression
from tensorflow_lite_clone.onnx._trace import Call, Trace, Value
from tensorflow_lite_clone.onnx.errors import (
    OnnxExporterError,
    OnnxExporterWarning,
    UnsupportedOperatorError,
)
from tensorflow_lite_clone.version import __version__

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
    twin: Run | None,
    symbols: list[Symbol],
    output_names: Sequence[str],
    opset: int,
    weights_as_inputs: bool,
    with_weights: bool,
) -> Any:
    """The model proto of `run`, with dynamic sizes where `twin` has others."""
    pairs = Pairs(run.trace, None if twin is None else twin.trace)
    if twin is not None:
        pairs.join(run.inputs, twin.inputs)
        pairs.join(run.outputs, twin.outputs)
    graph = Graph(library, opset, pairs, symbols)
    names = [value.name for value in run.inputs] + [*run.trace.used]
    graph.taken.update([name for name in names if name is not None], output_names)
    _Emission(graph, run).emit()
    outputs = []
    for wanted, value in zip(output_names, run.outputs, strict=True):
        graph.nodes.append(
            library.helper.make_node("Identity", [graph.names[value]], [wanted], name=wanted)
        )
        outputs.append(_info(graph, wanted, value))
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
    for axis, size in enumerate(graph.pairs.shape(value)):
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
            if not all([value in names for value in call.outputs]):
                self._emit(call)
        for value in self.run.outputs:
            if value not in names:
                names[value] = self._constant(value)

    def _needed(self) -> list[Call]:
        """The calls that outputs depend on, in order; constants are known without them where
        they are the same in both traces."""
        wanted = set(self.run.outputs)
        needed = []
        for call in reversed(self.run.trace.calls):
            if not wanted.isdisjoint(call.outputs) and any(
                [value in wanted and not self._is_fixed(value) for value in call.outputs]
            ):
                needed.append(call)
                wanted.update([value for value in call.inputs if value is not None])
        return needed[::-1]

    def _is_fixed(self, value: Value) -> bool:
        if value.constant is None:
            return False
        first, second = self.graph.pairs.constants(value)
        return second is not None and _equal(first, second)

    def _emit(self, call: Call) -> None:
        rule = RULES.get(call.op)
        if rule is None:
            raise UnsupportedOperatorError(
                f"the op '{call.op}' has no rule for ONNX; docs/onnx.md lists those that have one"
            )
        if any([x is not None and x.dtype.kind == "c" for x in (*call.inputs, *call.outputs)]):
            raise UnsupportedOperatorError(f"'{call.op}': ONNX has no arithmetic of complex numbers")
        inputs = [None if value is None else self._name(call, value) for value in call.inputs]
        made = rule(self.graph, Traced(self.graph, call, inputs))
        results = made if type(made) is tuple else (made,)
        for value, name in zip(call.outputs, results, strict=True):
            if name is not None:
                self.graph.names[value] = name

    def _name(self, call: Call, value: Value) -> str:
        names = self.graph.names
        if value not in names:
            if value.constant is None:
                made = value.call.op if value.call else "nothing"
                raise UnsupportedOperatorError(
                    f"an output of '{made}' that '{call.op}' reads has no form in ONNX"
                )
            names[value] = self._constant(value)
        return names[value]

    def _constant(self, value: Value) -> str:
        """An initializer; where the traces differ, the same made from dynamic sizes."""
        graph = self.graph
        first, second = graph.pairs.constants(value)
        if first is None:
            raise OnnxExporterError("an output of the model has no form in ONNX")
        if second is None or _equal(first, second):
            return graph.constant(first)
        shape = graph.pairs.shape(value)
        if first.shape == second.shape:
            if first.ndim == 0 and first == int(first) and second == int(second):
                size = Varying(int(first), int(second))
                if expression(size, graph.symbols):
                    return graph.cast(graph.squeeze(graph.size(size), [0]), value.dtype)
            warnings.warn(
                "a constant of the program depends on the inputs' values; the exported model keeps "
                "the one of the example",
                OnnxExporterWarning,
                stacklevel=2,
            )
            return graph.constant(first)
        both = np.concatenate([first.ravel(), second.ravel()])
        if both.size and (both == both[0]).all():
            return graph.node("Expand", graph.constant(both[0]), graph.shape_of(shape))
        shorter, longer = sorted((first, second), key=len)
        if longer.ndim == 1 and len(longer) > 1 and _equal(longer[: len(shorter)], shorter):
            start, step = longer[0], longer[1] - longer[0]
            if _equal(start + step * np.arange(len(longer)), longer):
                stop = graph.cast(graph.squeeze(graph.shape_of(shape), [0]), value.dtype)
                count = graph.node("Mul", stop, graph.number(step, value))
                end = graph.node("Add", count, graph.number(start, value))
                return graph.node(
                    "Range", graph.number(start, value), end, graph.number(step, value)
                )
        raise OnnxExporterError(
            f"a constant has shape {list(first.shape)} in one run and {list(second.shape)} in "
            "another, where a dynamic dimension has another size: it cannot be exported"
        )


def _equal(first: Any, second: Any) -> bool:
    return first.shape == second.shape and bool(
        np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")
    )
