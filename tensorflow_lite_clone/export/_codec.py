"""Exported programs as values of JSON and tensors, and back."""

from __future__ import annotations

import math
import operator
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone._bind import names_of
from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensor
from tensorflow_lite_clone.core import dtypes, strides
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.export._capture import note as noted
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._guards import Expected, ValueRanges
from tensorflow_lite_clone.export._modes import wrap_with_autocast, wrap_with_set_grad_enabled
from tensorflow_lite_clone.export._sizes import Symbol, int_oo
from tensorflow_lite_clone.export._symbolic import SymBool, SymFloat, SymInt
from tensorflow_lite_clone.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from tensorflow_lite_clone.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from tensorflow_lite_clone.fx import Graph, GraphModule, Node
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.compat.symbols import sym_float
from tensorflow_lite_clone.ops.create.constructors import empty_strided
from tensorflow_lite_clone.ops.namespaces import OpOverload, namespaces
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils import _pytree

#: Functions of graphs that are no operations, by their names.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"operator.{function.__name__}": function
    for function in (
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg,
        operator.truediv, operator.pow, operator.getitem, operator.lt, operator.le, operator.gt,
        operator.ge, operator.eq, operator.ne,
    )
}  # fmt: skip
_FUNCTIONS["torch.sym_float"] = sym_float
_FUNCTIONS["wrap_with_set_grad_enabled"] = wrap_with_set_grad_enabled
_FUNCTIONS["wrap_with_autocast"] = wrap_with_autocast
_NAMES = {function: name for name, function in _FUNCTIONS.items()}
_ARGUMENTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument)
}
#: Containers that a tree may be made of, by their names in files.
_CONTAINERS: dict[str, Any] = {
    "tuple": tuple, "list": list, "dict": dict, "OrderedDict": OrderedDict, "deque": deque,
    "defaultdict": defaultdict,
} | {f"return_types.{name}": kind for name, kind in names_of("return_types").items()}  # fmt: skip
#: Classes of a program that are containers: name in files -> class; see `register_dataclass`.
named_containers: dict[str, type] = {}


