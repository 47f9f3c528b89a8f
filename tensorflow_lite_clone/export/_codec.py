"""Exported programs as values of JSON and tensors, and back.

What JSON has no form for is an object of one entry: the name of a form, with what the form makes
the value of, see `_FORMS`.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow_lite_clone._bind import names_of
from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensor
from tensorflow_lite_clone.core import dtypes, strides
from tensorflow_lite_clone.core.device import Device, Layout, strided
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.export import graph_signature
from tensorflow_lite_clone.export._capture import note
from tensorflow_lite_clone.export._expressions import COMPARISONS, Expression
from tensorflow_lite_clone.export._guards import Expected, ValueRanges
from tensorflow_lite_clone.export._modes import wrap_with_autocast, wrap_with_set_grad_enabled
from tensorflow_lite_clone.export._sizes import Infinity, Symbol, int_oo
from tensorflow_lite_clone.export._symbolic import SymInt
from tensorflow_lite_clone.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from tensorflow_lite_clone.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
)
from tensorflow_lite_clone.fx import Graph, GraphModule, Node
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.compat.symbols import sym_float
from tensorflow_lite_clone.ops.create.constructors import empty_strided
from tensorflow_lite_clone.ops.namespaces import OpOverload, namespaces
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils import _pytree

#: Functions of graphs that are no operations, by their names.
_FUNCTIONS: dict[str, Any] = {
    f"operator.{function.__name__}": function
    for function in (
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.mod,
        operator.neg,
        operator.truediv,
        operator.pow,
        operator.getitem,
        *COMPARISONS.values(),
    )
} | {
    "torch.sym_float": sym_float,
    "wrap_with_set_grad_enabled": wrap_with_set_grad_enabled,
    "wrap_with_autocast": wrap_with_autocast,
}
_NAMES = {function: name for name, function in _FUNCTIONS.items()}
#: Containers that a tree may be made of, by their names in files.
_CONTAINERS: dict[str, Any] = {
    "tuple": tuple, "list": list, "dict": dict, "OrderedDict": OrderedDict, "deque": deque,
    "defaultdict": defaultdict,
} | {f"return_types.{name}": kind for name, kind in names_of("return_types").items()}  # fmt: skip


# -- values ----------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How values of a type are written: `parts` has forms itself, `make` makes the value of it."""

    type: type
    parts: Callable[[Any], Any]
    make: Callable[[Any], Any]


def _record(kind: Any) -> _Form:
    """The form of a dataclass or named tuple."""
    is_tuple = hasattr(kind, "_fields")
    names = kind._fields if is_tuple else [each.name for each in dataclasses.fields(kind)]
    return _Form(kind, lambda value: [getattr(value, name) for name in names],
                 lambda parts: kind(*parts))  # fmt: skip


def _last_name(value: Any) -> str:
    """``float32`` of ``torch.float32``."""
    return str(value).rpartition(".")[2]


def _tree_parts(spec: Any) -> list[Any]:
    if spec.type is namedtuple:
        cls = spec.context
        return ["namedtuple", [cls.__module__, cls.__qualname__, *cls._fields], spec.children()]
    names = {each: name for name, each in _CONTAINERS.items()}
    written = _pytree.SUPPORTED_SERIALIZED_TYPES[spec.type]
    name = names.get(spec.type, written.serialized_type_name)
    if name is None:
        raise ValueError(
            f"torch.export.save: no name in files is known for {spec.type}; register the class "
            "with torch.export.register_dataclass(cls, serialized_type_name=...)"
        )
    context = spec.context
    if spec.type is defaultdict:
        context = [None, context[1]]
    elif written.to_dumpable_context is not None:
        context = written.to_dumpable_context(context)
    return [name, context, spec.children()]


def _tree(parts: Any) -> _pytree.TreeSpec:
    name, context, children = parts
    if name == "namedtuple":
        return _pytree.TreeSpec(namedtuple, _named_tuple(*context), children)
    kind = _CONTAINERS.get(name) or _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if kind is None:
        raise RuntimeError(
            f"torch.export.load: the arguments have a container named {name!r}; register its class "
            "with torch.export.register_dataclass before loading"
        )
    read = _pytree.SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    if read is not None and kind is not defaultdict:
        context = read(context)
    return _pytree.TreeSpec(kind, context, children)


def _named_tuple(module: str, name: str, *fields: str) -> Any:
    """The class, if the program has it, else one like it."""
    found = getattr(sys.modules.get(module), name, None)
    if isinstance(found, type) and getattr(found, "_fields", None) == fields:
        return found
    return namedtuple(name.rpartition(".")[2], fields)  # noqa: PYI024


def _note_parts(fake: FakeTensor) -> list[Any]:
    hints = list(fake._storage.array.shape)
    facts = [fake.dtype, list(fake.stride()), fake.device, fake.requires_grad]
    return [*facts, hints, list(fake.shape)]


def _note(parts: Any) -> FakeTensor:
    dtype, strides, device, requires_grad, hints, sizes = parts
    tensor = empty_strided(hints, strides, dtype=dtype, device="meta")
    return note(tensor, tuple.__new__(Size, sizes), device, requires_grad)


