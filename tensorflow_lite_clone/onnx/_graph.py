"""The ONNX graph while it is built: nodes, constants, sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.onnx._sizes import (
    Size,
    Symbol,
    Twins,
    Varying,
    expression,
    varies,
)
from tensorflow_lite_clone.onnx._trace import Value
from tensorflow_lite_clone.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from tensorflow_lite_clone.trace import Call

#: op name -> ``rule(graph, op)``, which gives the name of the result or a tuple of names.
RULES: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as the rule of some ops."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = function
        return function

    return enter


class Traced:
    """One op as a rule sees it: `inputs` are names in the ONNX graph, None where it has none."""

    def __init__(self, graph: Graph, call: Call, inputs: list[Any]) -> None:
        self._graph = graph
        self.name = call.name
        self.inputs = inputs
        self.values: tuple[Any, ...] = call.args
        self.outputs = call.results
        self._parameters = graph.twins.parameters(call)

    def __getitem__(self, parameter: str) -> Any:
        """A parameter, which must not depend on dynamic sizes."""
        value = self._parameters[parameter]
        if varies(value):
            raise UnsupportedOperatorError(
                f"'{self.name}': its argument '{parameter}' depends on a dynamic size"
            )
        return value

    def __contains__(self, parameter: str) -> bool:
        return parameter in self._parameters

    def parameters(self) -> dict[str, Any]:
        """All parameters, none of which may depend on dynamic sizes."""
        return {name: self[name] for name in self._parameters}

    def shapes(self) -> list[tuple[Size, ...]]:
        """The shapes of its inputs."""
        return [self._graph.twins.shape(value) for value in self.values if value is not None]

    def sizes(self, parameter: str) -> Any:
        """A parameter that may hold dynamic sizes."""
        return self._parameters[parameter]


class Graph:
    """Nodes and initializers; every method that adds a node returns the name of its output."""

    def __init__(self, library: Any, opset: int, twins: Twins, symbols: list[Symbol]) -> None:
        self.onnx = library
        self.opset = opset
        self.twins = twins
        self.symbols = symbols
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self._constants: dict[tuple, str] = {}

    def fresh(self, name: str) -> str:
        """A name that is not taken yet, and is now."""
        number, found = 0, name
        while found in self.taken:
            number += 1
            found = f"{name}_{number}"
        self.taken.add(found)
        return found

    def node(self, op: str, *inputs: str | None, outputs: int = 1, **attributes: Any) -> Any:
        """A node; its output's name, or a tuple of them if it has several."""
        names = [self.fresh(op.lower()) for _ in range(outputs)]
        given = [name or "" for name in inputs]
        while given and not given[-1]:
            given.pop()
        attributes = {key: value for key, value in attributes.items() if value is not None}
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, given, names, name=name, **attributes))
        return names[0] if outputs == 1 else tuple(names)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """An initializer that the model has no name for."""
        array = np.asarray(value, dtype)
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self.fresh("constant")
            self.initializers[name] = array
        return self._constants[key]

    def number(self, value: Any, like: Value) -> str:
        """A zero-dim constant of a value's dtype."""
        return self.constant(value, like.dtype)

    def scalar(self, size: Any, like: Value) -> str:
        """A zero-dim value of another's dtype: a number, or a dynamic size."""
        if not isinstance(size, Varying):
            return self.number(size, like)
        return self.cast(self.squeeze(self.size(size), [0]), like.dtype)

    def integers(self, values: Any) -> str:
        """A constant line of int64."""
        return self.constant(list(values), np.int64)

    def cast(self, name: str, dtype: Any) -> str:
        """A value in another dtype."""
        return self.node("Cast", name, to=self.type_of(dtype))

    def type_of(self, dtype: Any) -> int:
        """ONNX's number for a dtype."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, name: str, shape: Sequence[Size], op: Traced | None = None) -> str:
        """A value in another shape; one dynamic size is left to the runtime."""
        dynamic = [axis for axis, size in enumerate(shape) if isinstance(size, Varying)]
        if len(dynamic) == 1 and 0 not in shape:
            shape = [-1 if isinstance(size, Varying) else size for size in shape]
        zeros = {"allowzero": 1} if 0 in shape else {}
        return self.node("Reshape", name, self.shape_of(shape, op), **zeros)

    def shape_of(self, sizes: Sequence[Size], op: Traced | None = None) -> str:
        """A line of int64 with the sizes, of which some may be dynamic."""
        if not any(isinstance(size, Varying) for size in sizes):
            return self.integers(sizes)
        parts = [
            self.size(size, op) if isinstance(size, Varying) else self.integers([size])
            for size in sizes
        ]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def size(self, size: Varying, op: Traced | None = None) -> str:
        """A dynamic size as a line of one int64: of an input of the op if one has it, else in
        terms of the sizes of the model's inputs."""
        if op is not None:
            for name, value in zip(op.inputs, op.values):
                if value is not None and size in (shape := self.twins.shape(value)):
                    axis = shape.index(size)
                    return self.node("Shape", name, start=axis, end=axis + 1)
        found = expression(size, self.symbols)
        if found is None:
            raise OnnxExporterError(
                f"a size that was {', '.join(map(str, size))} in the runs is no expression of "
                f"the dynamic dimensions {[symbol.name for symbol in self.symbols]}"
            )
        result = self.node(
            "Shape", found.symbols[0].input, start=found.symbols[0].axis,
            end=found.symbols[0].axis + 1,
        )  # fmt: skip
        for symbol in found.symbols[1:]:
            more = self.node("Shape", symbol.input, start=symbol.axis, end=symbol.axis + 1)
            result = self.node("Mul", result, more)
        if found.factor != 1:
            result = self.node("Mul", result, self.integers([found.factor]))
        return (
            result
            if not found.summand
            else self.node("Add", result, self.integers([found.summand]))
        )

    def permute(self, name: str, axes: Sequence[int]) -> str:
        """A value with its dimensions in another order."""
        if list(axes) == list(range(len(axes))):
            return name
        return self.node("Transpose", name, perm=list(axes))

    def unsqueeze(self, name: str, axes: Sequence[int]) -> str:
        """A value with more dimensions, of size 1."""
        return self.node("Unsqueeze", name, self.integers(axes)) if axes else name

    def squeeze(self, name: str, axes: Sequence[int]) -> str:
        """A value without some dimensions, of size 1."""
        return self.node("Squeeze", name, self.integers(axes)) if axes else name

    def reduce(self, op: str, name: str, axes: Sequence[int], keepdims: bool = True) -> str:
        """A reduction over some dimensions, of which there may be none."""
        return self.node(
            op, name, self.integers(axes), keepdims=int(keepdims), noop_with_empty_axes=1
        )
