"""Graphs of models as TensorBoard shows them: a node for each input, parameter, call and output.

A node lies in the boxes that its name says: ``Net/Sequential[body]/Linear[0]/linear`` is a call in
``net.body[0]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.event_pb2 import Event, TaggedRunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from tensorflow_lite_clone.export import ExportedProgram, export
from tensorflow_lite_clone.fx import Node
from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.tensor import Tensor

_FORMAT = 22  # the version of graphs that PyTorch says it writes


def graph_events(model: Module, inputs: Any) -> tuple[GraphDef, list[Event]]:
    """The graph that a model runs for evaluation, and the events that say so in a file."""
    arguments = (inputs,) if isinstance(inputs, (Tensor, dict)) else tuple(inputs)
    with _eval_mode(model):
        program = export(model, arguments)
    graph = GraphDef(node=_Nodes(model, program).found, versions=VersionDef(producer=_FORMAT))
    device = StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")])
    metadata = RunMetadata(step_stats=device).SerializeToString()
    run = TaggedRunMetadata(tag="step1", run_metadata=metadata)
    return graph, [Event(graph_def=graph.SerializeToString()), Event(tagged_run_metadata=run)]


@contextmanager
def _eval_mode(model: Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


class _Nodes:
    """The nodes of an exported program in TensorBoard's form, in `found`."""

    def __init__(self, model: Module, program: ExportedProgram) -> None:
        self.model = model
        signature = program.graph_signature
        self.held = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self.names: dict[Node, str] = {}
        self.found: list[NodeDef] = []
        for node in program.graph.nodes:
            if node.op == "output":
                self._add_outputs(node)
            elif node.op == "placeholder":
                self._add_input(node)
            else:
                self._add_call(node)

    def _scope(self, path: str) -> str:
        """The boxes of the module at a path: its class, and those of the modules around it."""
        module: Any = self.model
        boxes = [type(module).__name__]
        for name in path.split(".") if path else ():
            module = getattr(module, name)
            boxes.append(f"{type(module).__name__}[{name}]")
        return "/".join(boxes)

    def _add(
        self, node: Node | None, name: str, op: str, inputs: list[Node], value: Any, text: str
    ) -> None:
        if node is not None:
            self.names[node] = name
        attributes = {"attr": AttrValue(s=text.encode())}
        values = value if isinstance(value, (list, tuple)) else [value]
        shapes = [_shape(x) for x in values if isinstance(x, Tensor)]
        if shapes:
            attributes["_output_shapes"] = AttrValue(list=AttrValue.ListValue(shape=shapes))
        sources = [self.names[source] for source in inputs]
        self.found.append(NodeDef(name=name, op=op, input=sources, attr=attributes))

    def _add_input(self, node: Node) -> None:
        path, value = self.held.get(node.name), node.meta.get("val")
        if path is None:
            self._add(node, f"input/{node.name}", "IO Node", [], value, "")
            return
        module, _, name = path.rpartition(".")
        text = f"{{ name : {name}}}"
        self._add(node, f"{self._scope(module)}/{name}", "prim::GetAttr", [], value, text)

    def _add_call(self, node: Node) -> None:
        modules = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        scope = self._scope(modules[-1] if modules else "")
        target: Any = node.target
        space = getattr(target, "namespace", "prim")
        kind = getattr(target, "_opname", None) or getattr(target, "__name__", str(target))
        constants = [str(x) for x in node.args if not isinstance(x, Node)]
        constants += [f"{k} : {x}" for k, x in node.kwargs.items() if not isinstance(x, Node)]
        text = f"{{ {', '.join(constants)}}}" if constants else "{}"
        name, inputs = f"{scope}/{node.name}", node.all_input_nodes
        self._add(node, name, f"{space}::{kind}", inputs, node.meta.get("val"), text)

    def _add_outputs(self, node: Node) -> None:
        for number, source in enumerate(node.all_input_nodes, 1):
            value = source.meta.get("val")
            self._add(None, f"output/output.{number}", "IO Node", [source], value, "")


def _shape(x: Tensor) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=int(size)) for size in x.shape])
