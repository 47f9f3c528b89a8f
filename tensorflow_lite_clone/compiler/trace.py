"""What a function does while it runs: what it writes, which modules and optimizers it calls."""

from __future__ import annotations

import contextlib
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any, Self

from tensorflow_lite_clone.autograd import engine, node
from tensorflow_lite_clone.nn.modules.hooks import register_module_forward_pre_hook
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.trace import Observer


class Trace(Observer):
    """What this thread does while this is entered.

    `leaves`: tensors that took part in graphs as leaves and outlived what made them (known at the
    end), by their ids like the others; `modules` that were called; `optimizers` that stepped;
    `callables`: functions among the arguments; `written`: the storages that were written in place,
    and how often; `passes`: the number of backward passes. `refused` says why none of it may be
    captured, or is None.
    """

    def __init__(self) -> None:
        self.leaves: dict[int, Tensor] = {}
        self.modules: dict[int, Module] = {}
        self.optimizers: dict[int, Optimizer] = {}
        self.written: weakref.WeakKeyDictionary[Storage, int] = weakref.WeakKeyDictionary()
        self.callables: list[Any] = []
        self.passes = 0
        self.refused: str | None = None
        self._arrays: dict[int, weakref.ref[Any]] = {}
        self._leaves: dict[int, weakref.ref[Tensor]] = {}

    def __enter__(self) -> Self:
        self._before = engine.current.passes
        self._drawn = _host_draws()
        return super().__enter__()

    def registrations(self) -> Iterator[Any]:
        """Follow calls of modules and steps of optimizers."""
        yield register_module_forward_pre_hook(self._called)
        yield register_optimizer_step_pre_hook(self._stepped)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.passes = engine.current.passes - self._before
        if _host_draws() != self._drawn:
            self.refused = self.refused or "it draws random numbers of Python or NumPy"
        del self._drawn
        for reference in self._leaves.values():
            tensor = reference()
            if tensor is not None:
                self.leaves[id(tensor)] = tensor
        self._leaves.clear()

    def add_roots(self, function: Any, arguments: Any) -> None:
        """Note modules and functions among the arguments, and forget leaves there."""
        for value in (getattr(function, "__self__", None), *arguments):
            if isinstance(value, Module):
                for module in value.modules():
                    self.modules[id(module)] = module
            elif isinstance(value, Tensor):
                self.leaves.pop(id(value), None)
            elif isinstance(value, (types.FunctionType, types.MethodType)):
                self.callables.append(value)

    def arrays(self) -> list[Any]:
        """The arrays that ops read and that are still alive: their memory must stay."""
        found = [reference() for reference in self._arrays.values()]
        return [array for array in found if array is not None]

    def _called(self, module: Module, args: Any) -> None:
        if self.is_here():
            self.modules[id(module)] = module

    def _stepped(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.is_here():
            self.optimizers[id(optimizer)] = optimizer

    def on_memory_write(self, root: Storage) -> None:
        """Count a write."""
        if self.is_here():
            self.written[root] = self.written.get(root, 0) + 1

    def on_node(self, made: Any) -> None:
        """Note the leaves that a node hands gradients to."""
        if self.is_here():
            for edge in made.edges:
                if edge is not None and type(edge[0]) is node.Leaf:
                    tensor = edge[0].reference()
                    if tensor is not None:
                        self._leaves[id(tensor)] = edge[0].reference

    def on_op(self, op: Any, backend: Any, arrays: tuple, parameters: Any, result: Any) -> None:
        """Note the arrays that an op has read."""
        if self.is_here():
            for array in arrays:
                if array is not None and array.__class__ is not list:
                    self._note(array)

    def _note(self, array: Any) -> None:
        key = id(array)
        known = self._arrays.get(key)
        if known is None or known() is not array:
            with contextlib.suppress(TypeError):  # a number
                self._arrays[key] = weakref.ref(array)


def _host_draws() -> tuple:
    """Where Python's and NumPy's streams of random numbers are, as far as somebody draws them."""
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    states = () if numpy is None else numpy.get_state()
    places = [x.tobytes() if hasattr(x, "tobytes") else x for x in states]
    return None if python is None else python.getstate(), *places
