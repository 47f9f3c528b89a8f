"""Watching a model run: which operation made which array, in whose memory, in which module."""

from __future__ import annotations

import inspect
import math
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from tensorflow_lite_clone.autograd.node import creation_hooks
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.func.batching.array import Batched
from tensorflow_lite_clone.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from tensorflow_lite_clone.storage import lying_as_told
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.uninitialized import is_lazy
from tensorflow_lite_clone.viz import wording
from tensorflow_lite_clone.viz.graph import Graph
from tensorflow_lite_clone.viz.model import Edge, Group, Node

_PACKAGE = __name__.partition(".")[0]


class _Memory:
    """Memory that tensors share: how often it was written, and by which node last."""

    __slots__ = ("version", "writer")

    def __init__(self) -> None:
        self.version, self.writer = 0, ""


class _Place:
    """An array: the node that made it, its memory, and the memory's version at that time."""

    __slots__ = ("memory", "node", "reference", "version", "view")

    def __init__(self, array: Any, node: str, memory: _Memory, view: bool) -> None:
        try:
            self.reference: Callable[[], Any] = weakref.ref(array)
        except TypeError:  # what `vmap` maps over
            self.reference = lambda: array
        self.node, self.memory, self.view = node, memory, view
        self.version = memory.version


class Recorder:
    """Fills a graph while a model runs in this thread."""

    def __init__(self, model: Any, depth: int | None, timed: bool) -> None:
        name = type(model).__name__ if isinstance(model, Module) else _name_of(model)
        self.graph = Graph(f"forward of {name}", depth=depth)
        self._model = model
        self._timed = timed
        self._places: dict[int, _Place] = {}
        self._modules: list[tuple[Any, str, str]] = []  # that run now: module, path, group
        self._paths: dict[int, str] = {}
        self._calls: Counter[str] = Counter()  # by the key of the group
        self._members: dict[int, tuple[str, str, Tensor]] = {}  # name, kind, tensor by array
        self._backends: dict[type, Any] = {}  # by the type of their arrays
        self._inside = False
        self._newest: Node | None = None
        self._last: tuple[Node, tuple, tuple] | None = None  # node, inputs, results of the last op
        self._thread = threading.get_ident()
        if isinstance(model, Module):
            self._paths = {id(module): path for path, module in [*model.named_modules()][::-1]}
            self._learn(model, "", recurse=True)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While this is open, what runs becomes nodes."""
        with ExitStack() as stack:
            stack.enter_context(lying_as_told())
            hooks.add(self._wrap)
            stack.callback(hooks.remove, self._wrap)
            for table, hook in (
                (hooks.writers, self._writing),
                (hooks.functions, self._function),
                (creation_hooks, self._recorded),
            ):
                table.append(hook)
                stack.callback(table.remove, hook)
            stack.callback(register_module_forward_pre_hook(self._enter).remove)
            stack.callback(register_module_forward_hook(self._leave, always_call=True).remove)
            yield

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
            self._backends[storage.backend.array_type] = storage.backend
            node = self._add(name, "input", storage.backend, storage.array)
            self._put(storage.array, node, _Memory())

    def add_outputs(self, results: Any) -> None:
        """A node for every tensor that the model gave."""
        for name, tensor in _tensors({"output": results}):
            storage = tensor._storage
            sources = self._read(storage.array, storage.backend)
            node = self._add(name, "output", storage.backend, storage.array, sources)
            node.group = ""

    # -- modules ------------------------------------------------------------------------------

    def _enter(self, module: Any, args: Any) -> None:
        if threading.get_ident() != self._thread or self._inside:
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
        if threading.get_ident() != self._thread or self._inside:
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
                    self._backends[storage.backend.array_type] = storage.backend
                    self._members.setdefault(id(storage.array), (name, kind, tensor))

    # -- operations ---------------------------------------------------------------------------

    def _wrap(self, op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arrays: Any, **parameters: Any) -> Any:
            if self._inside or threading.get_ident() != self._thread:
                return call(*arrays, **parameters)
            given = tuple(_arrays(arrays))
            sources, numbers = self._sources(given, backend)
            result, took = self._watched(lambda: call(*arrays, **parameters), backend)
            several = type(result) is tuple
            made = tuple([_as_array(x, backend) for x in (result if several else (result,))])
            if any([x is y for x in made for y in given if x is not None]):  # nothing was computed
                return result
            node = self._add_op(op.name, backend, sources, made, {**parameters, **numbers}, took)
            memory = None
            if op.view:
                node.view = True
                place = self._place(given[0])
                memory = None if place is None else place.memory
                self._mark(sources[:1], node, "view")
            for array in made:
                if array is not None:
                    self._put(array, node, memory or _Memory())
            self._last = (node, given, made)
            return made if several else made[0]

        return run

    def _function(
        self, name: str, call: Callable[[], tuple], tensors: tuple, parameters: dict
    ) -> tuple:
        if self._inside or threading.get_ident() != self._thread:
            return call()
        backend = next(x for x in tensors if x is not None)._storage.backend
        given = tuple([x._storage.array for x in tensors if x is not None])
        sources, numbers = self._sources(given, backend)
        results, took = self._watched(call, backend)
        made = tuple([result._storage.array for result in results])
        node = self._add_op(name, backend, sources, made, {**parameters, **numbers}, took)
        for array in made:
            self._put(array, node, _Memory())
        return results

    def _writing(self, op: Any, call: Callable[[], None], arrays: tuple, parameters: dict) -> None:
        target, *others = arrays
        backend = self._backends.get(type(target))
        if self._inside or threading.get_ident() != self._thread or backend is None:
            return call()
        given = tuple(_arrays(others))
        before, _ = self._sources((target,), backend)
        last = self._last
        if op is None and last is not None and _is_in(target, last[1]) and _is_in(given, last[2]):
            node = last[0]  # what was just computed from the target is copied into it
            call()
            if target is last[1][0]:
                node.label += "_"
                node.inplace = True
        else:
            sources, numbers = self._sources(given, backend)
            _, took = self._watched(call, backend)
            name = "copy" if op is None or op.name == "copy_into" else op.name
            node = self._add_op(
                name, backend, before + sources, (target,), {**parameters, **numbers}, took
            )
            node.label += "_"
            node.inplace = True
        self._mark(before, node, "inplace")
        place = self._place(target)
        memory = _Memory() if place is None else place.memory
        memory.version += 1
        memory.writer = node.key
        node.notes["version"] = f"{memory.version} of this memory"
        self._put(target, node, memory)

    def _recorded(self, made: Any) -> None:
        """Note the number of the autograd node of the newest operation."""
        node = self._newest
        if self._inside or threading.get_ident() != self._thread or node is None:
            return
        if node.sequence < 0:
            node.sequence = made.sequence

    def _watched(self, call: Callable[[], Any], backend: Any) -> tuple[Any, float | None]:
        """A call's result and, if times are wanted, how many microseconds it took."""
        self._inside = True
        try:
            if not self._timed:
                return call(), None
            backend.synchronize()
            start = perf_counter()
            result = call()
            backend.synchronize()
            return result, (perf_counter() - start) * 1e6
        finally:
            self._inside = False

    # -- arrays -------------------------------------------------------------------------------

    def _sources(self, arrays: Iterable[Any], backend: Any) -> tuple[list[str], dict[str, Any]]:
        """The nodes that made some arrays, and the values of those that are plain numbers."""
        self._backends[backend.array_type] = backend
        sources: list[str] = []
        numbers: list[Any] = []
        for array in arrays:
            found = self._read(array, backend)
            if not found:
                numbers.append(_number(array, backend))
            sources += found
        return sources, {"number": numbers[0] if len(numbers) == 1 else tuple(numbers)} if (
            numbers
        ) else {}

    def _read(self, array: Any, backend: Any) -> list[str]:
        """The nodes that an array depends on; none for a number that no operation made."""
        place = self._place(array)
        if place is None:
            name, kind = "constant", "constant"
            for module, path, _ in [(self._model, "", ""), *self._modules]:
                if id(array) not in self._members and isinstance(module, Module):
                    self._learn(module, path, recurse=False)
            member = self._members.get(id(array))
            if member is not None and member[2]._storage.array is array:
                name, kind = member[:2]
            elif not array.shape:
                return []
            node = self._add(name, kind, backend, array)
            node.parameters = array.size if kind == "parameter" else 0
            place = self._put(array, node, _Memory())
        if place.version == place.memory.version:
            return [place.node]
        return [place.memory.writer] + [place.node] * place.view

    def _place(self, array: Any) -> _Place | None:
        """What is known of an array, or else of the one whose memory it has."""
        while array is not None:
            place = self._places.get(id(array))
            if place is not None and place.reference() is array:
                return place
            array = array.data if isinstance(array, Batched) else getattr(array, "base", None)
        return None

    def _put(self, array: Any, node: Node, memory: _Memory) -> _Place:
        if isinstance(array, Batched):  # what comes out of `vmap` is the array of all samples
            self._put(array.data, node, memory)
        place = self._places[id(array)] = _Place(array, node.key, memory, node.view)
        return place

    # -- the graph ----------------------------------------------------------------------------

    def _add_op(
        self,
        name: str,
        backend: Any,
        sources: list[str],
        made: tuple,
        parameters: dict[str, Any],
        took: float | None,
    ) -> Node:
        arrays = [array for array in made if array is not None]
        node = self._add(name, "op", backend, arrays[0] if arrays else None, sources)
        node.op, node.time = name, took
        self._newest = node
        if len(arrays) > 1:
            node.notes["outputs"] = ", ".join([wording.shape(x.shape) for x in arrays])
            node.size = sum([_size(x, backend) for x in arrays])
        for key, value in parameters.items():
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


def _arrays(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays among an operation's arguments, which may be lists of them."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _arrays(value)
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            yield value


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


def _as_array(value: Any, backend: Any) -> Any:
    """A number that an operation gave as the array that it will be a tensor of."""
    if value is None or type(value) is backend.array_type:
        return value
    return backend.asarray(value)


def _is_in(arrays: Any, others: tuple) -> bool:
    arrays = arrays if isinstance(arrays, tuple) else (arrays,)
    return bool(arrays) and any([x is arrays[0] for x in others])


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