_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_FORMS = {
    "tuple": _Form(tuple, list, tuple),
    "dict": _Form(dict, lambda value: [list(pair) for pair in value.items()], dict),
    "float": _Form(float, str, float),
    "complex": _Form(complex, lambda x: [x.real, x.imag], lambda parts: complex(*parts)),
    "slice": _Form(slice, lambda x: [x.start, x.stop, x.step], lambda parts: slice(*parts)),
    "dtype": _Form(
        DType, _last_name, lambda name: getattr(dtypes, "bool_" if name == "bool" else name)
    ),
    "device": _Form(Device, str, Device),
    "memory_format": _Form(
        MemoryFormat, _last_name, {name: getattr(strides, name) for name in _MEMORY_FORMATS}.get
    ),
    "layout": _Form(Layout, _last_name, {"strided": strided}.__getitem__),
    "size": _Form(Expression, str, Expression.parse),
    "SymInt": _Form(SymInt, str, lambda text: SymInt(None, Expression.parse(text))),  # type: ignore[arg-type]
    "int_oo": _Form(Infinity, str, lambda text: -int_oo if text[0] == "-" else int_oo),
    "tensor": _Form(FakeTensor, _note_parts, _note),
    "leaf": _Form(_pytree.LeafSpec, lambda _: None, lambda _: _pytree.LeafSpec()),
    "tree": _Form(_pytree.TreeSpec, _tree_parts, _tree),
    **{
        kind.__name__: _Form(kind, operator.attrgetter("name"), kind.__getitem__)
        for kind in (InputKind, OutputKind)
    },
    **{
        kind.__name__: _record(kind)
        for kind in (
            *[getattr(graph_signature, name) for name in graph_signature.__all__
              if name.endswith(("Argument", "Spec"))],
            ModuleCallEntry, ModuleCallSignature, Expected, ValueRanges, Symbol,
        )
    },
}  # fmt: skip
_NAMES_OF_FORMS = {form.type: name for name, form in _FORMS.items()}


def _encoded(value: Any) -> Any:
    """A value as one of JSON; ValueError for one that has no form in a file."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if kind is Node:
        return {"node": value.name}
    known = (
        kind if kind in _NAMES_OF_FORMS else tuple if isinstance(value, tuple) else kind.__base__
    )
    if known not in _NAMES_OF_FORMS:
        raise ValueError(f"torch.export.save: {value!r} ({kind}) has no form in a file")
    name = _NAMES_OF_FORMS[known]
    return {name: _encoded(_FORMS[name].parts(value))}


def _decoded(value: Any, nodes: dict[str, Node]) -> Any:
    if isinstance(value, list):
        return [_decoded(each, nodes) for each in value]
    if not isinstance(value, dict):
        return value
    ((name, content),) = value.items()
    return nodes[content] if name == "node" else _FORMS[name].make(_decoded(content, nodes))


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
    """What is written of a node's value: tensors and sizes."""
    if isinstance(value, (list, tuple)):
        return [_noted(each) for each in value]
    return value if isinstance(value, (FakeTensor, SymInt)) else None


def _encoded_graph(module: GraphModule) -> dict[str, Any]:
    nodes = []
    for node in module.graph.nodes:
        meta = {key: node.meta.get(key) for key in ("stack_trace", "nn_module_stack")}
        entry = {
            "op": node.op, "name": node.name, "target": _target(node), "args": node.args,
            "kwargs": node.kwargs, "meta": {"val": _noted(node.meta.get("val")), **meta},
        }  # fmt: skip
        nodes.append({key: _encoded(value) for key, value in entry.items()})
    children = {name: _encoded_graph(child) for name, child in module.named_children()}
    return {"nodes": nodes, "modules": children}


def _decoded_graph(description: dict[str, Any]) -> GraphModule:
    graph, root = Graph(), Module()
    nodes: dict[str, Node] = {}
    for name, child in description["modules"].items():
        root.add_module(name, _decoded_graph(child))
    for entry in description["nodes"]:
        op, name, target, args, kwargs, meta = [_decoded(each, nodes) for each in entry.values()]
        target = _function(target) if op == "call_function" else target
        node = nodes[name] = graph.create_node(op, target, args, kwargs, name=name)
        if node.name != name:
            node.name = name
        node.meta.update({key: value for key, value in meta.items() if value is not None})
    return GraphModule(root, graph)


# -- programs --------------------------------------------------------------------------------------


def encoded_program(program: ExportedProgram) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file has of a program: values of JSON, and tensors."""
    signature = program.graph_signature
    facts = {
        "inputs": signature.input_specs,
        "outputs": signature.output_specs,
        "ranges": program.range_constraints,
        "symbols": program._symbols,
        "calls": program.module_call_graph,
        "expected": program._expected,
        "guards": program._guards,
    }
    leaves, _ = _pytree.tree_flatten(program.example_inputs or ())
    tensors: dict[str, Any] = {
        "state_dict": dict(program.state_dict),
        "constants": dict(program.constants),
        "example": [leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in leaves],
    }
    return {"graph": _encoded_graph(program.graph_module), "facts": _encoded(facts)}, tensors


def decoded_program(description: dict[str, Any], tensors: dict[str, Any]) -> ExportedProgram:
    """The program of a file."""
    module = _decoded_graph(description["graph"])
    facts = _decoded(description["facts"], {})
    calls, example = facts["calls"], None
    signature = calls[0].signature if calls else None
    if signature is not None and len(tensors["example"]) == signature.in_spec.num_leaves:
        example = _pytree.tree_unflatten(tensors["example"], signature.in_spec)
    return ExportedProgram(
        module, module.graph, ExportGraphSignature(facts["inputs"], facts["outputs"]),
        dict(tensors["state_dict"]), facts["ranges"], calls, example, dict(tensors["constants"]),
        expected=facts["expected"], guards=facts["guards"], symbols=facts["symbols"],
    )  # fmt: skip
