"""Runs a module on example inputs for `export`, and makes an `ExportedProgram` of the capture."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.export import _attention, _functions, _operators  # noqa: F401  handlers
from tensorflow_lite_clone.export._arguments import argument_names, bound_arguments
from tensorflow_lite_clone.export._capture import Capture, LaneError, Unrecorded
from tensorflow_lite_clone.export._errors import UserError, violated
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._guards import Expected, ValueRanges
from tensorflow_lite_clone.export._modes import fold
from tensorflow_lite_clone.export._sizes import Specialized, Symbol, Unbacked
from tensorflow_lite_clone.export._symbolic import SymBool, SymFloat, SymInt
from tensorflow_lite_clone.export.dynamic_shapes import Dim, Plan, int_oo
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
from tensorflow_lite_clone.fx import GraphModule, Node
from tensorflow_lite_clone.nn.modules import hooks
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.namespaces import OpOverload, aten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils import _pytree

_CONSTANTS = (int, float, bool, str, complex, type(None))


class _Run(NamedTuple):
    """A capture with what its inputs and results are."""

    capture: Capture
    inputs: list[InputSpec]
    results: list[Any]
    out_spec: Any
    calls: dict[str, ModuleCallSignature]


def traced_program(
    module: Module,
    args: tuple,
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    preserved: Sequence[str] = (),
) -> ExportedProgram:
    """Export a module for these arguments."""
    arguments = bound_arguments(module, args, kwargs)
    plan = Plan(arguments, dynamic_shapes)
    bounds: dict[str, tuple[int, float]] = {}
    for _ in range(100):
        symbols = plan.symbols()
        try:
            run = _run(module, plan, args, kwargs, symbols, bounds, preserved=preserved)
        except Unrecorded as error:
            raise NotImplementedError(f"torch.export: {error}") from error
        except Specialized as found:
            _settle(plan, found.symbol, found.value)
        except Unbacked as found:
            bounds[found.symbol] = found.bounds
        except LaneError as error:
            _settle(plan, *_diagnose(module, plan, args, kwargs, symbols, bounds, error))
        else:
            return _program(module, plan, run, arguments, (args, kwargs), symbols)
    raise AssertionError("the sizes of the arguments do not settle")


# -- running ---------------------------------------------------------------------------------------


def _run(
    module: Module,
    plan: Plan,
    args: tuple,
    kwargs: dict[str, Any],
    symbols: list[Symbol],
    bounds: Mapping[str, tuple[int, float]],
    lanes: list[dict[str, int]] | None = None,
    preserved: Sequence[str] = (),
) -> _Run:
    capture = Capture(symbols, sys._getframe(), lanes, bounds)
    inputs: list[InputSpec] = []
    buffers: dict[tuple[int, str], tuple[Module, str, Tensor]] = {}
    with _fake_state(module, capture, inputs, buffers):
        values = []
        first = None
        for number, leaf in enumerate(plan.leaves):
            traced = None
            if isinstance(leaf.value, Tensor):
                traced = capture.fake(leaf.value, plan.sizes[number])
            node = capture.placeholder(leaf.name, traced, leaf.value)
            first = first or node
            values.append(leaf.value if traced is None else traced.tensor)
            spec = TensorArgument(node.name) if traced else ConstantArgument(node.name, leaf.value)
            inputs.append(InputSpec(InputKind.USER_INPUT, spec, None))
        capture.begin_inputs(first)
        _, in_spec = _pytree.tree_flatten((args, kwargs))
        fake_args, fake_kwargs = _pytree.tree_unflatten(values, in_spec)
        calls: dict[str, ModuleCallSignature] = {}
        signatures = _signatures(module, capture, preserved, calls)
        with _module_calls(module, capture), signatures, capture:
            result = module(*fake_args, **fake_kwargs)
        results, out_spec = _pytree.tree_flatten(result)
        for value in results:
            _expect_known(value)
        nodes = [capture.node(value) for value in results]
        for place, name, fake in buffers.values():
            now = place._buffers.get(name)
            if now is not None and now is not fake and capture.is_traced(now):
                target = capture.traced(fake).node
                capture.graph.call_function(aten.copy_.default, (target, capture.node(now)))
    capture.graph.output(tuple(nodes))
    return _Run(capture, inputs, results, out_spec, calls)


def _expect_known(value: Any) -> None:
    if not isinstance(value, (Tensor, SymInt, SymFloat, SymBool, *_CONSTANTS)):
        raise RuntimeError(
            f"Found {type(value)} in output, which is not a known type. If this type holds "
            "tensors, you need to register a pytree for it."
        )


@contextmanager
def _fake_state(
    module: Module,
    capture: Capture,
    inputs: list[InputSpec],
    buffers: dict[tuple[int, str], tuple[Module, str, Tensor]],
) -> Iterator[None]:
    """Let a module have tensors without values; afterwards it is as it was.

    A module that has several names gives its tensors one input for each, as in `state_dict`.
    """
    kept = [(each, dict(each._parameters), dict(each._buffers)) for each in module.modules()]
    others = [(each, dict(each.__dict__)) for each in module.modules()]
    fakes: dict[int, Any] = {}
    places = [
        (kind, each, name, f"{path}.{name}" if path else name, tensor)
        for kind, table in ((InputKind.PARAMETER, "_parameters"), (InputKind.BUFFER, "_buffers"))
        for path, each in module.named_modules(remove_duplicate=False)
        for name, tensor in vars(each)[table].items()
        if tensor is not None
    ]
    for kind, each, name, path, tensor in places:
        traced = fakes[id(tensor)] = fakes.get(id(tensor)) or capture.fake(tensor)
        node = capture.placeholder(f"{kind.name[0].lower()}_{_as_name(path)}", traced)
        if kind is InputKind.PARAMETER:
            saved, each._parameters[name] = None, traced.tensor
        else:
            saved, each._buffers[name] = name not in each._non_persistent_buffers_set, traced.tensor
            buffers[id(each), name] = each, name, traced.tensor
        inputs.append(InputSpec(kind, TensorArgument(node.name), path, saved))
    for path, each in module.named_modules():
        for name, value in each.__dict__.items():
            if isinstance(value, Tensor):
                capture.attributes[id(value)] = f"{path}.{name}" if path else name
    try:
        yield
    finally:
        changed = []
        for each, attributes in others:
            for name in [*each.__dict__]:
                value = each.__dict__[name]
                if isinstance(value, Tensor) and value is not attributes.get(name):
                    changed.append(f"self.{name}")
                    each.__dict__.pop(name)
                    if name in attributes:
                        each.__dict__[name] = attributes[name]
        for each, parameters, tensors in kept:
            each._parameters.clear()
            each._parameters.update(parameters)
            each._buffers.clear()
            each._buffers.update(tensors)
    if changed:
        one = len(changed) == 1
        warnings.warn(
            f"The tensor attribute{'' if one else 's'} {', '.join(changed)} "
            f"{'was' if one else 'were'} assigned during export. Such attributes must be "
            "registered as buffers using the `register_buffer` API.",
            stacklevel=level_outside(),
        )


def _as_name(path: str) -> str:
    return path.replace(".", "_").removeprefix("self_")


@contextmanager
def _module_calls(module: Module, capture: Capture) -> Iterator[None]:
    """Let a capture know in which modules the program is."""
    paths: dict[int, str] = {}
    counts: dict[str, int] = {}
    for path, each in module.named_modules():
        paths.setdefault(id(each), path)

    def begin(each: Module, args: Any) -> None:
        path = paths.get(id(each))
        if path is not None:
            key = "L['self']" + (f".{path}" if path else "")
            number = counts[path] = counts.get(path, -1) + 1
            key += f"@{number}" if number else ""
            kind = f"{type(each).__module__}.{type(each).__qualname__}"
            capture.modules.append((key, path, kind))

    def end(each: Module, args: Any, output: Any) -> None:
        if id(each) in paths:
            capture.modules.pop()

    handles = [
        hooks.register_module_forward_pre_hook(begin),
        hooks.register_module_forward_hook(end, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _signatures(
    module: Module, capture: Capture, paths: Sequence[str], calls: dict[str, ModuleCallSignature]
) -> Iterator[None]:
    """Note the arguments and results of the first calls of some modules."""

    def watched(path: str) -> Any:
        each = module.get_submodule(path)
        begun: list[Any] = []

        def begin(_: Any, args: tuple, kwargs: dict[str, Any]) -> None:
            leaves, spec = _pytree.tree_flatten((args, kwargs))
            begun.append((_arguments(capture, leaves), spec))

        def end(_: Any, args: Any, kwargs: Any, output: Any) -> None:
            inputs, in_spec = begun.pop()
            leaves, spec = _pytree.tree_flatten(output)
            found = ModuleCallSignature(inputs, _arguments(capture, leaves), in_spec, spec)
            calls.setdefault(path, found)

        return (
            each.register_forward_pre_hook(begin, with_kwargs=True),
            each.register_forward_hook(end, with_kwargs=True),
        )

    handles = [handle for path in paths for handle in watched(path)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _arguments(capture: Capture, leaves: list[Any]) -> list[Any]:
    return [_output_argument(capture.node(leaf), leaf) for leaf in leaves]


# -- sizes that are not free -----------------------------------------------------------------------


def _settle(plan: Plan, symbol: str, value: Expression) -> None:
    """Replace a symbol; UserError where the program says that it must be free."""
    other = next(iter(value.symbols), None)
    is_other = other is not None and value == Expression.of(other)
    if is_other and not plan.is_auto(symbol) and plan.is_auto(str(other)):
        symbol, value = str(other), Expression.of(symbol)
    owner = plan.owners[symbol]
    if plan.is_auto(symbol):
        plan.substitute(symbol, value)
        return
    if value.number is not None:
        message = (
            f"  - You marked {owner.name} as dynamic but your code specialized it to be a constant "
            f"({value.number}). If you're using mark_dynamic, either remove it or use "
            "maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or "
            "Dim.AUTO."
        )
        fix = f"  {owner.name} = {value.number}"
        names = owner.name
    else:
        assert other is not None
        second = plan.owners[other]
        if value == Expression.of(other) and isinstance(second.dim, Dim):
            owner, second, symbol, other = second, owner, other, symbol  # the later follows
            value = Expression.of(other)
        if value == Expression.of(other) and not isinstance(owner.dim, Dim):
            plan.substitute(symbol, value)
            return
        names = ", ".join(sorted([owner.name, second.name]))
        right = str(value).replace(other, second.name)
        other_side = f"{right} = {second.source}" if right == second.name else right
        message = (
            f"  - The values of {owner.name} = {owner.source} and {other_side} must always be "
            "equal."
        )
        fix = f"  {owner.name} = {right}"
    raise violated(names, message, [fix] if isinstance(owner.dim, Dim) else [])


def _diagnose(
    module: Module, plan: Plan, args: tuple, kwargs: dict[str, Any], symbols: list[Symbol],
    bounds: Mapping[str, tuple[int, float]], error: Exception,
) -> tuple[str, Expression]:  # fmt: skip
    """Which symbol is not free, and what it must be, by running the program on other sizes."""
    example = {symbol.name: symbol.hint for symbol in symbols}

    def runs(**changes: int) -> bool:
        try:
            _run(module, plan, args, kwargs, symbols, bounds, [example, {**example, **changes}])
        except LaneError:
            return False
        return True

    bound = [each for each in symbols if not runs(**{each.name: each.hint + 1})]
    for number, one in enumerate(bound):
        for two in bound[number + 1 :]:
            if one.hint == two.hint and runs(**{one.name: one.hint + 1, two.name: two.hint + 1}):
                return one.name, Expression.of(two.name)
    if not bound:
        raise UserError(f"Constraints violated: the program does not run for other sizes: {error}")
    return bound[0].name, Expression.of(bound[0].hint)


def _ranges(plan: Plan, capture: Capture, symbols: list[Symbol]) -> dict[Any, ValueRanges]:
    """The sizes that the symbols may have; UserError where guards leave less than was declared."""
    found: dict[Any, ValueRanges] = {}
    problems, fixes, names = [], [], []
    for symbol in symbols:
        least, most = capture.sizes.ranges[symbol.name]
        declared = ValueRanges(symbol.least, symbol.most)
        owner = plan.owners[symbol.name]
        narrowed = least > max(symbol.least, 2) or most < symbol.most
        if narrowed and isinstance(owner.dim, Dim):
            names.append(owner.name)
            problems.append(
                f"  - Not all values of {owner.name} = {owner.source} in the specified range "
                f"satisfy the generated guard {least} <= {owner.source} and {owner.source} <= "
                f"{most}"
            )
            bounds = [f"min={least}"] if least > 2 else []
            bounds += [f"max={most}"] if most < float("inf") else []
            fixes.append(f"  {owner.name} = Dim('{owner.name}', {', '.join(bounds)})")
        lower = least if narrowed else declared.lower
        key = Expression.of(symbol.name)
        found[key] = ValueRanges(lower, declared.upper if most == symbol.most else most)
    for guard in capture.sizes.guards:
        involved = guard.left.symbols | guard.right.symbols
        owners = [plan.owners[name] for name in sorted(involved) if name in plan.owners]
        fixed = [owner for owner in owners if isinstance(owner.dim, Dim)]
        if fixed and len(involved) > 1:
            names += [owner.name for owner in fixed]
            problems.append(
                f"  - Not all values of {fixed[0].name} = {fixed[0].source} in the specified range "
                f"satisfy the generated guard {guard}"
            )
    if problems:
        raise violated(", ".join(names), "\n".join(problems), fixes)
    for name in sorted(capture.sizes.unbacked):
        low, high = capture.sizes.ranges.get(name, (-int_oo, int_oo))
        found[Expression.of(name)] = ValueRanges(low, high)
    return found


# -- the program -----------------------------------------------------------------------------------


def _program(
    module: Module, plan: Plan, run: _Run, arguments: Mapping[str, Any], example: tuple,
    symbols: list[Symbol],
) -> ExportedProgram:  # fmt: skip
    capture = run.capture
    ranges = _ranges(plan, capture, symbols)
    for sizes in plan.sizes.values():
        for size in sizes:
            if size.number is None and size not in ranges:
                bounds = {str(key): (each.lower, each.upper) for key, each in ranges.items()}
                low, high = size.bounds(bounds)
                ranges = {size: ValueRanges(low, int_oo if high == int_oo else high), **ranges}
    graph = capture.graph
    graph.eliminate_dead_code(_is_kept)
    for number, node in enumerate(each for each in capture.input_sizes if not each._erased):
        node.name = f"sym_size_int_{len(symbols) + number}"
    root = GraphModule({}, graph)
    fold(root, capture.outside)
    inputs = {spec.arg.name: spec for spec in run.inputs}
    for name, node in capture.constant_nodes.items():
        inputs[node.name] = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name)
    order = [inputs[node.name] for node in graph.find_nodes(op="placeholder")]
    results = graph.output_node().args[0]
    outputs = [
        OutputSpec(OutputKind.USER_OUTPUT, _output_argument(node, value), None)
        for node, value in zip(results, run.results)
    ]
    _, in_spec = _pytree.tree_flatten(example)
    call = ModuleCallSignature([], [], in_spec, run.out_spec, argument_names(arguments, *example))
    entries = [ModuleCallEntry("", call)]
    entries += [
        ModuleCallEntry(path, run.calls.get(path)) for path, _ in module.named_modules() if path
    ]
    state: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    constants: dict[str, Any] = {}
    for spec in order:
        if spec.kind is InputKind.BUFFER:
            buffer = module.get_buffer(str(spec.target))
            (state if spec.persistent else constants)[str(spec.target)] = buffer
    constants = {**capture.constants, **constants}
    expected = [
        Expected(
            leaf.expression, tuple(plan.sizes[number]) if number in plan.sizes else None,
            None if number in plan.sizes else leaf.value,
        )
        for number, leaf in enumerate(plan.leaves)
    ]  # fmt: skip
    guards = [tuple(guard) for guard in capture.sizes.guards]
    return ExportedProgram(
        root, graph, ExportGraphSignature(order, outputs), state, ranges, entries, example,
        constants, expected=expected, guards=guards,
        symbols=symbols,
    )  # fmt: skip


def _is_kept(node: Node) -> bool:
    """Whether a node stays though nothing uses it."""
    is_operation = isinstance(node.target, OpOverload) and node.target is not aten.sym_size.int
    return is_operation or node.target is operator.getitem or node.is_impure()


def _output_argument(node: Any, value: Any) -> Any:
    if not isinstance(node, Node):
        return ConstantArgument("", value)
    for kind, argument in (
        (Tensor, TensorArgument), (SymInt, SymIntArgument), (SymFloat, SymFloatArgument),
        (SymBool, SymBoolArgument),
    ):  # fmt: skip
        if isinstance(value, kind):
            return argument(node.name)
    return ConstantArgument(node.name, value)
