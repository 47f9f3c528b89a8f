"""The module of an exported program: parameters and buffers are its own again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.export.graph_signature import InputKind, InputSpec, OutputKind
from tensorflow_lite_clone.fx import Graph, GraphModule, Node
from tensorflow_lite_clone.fx._attributes import parent_at
from tensorflow_lite_clone.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.utils import _pytree

if TYPE_CHECKING:
    from tensorflow_lite_clone.export.exported_program import ExportedProgram


class _ExportedModule(GraphModule):
    """The class of such modules before each gets one of its own."""


def unlifted(program: ExportedProgram, guards: Module | None) -> GraphModule:
    """A module that is called as the exported one was."""
    root = _root(program)
    graph = Graph()
    copies: dict[Node, Node] = {}
    inputs = dict(zip(program.graph.find_nodes(op="placeholder"),
                      program.graph_signature.input_specs))  # fmt: skip
    users = [node for node, spec in inputs.items() if spec.kind is InputKind.USER_INPUT]
    for node, spec in inputs.items():
        if spec.kind is InputKind.USER_INPUT:
            copies[node] = graph.placeholder(node.name)
            copies[node].name = node.name
        else:
            name = str(spec.target).replace(".", "_")
            copies[node] = graph.create_node("get_attr", str(spec.target), name=name)
        copies[node].meta = dict(node.meta)
    if guards is not None:
        root.add_module("_guards_fn", guards)
        graph.create_node("call_module", "_guards_fn", tuple([copies[node] for node in users]))
    for node in program.graph.nodes:
        if node.op in ("call_function", "get_attr"):
            copies[node] = graph.node_copy(node, copies.__getitem__)
    _end(program, graph, copies, {spec.target: node for node, spec in inputs.items()})
    signature = program.module_call_graph[0].signature
    assert signature is not None
    names = _argument_names(signature)
    graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, signature.in_spec, signature.out_spec))
    module = GraphModule(root, graph)
    for name, value, persistent in _state(program):
        _place(module, name, value, persistent)
    module._in_spec, module._out_spec = signature.in_spec, signature.out_spec
    module.register_forward_pre_hook(_check_structure, with_kwargs=True)
    kind = type(module)
    kind.train = _refuse("train")  # type: ignore[method-assign]
    kind.eval = _refuse("eval")  # type: ignore[method-assign]
    return module


def _argument_names(signature: Any) -> list[str]:
    given = list(signature.forward_arg_names or ())
    count = signature.in_spec.child(0).num_children + signature.in_spec.child(1).num_children
    return given if len(given) == count else [f"arg_{place}" for place in range(count)]


def _refuse(name: str) -> Any:
    def refused(self: Any, mode: bool = True) -> Any:
        raise NotImplementedError(f"Calling {name}() is not supported yet.")

    return refused


def _root(program: ExportedProgram) -> Module:
    root = Module()
    for name, value, persistent in _state(program):
        _place(root, name, value, persistent)
    for name, child in program.graph_module.named_children():
        root.add_module(name, child)
    return root


def _state(program: ExportedProgram) -> list[tuple[str, Any, bool | None]]:
    """Every parameter, buffer and constant with its name; whether it is saved, of buffers."""
    found = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            value = program.value_of(spec.kind, str(spec.target))
            found.append((str(spec.target), value, _persistence(spec)))
    return found


def _persistence(spec: InputSpec) -> bool | None:
    if spec.kind is InputKind.PARAMETER:
        return None
    return bool(spec.persistent) if spec.kind is InputKind.BUFFER else False


def _place(root: Module, path: str, value: Any, persistent: bool | None) -> None:
    """Give a module a parameter or buffer at a path, whose modules are made if need be."""
    root, last = parent_at(root, path)
    for have in (root._parameters, root._buffers, root.__dict__):
        have.pop(last, None)
    if persistent is None:
        root.register_parameter(last, value)
    else:
        root.register_buffer(last, value, persistent=persistent)


def _end(
    program: ExportedProgram, graph: Graph, copies: dict[Node, Node], inputs: dict[Any, Node]
) -> None:
    """Write what the program writes, and return what it returns."""
    results = []
    names = {node.name: node for node in copies}
    for value, spec in zip(program.graph.output_node().args[0],
                           program.graph_signature.output_specs):  # fmt: skip
        new = copies[value] if isinstance(value, Node) else value
        if spec.kind is OutputKind.USER_OUTPUT:
            results.append(new)
            continue
        target = inputs.get(spec.target) or names[str(spec.target)]
        graph.call_function(aten.copy_.default, (copies[target], new), name="copy_")
    graph.output(tuple(results))


def _check_structure(module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Raise for arguments that are nested otherwise than the example; sorts those by keyword."""
    spec = module._in_spec
    order = spec.child(1).context
    if kwargs.keys() == set(order):
        kwargs = {name: kwargs[name] for name in order}
    _, found = _pytree.tree_flatten((args, kwargs))
    if not _alike(found, spec):
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{spec}\nbut actually "
            f"got inputs with tree spec of: \n{found}.\nPlease check that the inputs have the "
            "same number and type of args and kwargs as the ones you used when tracing."
        )
    return args, kwargs


def _alike(found: Any, spec: Any) -> bool:
    """Whether two trees are nested alike: lists may stand for tuples, keys in another order."""
    kinds = {list: tuple}
    if kinds.get(found.type, found.type) != kinds.get(spec.type, spec.type):
        return False
    if found.type is dict:
        if set(found.context) != set(spec.context):
            return False
        places = [found.context.index(key) for key in spec.context]
        pairs = [(found.child(place), spec.child(i)) for i, place in enumerate(places)]
    elif found.num_children != spec.num_children:
        return False
    else:
        if found.type not in (list, tuple) and found.context != spec.context:
            return False
        pairs = list(zip(found.children(), spec.children()))
    return all([_alike(one, two) for one, two in pairs])
