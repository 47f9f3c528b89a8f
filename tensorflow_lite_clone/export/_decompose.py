"""`run_decompositions`: an exported program in fewer operations, without writes.

The graph is run again as a capture. What writes to a tensor becomes an operation that gives the
written tensor; the tensors that share its memory are made anew when they are next used, by the
views that led to them. What inputs were written comes out first.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.amp import autocast
from tensorflow_lite_clone.export import _layer_decompositions  # noqa: F401  its rules
from tensorflow_lite_clone.export._capture import Capture, handlers
from tensorflow_lite_clone.export._decompositions import (
    CustomDecompTable,
    call,
    into,
    is_own,
    shape_of,
)
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._modes import fold, is_wrapper, wrap_with_autocast
from tensorflow_lite_clone.export._sizes import Unbacked
from tensorflow_lite_clone.export._symbolic import SymInt
from tensorflow_lite_clone.export.exported_program import ExportedProgram, decomposers
from tensorflow_lite_clone.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from tensorflow_lite_clone.fx import GraphModule, Node
from tensorflow_lite_clone.fx._pytree import map_instances
from tensorflow_lite_clone.ops.namespaces import OpOverload, aten
from tensorflow_lite_clone.tensor import Tensor

_MUTATIONS = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}
#: Operations whose results share memory with their first argument.
_VIEWS = frozenset(
    """
    alias contiguous detach detach_ expand expand_as flatten mT movedim narrow numpy_T permute
    reshape select slice squeeze swapaxes swapdims t to transpose unflatten unsqueeze view
    """.split()
)


class Memory:
    """A tensor of the program that writes may change, as it is now."""

    def __init__(self, value: Any, base: Memory | None = None, view: Any = None) -> None:
        self.value, self.base, self.view = value, base, view
        self.version: int = base.root.version if base is not None else 0

    @property
    def root(self) -> Memory:
        """The tensor that has the memory."""
        return self if self.base is None else self.base.root

    def read(self) -> Any:
        """The value, made anew if the memory was written since."""
        if self.base is not None and self.version != self.root.version:
            func, args, kwargs = self.view
            self.value = func(self.base.read(), *args, **kwargs)
            self.version = self.root.version
        return self.value

    def write(self, value: Any) -> None:
        """Let the memory hold another value."""
        if self.base is not None:
            func, args, _ = self.view
            self.base.write(_written(self.base.read(), func.target, args, value))
            self.version = self.root.version
        else:
            self.version += 1
        self.value = value


def _written(base: Tensor, target: OpOverload, args: tuple, value: Tensor) -> Tensor:
    """A tensor of which a view was written."""
    name = target._opname
    shape = list(shape_of(base))
    if name == "select":
        return call("select_scatter", base, value, *args)
    if name == "slice":
        return call("slice_scatter", base, value, *args)
    if name in ("alias", "detach", "detach_", "contiguous", "to"):
        return value
    if name in ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"):
        return call("view", value, shape)
    if name in ("t", "mT", "transpose", "swapaxes", "swapdims"):
        return call("transpose", value, *(args or (-2, -1)))
    if name in ("permute", "numpy_T"):
        order = args[0] if args else [*range(base.ndim)[::-1]]
        return call("permute", value, sorted(range(len(order)), key=lambda i: order[i] % base.ndim))
    raise NotImplementedError(f"run_decompositions: a write through {target} is not decomposed")


class _Rerun:
    """A program on its way through a capture."""

    def __init__(
        self,
        program: ExportedProgram,
        rules: dict[Any, Callable[..., Any]],
        bounds: dict[str, tuple[int, float]],
    ) -> None:
        self.program, self.rules = program, rules
        self.capture = Capture(program._symbols, bounds=bounds)
        self.inputs: dict[str, Memory] = {}

    def run(self) -> list[Any]:
        """Run the graph; returns what it returns."""
        program, capture = self.program, self.capture
        environment: dict[Node, Any] = {}
        specs = program.graph_signature.input_specs
        for node, spec in zip(program.graph.find_nodes(op="placeholder"), specs):
            note = node.meta.get("val")
            traced = None
            if isinstance(spec.arg, TensorArgument):
                sizes = [
                    size.expression if isinstance(size, SymInt) else Expression.of(size)
                    for size in note.shape
                ]
                traced = capture.fake(note, sizes)
                traced.device = note.device
            new = capture.placeholder(node.name, traced, note)
            new.meta = {**node.meta, **new.meta}
            value = note if traced is None else Memory(traced.tensor)
            environment[node] = value
            if isinstance(value, Memory):
                self.inputs[node.name] = value
        with into(capture):
            return self.interpret(program.graph_module, environment)

    def interpret(self, module: GraphModule, environment: dict[Node, Any]) -> list[Any]:
        """Run the calls of a graph."""
        for node in module.graph.nodes:
            if node.op == "get_attr":
                environment[node] = module.get_submodule(str(node.target))
            elif node.op == "call_function":
                values = environment.__getitem__
                args, kwargs = map_instances((node.args, node.kwargs), Node, values)
                self.capture.trace = node.meta.get("stack_trace", "")
                self.capture.modules = [
                    (key, *value) for key, value in node.meta.get("nn_module_stack", {}).items()
                ]
                environment[node] = self._call(node, args, kwargs)
            elif node.op == "output":
                return list(map_instances(node.args[0], Node, environment.__getitem__))
        raise AssertionError("the graph has no output")

    def _call(self, node: Node, args: tuple, kwargs: dict[str, Any]) -> Any:
        target: Any = node.target
        if is_wrapper(target):
            place = 4 if target is wrap_with_autocast else 1
            inputs = args[place].graph.find_nodes(op="placeholder")
            inner = dict(zip(inputs, args[place + 1 :]))
            if target is not wrap_with_autocast:
                return self.interpret(args[place], inner)
            device, dtype, enabled, _ = args[:4]
            with autocast(device, dtype=dtype, enabled=enabled, cache_enabled=False):
                return self.interpret(args[place], inner)
        if target is operator.getitem and isinstance(args[0], (list, tuple)):
            return args[0][args[1]]
        plain, options = _read((args, kwargs))
        if not isinstance(target, OpOverload):
            return target(*plain, **options)
        if target is aten.item.default:
            return handlers["item"](self.capture, *plain)
        if target is aten.sym_size.int:
            return self.capture.shape(plain[0])[plain[1]]
        if target is aten.batch_norm.default and plain[5] and plain[3] is not None:
            return self._batch_norm(args, plain)
        if target._schema.is_mutable and target is not aten.detach_.default:
            return self._write(target, args, plain, options)
        result = self.run_operation(target, plain, options)
        return self._kept(target, args, plain, options, result)

    def run_operation(self, target: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What an operation gives: of those that it is composed of, or as it is."""
        composed = self.rules.get(target)
        if target is aten.detach_.default:
            composed = self.rules.get(aten.detach.default)
            target = aten.detach.default
        if composed is None:
            return self.capture.emit(target, args, kwargs)
        if is_own(composed):
            result = composed(*args, **kwargs)
        else:  # a program's own, which calls public functions
            with self.capture:
                result = composed(*args, **kwargs)
        return self.capture.emit(target, args, kwargs) if result is NotImplemented else result

    def _kept(self, target: Any, args: Any, plain: Any, options: Any, result: Any) -> Any:
        """Results as memory: views remember whose they are."""
        if not isinstance(result, Tensor):
            if isinstance(result, (list, tuple)):
                return [Memory(x) if isinstance(x, Tensor) else x for x in result]
            return result
        base = args[0] if args and isinstance(args[0], Memory) else None
        if base is not None and result is plain[0]:
            return base
        if base is None or target._opname not in _VIEWS:
            return Memory(result)

        def again(x: Tensor, *rest: Any, **named: Any) -> Any:
            return self.run_operation(target, (x, *rest), named)

        again.target = target  # type: ignore[attr-defined]
        return Memory(result, base, (again, plain[1:], options))

    def _write(self, target: Any, args: Any, plain: Any, options: Any) -> Any:
        name = target._opname[:-1]
        if name == "copy":
            value = self._copied(plain[0], plain[1])
        elif name in ("fill", "zero"):
            number = 0 if name == "zero" else plain[1]
            value = (
                self._copied(plain[0], number)
                if isinstance(number, Tensor)
                else call("full_like", plain[0], number)
            )
        else:
            twin = getattr(getattr(aten, name), target._overloadname)
            value = self.run_operation(twin, plain, options)
        if value is plain[0]:
            value = call("clone", value)
        args[0].write(value)
        return args[0]

    def _copied(self, x: Tensor, source: Tensor) -> Tensor:
        if source.dtype is not x.dtype:
            source = call("_to_copy", source, dtype=x.dtype)
        shape = shape_of(x)
        return source if source.shape == x.shape else call("expand", source, list(shape))

    def _batch_norm(self, args: Any, plain: Any) -> Any:
        name = "_native_batch_norm_legit_functional"
        y, _, _, mean, var = call(name, *plain[:8])
        args[3].write(mean)
        args[4].write(var)
        return Memory(y)


