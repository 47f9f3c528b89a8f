"""Runs a program on tensors without values, and writes the operations that it calls as a graph.

`Capture` is a `TorchFunctionMode`: every public function that the program calls comes here first.
One that is an operation of aten's becomes a node, and its results are calculated by the meta
device, in every lane of sizes (see `_sizes`). One that PyTorch composes of others is run with the
mode on, so that these are seen. What a program asks about a tensor (its shape, dtype, device) is
answered here.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.templates import originals
from tensorflow_lite_clone.export._errors import data_dependent, stack_trace
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._modes import modes
from tensorflow_lite_clone.export._sizes import Sizes, Symbol
from tensorflow_lite_clone.export._symbolic import (
    SymBool,
    SymFloat,
    SymInt,
    expression_node,
)
from tensorflow_lite_clone.fx import Graph, Node
from tensorflow_lite_clone.fx._namespace import snake_case
from tensorflow_lite_clone.fx.node import map_aggregate
from tensorflow_lite_clone.nn.parameter import Buffer, Parameter
from tensorflow_lite_clone.ops.create.constructors import empty_strided
from tensorflow_lite_clone.ops.decorators.autocast import meta_counts_as
from tensorflow_lite_clone.ops.namespaces import OpOverload, OpOverloadPacket, aten
from tensorflow_lite_clone.overrides import TorchFunctionMode, resolve_name
from tensorflow_lite_clone.python_dispatch import schemas
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_map

_META = Device("meta")
Handler = Callable[..., Any]
#: Functions that are more, or less, than the operation of their name, by that or by their own.
handlers: dict[str, Handler] = {}
#: How an operation is run whose results' shapes depend on values.
data_dependent_runs: dict[str, Callable[..., Any]] = {}
#: Functions that are of no operation: what they say of the first lane's tensors holds.
_DIRECT = frozenset(
    """
    is_floating_point is_complex is_signed is_contiguous is_same_size result_type can_cast
    promote_types is_pinned is_tensor is_nonzero retain_grad register_hook is_inference is_neg
    is_conj layout element_size storage_offset get_device requires_grad_ broadcast_shapes
    is_shared names has_names _is_view __repr__ __str__ __format__ is_set_to
    """.split()
)
_PREFIXES = {
    "torch.Tensor.": "", "torch.nn.functional.": "", "torch.linalg.": "linalg_",
    "torch.fft.": "fft_", "torch.special.": "special_", "torch.": "",
}  # fmt: skip


class Unrecorded(Exception):
    """A tensor that the program has from a function of which no operation was seen."""


class LaneError(Exception):
    """An operation that does not run for other sizes of the dynamic dimensions."""


class Traced:
    """A tensor of the program: the node that gives it, and what it is in every lane."""

    __slots__ = ("constant", "device", "lanes", "node", "tensor")

    def __init__(self, tensor: Tensor, node: Node, lanes: list[Any], device: Device) -> None:
        self.tensor, self.node, self.lanes, self.device = tensor, node, lanes, device
        self.constant: Tensor | None = None  # its values, where the program wrote them down


class Capture(TorchFunctionMode):
    """The graph of a program while it runs."""

    exports = True  # for `compiler.is_exporting`

    def __init__(
        self,
        symbols: list[Symbol],
        frame: Any = None,
        lanes: list[dict[str, int]] | None = None,
        bounds: Mapping[str, tuple[int, float]] | None = None,
    ) -> None:
        self.graph = Graph()
        self.sizes = Sizes(symbols, lanes, bounds)
        self.constants: dict[str, Tensor] = {}
        self.constant_nodes: dict[str, Node] = {}
        self.attributes: dict[int, str] = {}
        self.modules: list[tuple[str, str, str]] = []
        self.trace: str | None = None  # where the program is, if that is known from elsewhere
        self._traced: dict[int, Traced] = {}
        self.sources: list[tuple[Expression, Node, int]] = []
        self._size_nodes: dict[Expression, Node] = {}
        self.input_sizes: list[Node] = []
        self._first_input: Node | None = None
        self._frame = frame
        self.outside = modes()
        self.device = default_device()  # of the first tensor

    # ------------------------------------------------------------------------------------ inputs

    def fake(self, tensor: Tensor, sizes: list[Expression] | None = None) -> Traced:
        """A tensor without values like `tensor`, whose sizes are these expressions."""
        shape = [Expression.of(size) for size in tensor.shape] if sizes is None else sizes
        order = sorted(range(tensor.ndim), key=lambda dim: (-tensor.stride(dim), dim))
        lanes = []
        for lane in self.sizes.lanes:
            counts, strides, step = [size.value(lane) for size in shape], [0] * tensor.ndim, 1
            for dim in reversed(order):
                strides[dim], step = step, step * counts[dim]
            if sizes is None:
                strides = list(tensor.stride())
            lanes.append(empty_strided(counts, strides, dtype=tensor.dtype, device="meta"))
        kind: Any = Parameter if isinstance(tensor, Parameter) else None
        if kind is not None:
            lanes[0] = Parameter(lanes[0], requires_grad=tensor.requires_grad)
        else:
            if isinstance(tensor, Buffer):
                lanes[0] = Buffer(lanes[0], persistent=tensor.persistent)
            lanes[0].requires_grad_(tensor.requires_grad)
        return Traced(lanes[0], None, lanes, tensor.device)  # type: ignore[arg-type]

    def placeholder(self, name: str, traced: Traced | None, value: Any = None) -> Node:
        """Add an input; without a tensor one that is a value."""
        node = self.graph.placeholder(name)
        if name in vars(builtins):  # which PyTorch lets inputs hide
            node.name = name
        if traced is None:
            node.meta["val"] = value
            return node
        traced.node = node
        if not self._traced:
            self.device = traced.device
        self._traced[id(traced.tensor)] = traced
        node.meta["val"] = self.noted(traced)
        for dim, values in enumerate(zip(*[lane.shape for lane in traced.lanes])):
            expression = self.sizes.expression(values)
            if expression is not None and expression.number is None:
                self.sources.append((expression, node, dim))
        return node

    def begin_inputs(self, node: Node | None) -> None:
        """Say which node is the first argument of the program: constants stand before it."""
        self._first_input = self._first_input or node

    def constant(self, tensor: Tensor, name: str | None = None) -> Traced:
        """The tensor, which the program has from elsewhere, as an input of the graph."""
        if name is None and tensor.is_meta:
            raise Unrecorded("a tensor comes from a function of which no operation was seen")
        if name is None:
            number = sum([key.startswith("lifted_tensor_") for key in self.constants])
            name = f"lifted_tensor_{number}"
        traced = self.fake(tensor.detach() if not tensor.is_leaf else tensor)
        before = self._first_input or next(iter(self.graph.nodes), None)
        point = self.graph.inserting_before(before) if before is not None else None
        node = self.placeholder(f"c_{name.replace('.', '_')}", traced)
        if point is not None:
            point.__exit__(None, None, None)
        self.constants[name] = tensor
        self.constant_nodes[name] = node
        self._traced[id(tensor)] = Traced(tensor, node, traced.lanes, tensor.device)
        return self._traced[id(tensor)]

    def lifted(self, tensor: Tensor, detached: bool) -> Tensor:
        """What a program wrote down, such as ``torch.tensor([1, 2])``, as a tensor of the graph."""
        constant = self.constant(tensor)
        result = self.emit(aten.lift_fresh_copy.default, (constant.tensor,), {})
        if detached:
            result = self.emit(aten.detach_.default, (result,), {})
        self._traced[id(result)].constant = tensor
        return result

    # ------------------------------------------------------------------------------------- nodes

    def traced(self, tensor: Tensor) -> Traced:
        """What is known of a tensor; one from elsewhere becomes a constant."""
        known = self._traced.get(id(tensor))
        if known is None:
            known = self.constant(tensor, self.attributes.get(id(tensor)))
        return known

    def is_traced(self, tensor: Any) -> bool:
        """Whether a tensor is one of the program's."""
        return id(tensor) in self._traced

    def node(self, value: Any) -> Any:
        """An argument, or a result, as the graph has it."""
        if isinstance(value, Tensor):
            return self.traced(value).node
        if isinstance(value, (SymInt, SymFloat, SymBool)):
            return value.node
        return value

    def nodes(self, values: Any) -> Any:
        """`node` of all values in tuples, lists and dictionaries."""
        return map_aggregate(values, self.node)

    def add(
        self, function: Callable[..., Any], args: Any, kwargs: Any = None, named: bool = True
    ) -> Node:
        """A call, as the last node; `named` after the operation without its overload."""
        name = None
        if named and isinstance(function, OpOverload):
            name = snake_case(function.overloadpacket.__name__)
            name = name[2:-2] if name.endswith("__") else name
        node = self.graph.call_function(
            function, self.nodes(tuple(args)), self.nodes(kwargs or {}), name=name
        )
        node.meta["nn_module_stack"] = {key: (path, kind) for key, path, kind in self.modules}
        node.meta["stack_trace"] = stack_trace(self._frame) if self.trace is None else self.trace
        node.meta["modes"] = modes()
        return node

    def node_of(self, expression: Expression) -> Node:
        """The node of a size: of an input's, or calculated from such."""
        if expression in self._size_nodes:
            return self._size_nodes[expression]
        sources = [each for each in self.sources if each[0] == expression]
        of_inputs = [each for each in sources if each[1].op == "placeholder"]
        source = of_inputs[-1] if of_inputs else sources[0] if sources else None
        if source is not None:
            found = self._source_node(*source[1:], expression)
        elif (
            len(expression.terms) == 1
            and [*expression.terms.values()] == [1]
            and all(isinstance(each, str) for product in expression.terms for each in product)
            and len(next(iter(expression.terms))) == 1
        ):
            found = self._solved(expression)
        else:
            found = expression_node(self, expression)
        self._size_nodes[expression] = found
        return found

    def _source_node(self, node: Node, dim: int, expression: Expression) -> Node:
        last = next(reversed(self.graph.nodes))
        if node.op == "placeholder":  # sizes of inputs stand at the beginning, in their order
            inputs = [each for each in self.graph.nodes if each.op == "placeholder"]
            last = inputs[-1]
            for each in self.input_sizes:
                if (inputs.index(each.args[0]), each.args[1]) < (inputs.index(node), dim):
                    last = each
        with self.graph.inserting_after(last):
            found = self.graph.call_function(aten.sym_size.int, (node, dim), name="sym_size_int")
        if node.op == "placeholder":
            place = 1 + self.input_sizes.index(last) if last in self.input_sizes else 0
            self.input_sizes.insert(place, found)
        found.meta["val"] = SymInt(self, expression, found)
        return found

    def _solved(self, symbol: Expression) -> Node:
        """The node of a symbol of which inputs have multiples only."""
        (name,) = symbol.symbols
        for expression, node, dim in self.sources:
            factor = expression.terms.get((name,))
            rest = expression - symbol * Expression.of(factor or 0)
            if factor and name not in rest.symbols:
                size: Any = SymInt(self, expression, self._source_node(node, dim, expression))
                offset: Any = rest.number if rest.number is not None else SymInt(self, rest)
                return ((size - offset) // factor).node if factor != 1 else (size - offset).node
        raise AssertionError(f"no input has the size {symbol}")

    # --------------------------------------------------------------------------------- operations

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operation of aten's that takes these arguments; TypeError if none does."""
        found = schemas.resolve(name, args, kwargs)
        if found is None:
            raise TypeError(f"torch.export: no overload of aten.{name} takes these arguments")
        return self.emit_call(found)

    def emit_call(self, call: schemas.Call) -> Any:
        """Call an operation that `schemas` found."""
        call = call.with_placement(default_device())
        return self.emit(getattr(getattr(aten, call.name), call.overload), call.args, call.kwargs)

    def emit(self, func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Add a node for an operation and calculate its results."""
        node = self.add(func, args, kwargs)
        run = data_dependent_runs.get(str(func))
        if run is not None:
            return run(self, node, *args, **kwargs)
        try:
            results = [self.run_lane(func, args, kwargs, 0)]
        except (NotImplementedError, RuntimeError) as error:
            if "meta" in str(error):  # which has no values
                raise data_dependent(f"of {func}") from error
            raise
        for number in range(1, len(self.sizes.lanes)):
            with no_grad():
                try:
                    results.append(self.run_lane(func, args, kwargs, number))
                except Exception as error:
                    raise LaneError(str(error)) from error
        device = self.device_of(args, kwargs)
        return self.enter(node, results, device)

    def rename(self, tensor: Tensor, other: Tensor) -> Tensor:
        """Let a tensor be what the node of another gives; returns it."""
        self.traced(tensor).node = self.traced(other).node
        return tensor

    def device_of(self, args: tuple, kwargs: dict[str, Any]) -> Device:
        """Where the results of an operation are."""
        given = kwargs.get("device") or next((x for x in args if isinstance(x, Device)), None)
        if given is not None:
            return Device(given)
        for value in args:
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, Tensor):
                    return self.traced(each).device
        return default_device()

    def run_lane(self, func: Any, args: Any, kwargs: Any, number: int) -> Any:
        """What an operation gives for the sizes of a lane."""

        def lane(value: Any) -> Any:
            if isinstance(value, Tensor):
                return self.traced(value).lanes[number]
            if isinstance(value, (SymInt, SymFloat, SymBool)):
                return value.lane(number)
            return _META if isinstance(value, Device) else value

        args, kwargs = tree_map(lane, args), tree_map(lane, kwargs)
        names = [each.name for each in schemas.arguments_of(func._opname, func._overloadname)]
        if "device" in names and not any(isinstance(value, Tensor) for value in args):
            kwargs["device"] = _META
        kwargs.pop("pin_memory", None)
        with meta_counts_as(self.device.type):
            return func(*args, **kwargs)

    def enter(self, node: Node, results: list[Any], device: Device) -> Any:
        """Note that a node gives these results, one for every lane; returns the first."""
        first = results[0]
        if isinstance(first, Tensor):
            known = self._traced.get(id(first))
            if known is not None and node.target is aten.dropout.default:  # which gives a view
                first, *_ = results = [lane.view(lane.shape) for lane in results]
                known = None
            if known is not None and known.tensor is first:  # written in place, or given back
                known.node, known.device = node, device
                known.constant = None
            else:
                known = self._traced[id(first)] = Traced(first, node, results, device)
            node.meta["val"] = self.noted(known)
            self._note_sizes(known)
            return first
        if isinstance(first, (tuple, list)):
            for place, each in enumerate(first):
                if isinstance(each, Tensor):
                    item = self.graph.call_function(operator.getitem, (node, place))
                    item.meta.update({k: v for k, v in node.meta.items() if k != "val"})
                    self.enter(item, [result[place] for result in results], device)
            node.meta["val"] = (
                type(first)(
                    [self.noted(self.traced(x)) if isinstance(x, Tensor) else x for x in first]
                )
                if not hasattr(first, "_fields")
                else tuple([self.noted(self.traced(x)) for x in first])
            )
            return first
        node.meta["val"] = first
        return first

    def _note_sizes(self, traced: Traced) -> None:
        """Let sizes of a result that follow from no others be symbols of their own."""
        for dim, values in enumerate(zip(*[lane.shape for lane in traced.lanes])):
            if self.sizes.expression(values) is None:
                name = f"u{len(self.sizes.ranges)}"
                self.sizes.ranges[name] = (0, float("inf"))
                for lane, value in zip(self.sizes.lanes, values):
                    lane[name] = value
                self.sources.append((Expression.of(name), traced.node, dim))
                self.sizes.note(Expression.of(name))

    def shape(self, tensor: Tensor) -> Size:
        """The sizes of a tensor, symbolic where they are dynamic."""
        return tuple.__new__(Size, self.numbers([x.shape for x in self.traced(tensor).lanes]))

    def numbers(self, lanes: list[Any]) -> list[Any]:
        """What these are in all lanes: numbers, or sizes where lanes differ."""
        found: list[Any] = []
        for values in zip(*lanes):
            expression = self.sizes.expression(values)
            is_number = expression is None or expression.number is not None
            found.append(values[0] if is_number else SymInt(self, expression))  # type: ignore[arg-type]
        return found

    def noted(self, traced: Traced) -> FakeTensor:
        """A tensor as a node's note."""
        known = self._traced.setdefault(id(traced.tensor), traced)
        sizes = self.shape(known.tensor)
        return note(traced.lanes[0], sizes, traced.device, traced.tensor.requires_grad)

    # -------------------------------------------------------------------------------------- sizes

    def compare(self, left: Expression, sign: str, right: Expression) -> bool:
        """What a comparison of sizes is, which becomes a guard."""
        if (left.symbols | right.symbols) & self.sizes.unbacked:
            known = self.sizes.decided(left, sign, right)
            if known is None:
                raise data_dependent(f"{left} {sign} {right}")
            return known
        return self.sizes.compare(left, sign, right)

    def specialize(self, expression: Expression) -> None:
        """Let an expression be what it is in the example alone."""
        if expression.symbols & self.sizes.unbacked:
            raise data_dependent(str(expression))
        self.sizes.require(expression, "==", Expression.of(expression.value(self.sizes.lanes[0])))

    def refuse_value(self, value: SymFloat) -> None:
        """Raise where a program asks for a number that is known only when it runs."""
        raise data_dependent(str(value))

    # -------------------------------------------------------------------------------------- calls

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, OpOverload):
            return self.emit(func, args, kwargs)
        if isinstance(func, OpOverloadPacket):
            found = schemas.resolve(func.__name__, args, kwargs)
            return self.emit(func.default, args, kwargs) if found is None else self.emit_call(found)
        full = resolve_name(func) or ""
        name = operation_name(full)
        handler = handlers.get(full) or handlers.get(name)
        if handler is not None:
            return handler(self, *args, **kwargs)
        if full.endswith((".__get__", ".__set__", ".__delete__")) or name in _DIRECT:
            return func(*args, **kwargs)
        call = schemas.resolve(name, args, kwargs)
        if call is not None:
            return self.emit_call(call)
        return self._composed(func, full, args, kwargs)

    def _composed(self, func: Any, full: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a function gives that is no operation: of those that it calls, or as a whole."""
        last = next(reversed(self.graph.nodes), None)
        try:
            with self:
                result = originals.get(func, func)(*args, **kwargs)
            for value in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(value, Tensor) and value.is_meta and not self.is_traced(value):
                    raise Unrecorded
        except Unrecorded:
            for node in list(reversed(self.graph.nodes)):
                if node is last:
                    break
                if node.op == "call_function" and not node.users:
                    self.graph.erase_node(node)
            packet = getattr(aten, operation_name(full), None)
            if packet is None:
                raise NotImplementedError(
                    f"torch.export: {full} is no operation that a graph can have"
                ) from None
            return self.emit(packet.default, args, kwargs)
        return result


def note(tensor: Tensor, sizes: Size, device: Device, requires_grad: bool) -> FakeTensor:
    """What a node has of a tensor on the meta device: other sizes, of which some are symbolic."""
    return _NOTES.dress(tensor.detach().requires_grad_(requires_grad), device, sizes)


_NOTES = FakeTensorMode()


def operation_name(full: str) -> str:
    """What aten calls a public function: "linalg_norm" for "torch.linalg.norm"."""
    for prefix, other in _PREFIXES.items():
        if full.startswith(prefix):
            return other + full.removeprefix(prefix)
    return full


def default_device() -> Device:
    """Where functions make tensors that are told no device."""
    return Device("cpu")