# -- values ----------------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    """An argument of a call; ValueError for one that has no form in a file."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encoded(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(key), _encoded(each)] for key, each in value.items()]}
    if isinstance(value, DType):
        return {"dtype": str(value).rpartition(".")[2]}
    if isinstance(value, Device):
        return {"device": str(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, slice):
        return {"slice": [_encoded(each) for each in (value.start, value.stop, value.step)]}
    name = str(value).rpartition(".")[2]
    if name in _CONSTANTS and _CONSTANTS[name] is value:
        return {"constant": name}
    raise ValueError(f"torch.export.save: {value!r} ({type(value)}) has no form in a file")


_CONSTANTS = {
    name: getattr(strides, name)
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
} | {"strided": Tensor.layout.fget(empty_strided((), ()))}  # type: ignore[attr-defined]


def _decoded(value: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "node":
        return nodes[content]
    if kind in ("list", "tuple"):
        items = [_decoded(each, nodes) for each in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {_decoded(key, nodes): _decoded(each, nodes) for key, each in content}
    if kind == "slice":
        return slice(*[_decoded(each, nodes) for each in content])
    simple: dict[str, Callable[[Any], Any]] = {
        "float": float, "device": Device, "complex": lambda parts: complex(*parts),
        "dtype": lambda name: getattr(dtypes, "bool_" if name == "bool" else name),
        "constant": _CONSTANTS.__getitem__,
    }  # fmt: skip
    return simple[kind](content)


# -- trees -----------------------------------------------------------------------------------------


def _encoded_spec(spec: Any) -> Any:
    if spec.is_leaf():
        return "*"
    children = [_encoded_spec(child) for child in spec.children()]
    kind = spec.type
    names = {each: name for name, each in (_CONTAINERS | named_containers).items()}
    if kind is namedtuple:
        cls = spec.context
        where = [cls.__module__, cls.__qualname__, *cls._fields]
        return {"type": "namedtuple", "context": where, "children": children}
    if kind not in names:
        raise ValueError(
            f"torch.export.save: no name in files is known for {kind}; register the class with "
            "torch.export.register_dataclass(cls, serialized_type_name=...)"
        )
    context = None if kind is defaultdict else _encoded(spec.context)
    if kind is defaultdict:
        context = _encoded(spec.context[1])
    return {"type": names[kind], "context": context, "children": children}


def _decoded_spec(value: Any) -> Any:
    if value == "*":
        return _pytree.LeafSpec()
    children = [_decoded_spec(child) for child in value["children"]]
    if value["type"] == "namedtuple":
        return _pytree.TreeSpec(namedtuple, _named_tuple(*value["context"]), children)
    kind = _CONTAINERS.get(value["type"]) or named_containers.get(value["type"])
    if kind is None:
        raise RuntimeError(
            f"torch.export.load: the arguments have a container named {value['type']!r}; register "
            "its class with torch.export.register_dataclass before loading"
        )
    context = _decoded(value["context"], {})
    return _pytree.TreeSpec(kind, [None, context] if kind is defaultdict else context, children)


def _named_tuple(module: str, name: str, *fields: str) -> Any:
    """The class, if the program has it, else one like it."""
    found = getattr(sys.modules.get(module), name, None)
    if isinstance(found, type) and getattr(found, "_fields", None) == fields:
        return found
    return namedtuple(name.rpartition(".")[2], fields)  # noqa: PYI024


# -- graphs ----------------------------------------------------------------------------------------


def _target(node: Node) -> str:
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        return f"{target.namespace}::{target._opname}.{target._overloadname}"
    if target in _NAMES:
        return _NAMES[target]
    raise ValueError(f"torch.export.save: {target} of node {node.name} has no form in a file")


def _function(name: str) -> Callable[..., Any]:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    space, _, rest = name.partition("::")
    packet, _, overload = rest.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(getattr(namespaces[space], packet), overload)
    except (KeyError, AttributeError):
        raise RuntimeError(
            f"torch.export.load: the operation {name} is not known; define it (torch.library) "
            "before loading"
        ) from None
    return found


def _noted(value: Any) -> Any:
    """The note of a node's value: a tensor's dtype, sizes and device, or a size."""
    if isinstance(value, FakeTensor):
        sizes = [str(size) for size in value.shape]
        return {
            "dtype": str(value.dtype).rpartition(".")[2], "sizes": sizes,
            "strides": list(value.stride()), "device": str(value.device),
            "requires_grad": value.requires_grad, "hints": list(value._storage.array.shape),
        }  # fmt: skip
    if isinstance(value, (list, tuple)):
        return [_noted(each) for each in value]
    if isinstance(value, SymInt):
        return {"size": str(value.expression)}
    if isinstance(value, (SymFloat, SymBool)):
        return None
    return None


def _value(note: Any) -> Any:
    if isinstance(note, list):
        return [_value(each) for each in note]
    if not isinstance(note, dict):
        return None
    if "size" in note:
        return _size(note["size"])
    dtype = getattr(dtypes, "bool_" if note["dtype"] == "bool" else note["dtype"])
    tensor = empty_strided(note["hints"], note["strides"], dtype=dtype, device="meta")
    sizes = tuple.__new__(Size, [_size(size) for size in note["sizes"]])
    return noted(tensor, sizes, Device(note["device"]), note["requires_grad"])


def _size(text: str) -> Any:
    expression = Expression.parse(text)
    if expression.number is not None:
        return expression.number
    return SymInt(None, expression)  # type: ignore[arg-type]


def _encoded_graph(module: GraphModule) -> dict[str, Any]:
    nodes = []
    for node in module.graph.nodes:
        entry = {
            "op": node.op, "name": node.name, "target": _target(node),
            "args": _encoded(tuple(node.args)), "kwargs": _encoded(dict(node.kwargs)),
            "value": _noted(node.meta.get("val")),
        }  # fmt: skip
        for key in ("stack_trace", "nn_module_stack"):
            if node.meta.get(key):
                entry[key] = node.meta[key]
        nodes.append(entry)
    children = {name: _encoded_graph(child) for name, child in module.named_children()}
    return {"nodes": nodes, "modules": children}


def _decoded_graph(description: dict[str, Any]) -> GraphModule:
    graph, root = Graph(), Module()
    nodes: dict[str, Node] = {}
    for name, child in description["modules"].items():
        root.add_module(name, _decoded_graph(child))
    for entry in description["nodes"]:
        is_call = entry["op"] == "call_function"
        target = _function(entry["target"]) if is_call else entry["target"]
        args, kwargs = _decoded(entry["args"], nodes), _decoded(entry["kwargs"], nodes)
        node = graph.create_node(entry["op"], target, args, kwargs, name=entry["name"])
        if node.name != entry["name"]:
            node.name = entry["name"]
        if entry["value"] is not None:
            node.meta["val"] = _value(entry["value"])
        for key in ("stack_trace", "nn_module_stack"):
            if key in entry:
                node.meta[key] = entry[key]
        nodes[node.name] = node
    return GraphModule(root, graph)


# -- programs --------------------------------------------------------------------------------------


def _encoded_argument(argument: Any) -> Any:
    if isinstance(argument, ConstantArgument):
        return {"constant": argument.name, "value": _encoded(argument.value)}
    return {"kind": type(argument).__name__, "name": argument.name}


def _decoded_argument(value: Any) -> Any:
    if "constant" in value:
        return ConstantArgument(value["constant"], _decoded(value["value"], {}))
    return _ARGUMENTS[value["kind"]](value["name"])


def _bound(value: Any) -> Any:
    return None if abs(value) == math.inf else value


def encoded_program(program: ExportedProgram) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file has of a program: values of JSON, and tensors."""
    signature = program.graph_signature
    calls = []
    for entry in program.module_call_graph:
        call = entry.signature
        calls.append(
            {"fqn": entry.fqn}
            if call is None
            else {
                "fqn": entry.fqn, "in_spec": _encoded_spec(call.in_spec),
                "out_spec": _encoded_spec(call.out_spec), "names": call.forward_arg_names,
                "inputs": [_encoded_argument(each) for each in call.inputs],
                "outputs": [_encoded_argument(each) for each in call.outputs],
            }
        )  # fmt: skip
    expected = [
        {"name": each.name, "sizes": None if each.sizes is None else [*map(str, each.sizes)],
         "value": _encoded(each.value)}
        for each in program._expected
    ]  # fmt: skip
    description = {
        "graph": _encoded_graph(program.graph_module),
        "inputs": [
            {"kind": s.kind.name, "arg": _encoded_argument(s.arg), "target": s.target,
             "persistent": s.persistent}
            for s in signature.input_specs
        ],
        "outputs": [
            {"kind": s.kind.name, "arg": _encoded_argument(s.arg), "target": s.target}
            for s in signature.output_specs
        ],
        "ranges": [
            [str(symbol), _bound(each.lower), _bound(each.upper)]
            for symbol, each in program.range_constraints.items()
        ],
        "symbols": [[s.name, s.hint, s.least, _bound(s.most)] for s in program._symbols],
        "calls": calls,
        "expected": expected,
        "guards": [[str(left), sign, str(right)] for left, sign, right in program._guards],
    }  # fmt: skip
    tensors: dict[str, Any] = {
        "state_dict": dict(program.state_dict),
        "constants": dict(program.constants),
        "example": [],
    }
    if program.example_inputs is not None:
        leaves, _ = _pytree.tree_flatten(program.example_inputs)
        tensors["example"] = [
            leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in leaves
        ]
    return description, tensors


def decoded_program(description: dict[str, Any], tensors: dict[str, Any]) -> ExportedProgram:
    """The program of a file."""
    module = _decoded_graph(description["graph"])
    inputs = [
        InputSpec(InputKind[s["kind"]], _decoded_argument(s["arg"]), s["target"], s["persistent"])
        for s in description["inputs"]
    ]
    outputs = [
        OutputSpec(OutputKind[s["kind"]], _decoded_argument(s["arg"]), s["target"])
        for s in description["outputs"]
    ]
    calls = []
    for call in description["calls"]:
        signature = None
        if "in_spec" in call:
            signature = ModuleCallSignature(
                [_decoded_argument(each) for each in call["inputs"]],
                [_decoded_argument(each) for each in call["outputs"]],
                _decoded_spec(call["in_spec"]), _decoded_spec(call["out_spec"]), call["names"],
            )  # fmt: skip
        calls.append(ModuleCallEntry(call["fqn"], signature))
    expected = [
        Expected(
            each["name"],
            None if each["sizes"] is None else tuple(map(Expression.parse, each["sizes"])),
            _decoded(each["value"], {}),
        )
        for each in description["expected"]
    ]
    ranges = {
        Expression.parse(symbol): ValueRanges(
            -int_oo if lower is None else lower, int_oo if upper is None else upper
        )
        for symbol, lower, upper in description["ranges"]
    }
    symbols = [
        Symbol(name, hint, least, int_oo if most is None else most)
        for name, hint, least, most in description["symbols"]
    ]
    example = None
    signature = calls[0].signature if calls else None
    if signature is not None and len(tensors["example"]) == signature.in_spec.num_leaves:
        example = _pytree.tree_unflatten(tensors["example"], signature.in_spec)
    guards = [
        (Expression.parse(left), sign, Expression.parse(right))
        for left, sign, right in description["guards"]
    ]
    return ExportedProgram(
        module, module.graph, ExportGraphSignature(inputs, outputs), dict(tensors["state_dict"]),
        ranges, calls, example, dict(tensors["constants"]), expected=expected, guards=guards,
        symbols=symbols,
    )  # fmt: skip