def _read(value: Any) -> Any:
    """Values with what memory holds now in its place."""
    return map_instances(value, Memory, Memory.read)


def _rerun(program: ExportedProgram, rules: dict[Any, Callable[..., Any]]) -> Any:
    bounds: dict[str, tuple[int, float]] = {}
    for _ in range(100):
        rerun = _Rerun(program, rules, bounds)
        try:
            return rerun, rerun.run()
        except Unbacked as found:
            bounds[found.symbol] = found.bounds
    raise AssertionError("the sizes that depend on values do not settle")


def decomposed(program: ExportedProgram, decomp_table: Any) -> ExportedProgram:
    """The program by the rules of a table."""
    rules = CustomDecompTable() if decomp_table is None else dict(decomp_table)
    rerun, results = _rerun(program, rules)
    capture, signature = rerun.capture, program.graph_signature
    nodes, outputs = [], []
    for spec in signature.input_specs:
        memory = rerun.inputs.get(spec.arg.name)
        if memory is None or not memory.version or spec.kind not in _MUTATIONS:
            continue
        node = capture.node(memory.read())
        nodes.append(node)
        target = spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target
        outputs.append(OutputSpec(_MUTATIONS[spec.kind], TensorArgument(node.name), target))
    for value, old in zip(results, signature.output_specs):
        node = capture.node(_read(value))
        nodes.append(node)
        if not isinstance(node, Node):
            argument: Any = ConstantArgument(old.arg.name, node)
        elif isinstance(old.arg, ConstantArgument):
            argument = ConstantArgument(node.name, old.arg.value)
        else:
            argument = _renamed(old.arg, node.name)
        outputs.append(OutputSpec(old.kind, argument, old.target))
    graph = capture.graph
    graph.output(tuple(nodes))
    graph.eliminate_dead_code(_is_kept)
    names = [node.name for node in graph.find_nodes(op="placeholder")]
    inputs = [
        InputSpec(spec.kind, _renamed(spec.arg, name), spec.target, spec.persistent)
        for spec, name in zip(signature.input_specs, names)
    ]
    root = GraphModule({}, graph)
    fold(root, capture.outside)
    for node, output in zip(graph.output_node().args[0], outputs):
        if isinstance(node, Node):
            output.arg.name = node.name
    return ExportedProgram(
        root, graph, ExportGraphSignature(inputs, outputs), dict(program.state_dict),
        dict(program.range_constraints), program.module_call_graph, program.example_inputs,
        dict(program.constants), expected=program._expected, guards=program._guards,
        symbols=program._symbols,
    )  # fmt: skip


decomposers.append(decomposed)


def _is_kept(node: Node) -> bool:
    """Whether a node stays though nothing uses it: checks do."""
    return node.is_impure() or str(node.target).startswith("aten._assert")


def _renamed(argument: Any, name: str) -> Any:
    return dataclasses.replace(argument, name=name)
