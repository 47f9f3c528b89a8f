"""Watching a model run: which operation made which array, in whose memory, in which module."""

from __future__ import annotations

import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from tensorflow_lite_clone.func.batching.array import Batched
from tensorflow_lite_clone.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.uninitialized import is_lazy
from tensorflow_lite_clone.trace import Call, OpTape, Value, values_in
from tensorflow_lite_clone.viz import wording
from tensorflow_lite_clone.viz.graph import Graph
from tensorflow_lite_clone.viz.model import Edge, Group, Node

_PACKAGE = __name__.partition(".")[0]


class _Shown(NamedTuple):
    """How a value is shown: the node that made or wrote it, the version of its memory then, and
    whether the node makes views."""

    node: str
    version: int
    view: bool


class Recorder(OpTape):
    """Fills a graph while a model runs in this thread."""

    def __init__(self, model: Any, depth: int | None, timed: bool) -> None:
        super().__init__()
        name = type(model).__name__ if isinstance(model, Module) else _name_of(model)
        self.graph = Graph(f"forward of {name}", depth=depth)
        self._model = model
        self._timed = timed
        self._shown: dict[Value, _Shown] = {}
        self._modules: list[tuple[Any, str, str]] = []  # that run now: module, path, group
        self._paths: dict[int, str] = {}
        self._calls: Counter[str] = Counter()  # by the key of the group
        self._members: dict[int, tuple[str, str, Tensor]] = {}  # name, kind, tensor by array
        self._newest: Node | None = None
        self._last: tuple[Node, Call] | None = None  # the last op
        self._writers: dict[Any, str] = {}  # the nodes that wrote memory last
        # Of the call that runs:
        self._sources: list[list[str]] = []  # the nodes that made each value it reads
        self._numbers: dict[str, Any] = {}
        self._took: float | None = None  # microseconds
        if isinstance(model, Module):
            self._paths = {id(module): path for path, module in [*model.named_modules()][::-1]}
            self._learn(model, "", recurse=True)

    def registrations(self) -> Iterator[Any]:
        """Follow calls of modules."""
        yield register_module_forward_pre_hook(self._enter)
        yield register_module_forward_hook(self._leave, always_call=True)

    # -- ends ---------------------------------------------------------------------------------

    def add_inputs(self, inputs: tuple, keywords: dict[str, Any]) -> None:
        """A node for every tensor in the arguments, named after the parameter."""
        called = self._model.forward if isinstance(self._model, Module) else self._model
        try:
            arguments = inspect.signature(called).bind(*inputs, **keywords).arguments
        except (TypeError, ValueError):  # no signature, or the call will say what does not fit
            arguments = {**{f"input{n}": x for n, x in enumerate(inputs)}, **keywords}
        for name, tensor in _tensors(arguments):
            storage = tensor._storage
            self.backends[storage.backend.array_type] = storage.backend
            node = self._add(name, "input", storage.backend, storage.array)
            self._show(self.add_input(storage.array), node)

    def add_outputs(self, results: Any) -> None:
        """A node for every tensor that the model gave."""
        for name, tensor in _tensors({"output": results}):
            storage = tensor._storage
            sources = self._read(self.read(storage.array), storage.backend)
            node = self._add(name, "output", storage.backend, storage.array, sources)
            node.group = ""

    # -- modules ------------------------------------------------------------------------------

    def _enter(self, module: Any, args: Any) -> None:
        if self.running or not self.is_here():
            return
        outer, group = self._modules[-1][1:] if self._modules else ("", "")
        path = self._paths.get(id(module))
        if path is None:  # not one of the model's, or there is only a function
            path = f"{outer}.{type(module).__name__}".lstrip(".")
            for name, below in module.named_modules(prefix=path):
                self._paths.setdefault(id(below), name)
        self._learn(module, path, recurse=False)
        if self._modules or module is not self._model:
            label = path.removeprefix(f"{outer}.") if outer else path
            key = f"{group}/{label}"
            self._calls[key] += 1
            if self._calls[key] > 1:
                again = f" (call {self._calls[key]})"
                label, key = label + again, key + again
            kind = type(module).__name__
            notes = {"module": path}
            if extra := module.extra_repr():
                notes["settings"] = extra
            self.graph.groups[key] = Group(key, label, kind, group, notes=notes)
            group = key
        self._modules.append((module, path, group))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if self.running or not self.is_here():
            return
        if self._modules and self._modules[-1][0] is module:
            self._modules.pop()

    def _learn(self, module: Any, path: str, recurse: bool) -> None:
        """Remember the names of a module's parameters and buffers."""
        for kind, members in (
            ("parameter", module.named_parameters),
            ("buffer", module.named_buffers),
        ):
            for name, tensor in members(path, recurse=recurse):
                if not is_lazy(tensor):
                    storage = tensor._storage
                    self.backends[storage.backend.array_type] = storage.backend
                    self._members.setdefault(id(storage.array), (name, kind, tensor))

    # -- operations ---------------------------------------------------------------------------

    def owner_of(self, array: Any) -> Any:
        """What `vmap` maps over has the memory of all samples."""
        while isinstance(array, Batched):
            array = array.data
        return super().owner_of(array)

    def around_write(
        self, op: Any, call: Callable[[], Any], arrays: tuple, parameters: Any
    ) -> None:
        """Writes into memory of a device of which nothing is known are not shown."""
        if type(arrays[0]) in self.backends:
            super().around_write(op, call, arrays, parameters)
        else:
            call()

    def before(self, call: Call) -> None:
        """Find the nodes that arguments come from, and the values of those that are numbers."""
        values = list(values_in(call.args))
        self._sources = [self._read(value, call.backend) for value in values]
        numbers = [
            _number(value.held(), call.backend)
            for value, found in zip(values, self._sources)
            if not found and (call.kind != "write" or value is not values[0])
        ]
        self._numbers = {}
        if numbers:
            self._numbers["number"] = numbers[0] if len(numbers) == 1 else tuple(numbers)

    def record(self, call: Call, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Note a call, and how many microseconds it took if times are wanted."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            call.backend.synchronize()
            start = perf_counter()
            result = function(*args, **kwargs)
            call.backend.synchronize()
            self._took = (perf_counter() - start) * 1e6
            return result

        return super().record(call, timed if self._timed else function, args, kwargs)

    def after(self, call: Call) -> None:
        """Make a node of it, unless nothing was computed."""
        if call.kind == "write":
            self._after_write(call)
            return
        results = list(values_in(call.result))
        if not set(values_in(call.args)).isdisjoint(results):
            return
        node = self._add_op(call.name, call, results)
        if call.kind == "op":
            self._last = node, call
            if call.target.view:
                node.view = True
                self._mark(self._sources[0][:1], node, "view")
        for value in results:
            self._show(value, node)

    def _after_write(self, call: Call) -> None:
        target, *given = values_in(call.args)
        node, last = self._last or (None, None)
        if node is None or last is None or call.target is not None or not _is_copy(call, last):
            name = "copy" if call.name == "copy_into" else call.name
            node = self._add_op(name, call, [target])
            node.label += "_"
            node.inplace = True
        elif target is next(values_in(last.args)):  # what was computed from it is copied into it
            node.label += "_"
            node.inplace = True
        self._mark(self._sources[0], node, "inplace")
        self._writers[target.memory] = node.key
        node.notes["version"] = f"{target.memory.version} of this memory"
        self._show(target, node)

    def on_node(self, created: Any) -> None:
        """Note the number of the autograd node of the newest operation."""
        node = self._newest
        if self.running or not self.is_here() or node is None:
            return
        if node.sequence < 0:
            node.sequence = created.sequence

    # -- values -------------------------------------------------------------------------------

    def _read(self, value: Value, backend: Any) -> list[str]:
        """The nodes that a value depends on; none for a number that no operation made."""
        shown = self._shown.get(value)
        if shown is None and value.base is not None:  # it was made otherwise than by operations
            shown = self._shown.get(value.base)
        if shown is None:
            array, name, kind = value.held(), "constant", "constant"
            for module, path, _ in [(self._model, "", ""), *self._modules]:
                if id(array) not in self._members and isinstance(module, Module):
                    self._learn(module, path, recurse=False)
            member = self._members.get(id(array))
            if member is not None and member[2]._storage.array is array:
                name, kind = member[:2]
            elif not value.shape:
                return []
            node = self._add(name, kind, backend, value)
            node.parameters = math.prod(value.shape) if kind == "parameter" else 0
            shown = self._show(value, node)
        if shown.version == value.memory.version:
            return [shown.node]
        return [self._writers[value.memory]] + [shown.node] * shown.view

    def _show(self, value: Value, node: Node) -> _Shown:
        shown = self._shown[value] = _Shown(node.key, value.memory.version, node.view)
        return shown

    # -- the graph ----------------------------------------------------------------------------

    def _add_op(self, name: str, call: Call, results: list[Value]) -> Node:
        sources = [key for keys in self._sources for key in keys]
        node = self._add(name, "op", call.backend, results[0] if results else None, sources)
        node.op, node.time = name, self._took
        self._newest = node
        if len(results) > 1:
            node.notes["outputs"] = ", ".join([wording.shape(x.shape) for x in results])
            node.size = sum([_size(x, call.backend) for x in results])
        for key, value in {**call.kwargs, **self._numbers}.items():
            if _is_plain(value):
                node.notes[key] = repr(value)
        if place := _caller():
            node.notes["called at"] = place
        return node

    def _add(
        self, label: str, kind: str, backend: Any, array: Any, sources: Iterable[str] = ()
    ) -> Node:
        group = self._modules[-1][2] if self._modules else ""
        node = Node(f"n{len(self.graph.nodes)}", label, kind, group, device=str(backend.device))
        if array is not None:
            node.shape = tuple(array.shape)
            node.dtype = backend.dtypes[array.dtype].name
            node.size = _size(array, backend)
        self.graph.nodes[node.key] = node
        self.graph.edges += [Edge(source, node.key) for source in dict.fromkeys(sources)]
        return node

    def _mark(self, sources: list[str], node: Node, kind: str) -> None:
        """Give the edges from some nodes to the newest node another kind."""
        edges = self.graph.edges
        for number in range(len(edges) - 1, -1, -1):
            if edges[number].target != node.key:
                break
            if edges[number].source in sources:
                edges[number] = Edge(edges[number].source, node.key, kind)


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors in nested dicts and sequences, named by the way to them."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _tensors(entry, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for number, entry in enumerate(value):
            yield from _tensors(entry, f"{name}.{number}")


def _is_copy(write: Call, last: Call) -> bool:
    """Whether a write copies what an operation has just computed from the target into it."""
    target, *given = values_in(write.args)
    return target in values_in(last.args) and not set(given[:1]).isdisjoint(values_in(last.result))


def _size(array: Any, backend: Any) -> int:
    return math.prod(array.shape) * backend.dtypes[array.dtype].itemsize


def _is_plain(value: Any) -> bool:
    """Whether a parameter can be shown: a number, a word, or a few of them."""
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= 8 and all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, complex, str))


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _caller() -> str:
    """The file and line of the model that is being run, if it is not the framework's own."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(f"{_PACKAGE}.vision.") or module.partition(".")[0] != _PACKAGE:
            return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        if module == f"{_PACKAGE}.viz.forward":
            return ""
        frame = frame.f_back
    return ""


def _number(array: Any, backend: Any) -> Any:
    """The one value of an array, or of what a backend has in place of a Python number."""
    if isinstance(array, backend.array_type):
        array = backend.to_host(array)
    return array.item()
