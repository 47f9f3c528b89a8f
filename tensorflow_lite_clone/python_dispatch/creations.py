"""Calls below which modes with `__torch_dispatch__` see nothing: creations, random writes, reads.

A tensor that is made of numbers comes from no op, so a mode does not see it made, and a random
draw fills memory that is there. In a block of `seen_creations` such calls of public functions, from
wherever, go to the modes as the operations that they are in PyTorch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import get_default_device
from tensorflow_lite_clone.core.interception import around_intercepted, intercept, release
from tensorflow_lite_clone.core.torch_function import active_modes
from tensorflow_lite_clone.python_dispatch.calls import call
from tensorflow_lite_clone.python_dispatch.schemas import resolve
from tensorflow_lite_clone.tensor import Tensor

#: Keywords of creation that say nothing about the operation.
_DROPPED = ("requires_grad", "out", "names")
#: Functions that make a tensor of numbers alone, and those that make one like another.
_CREATIONS = """
    arange empty eye full linspace logspace ones rand randint randn randperm scalar_tensor
    tril_indices triu_indices zeros
    """
_OF_ANOTHER = """
    empty_like full_like new_empty new_full new_ones new_zeros ones_like rand_like randn_like
    zeros_like
    """
#: Functions and methods that draw; they go to aten's operation with the arguments as they are.
_DRAWS = {
    "bernoulli": "bernoulli",
    "multinomial": "multinomial",
    "poisson": "poisson",
    "randint_like": "randint_like",
    "bernoulli_": "bernoulli_.float",
    "cauchy_": "cauchy_",
    "exponential_": "exponential_",
    "geometric_": "geometric_",
    "log_normal_": "log_normal_",
    "normal_": "normal_",
    "random_": "random_",
    "uniform_": "uniform_",
}
#: Functions that make a tensor of Python's data.
_OF_DATA = ("tensor", "as_tensor", "asarray")
#: Methods that give a number.
_READS = ("item", "__bool__", "__int__", "__float__", "__complex__", "__index__", "tolist")

_Handler = Callable[[Callable[..., Any], tuple, dict[str, Any]], Any]


def _creation(name: str) -> _Handler:
    def create(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        requires_grad = kwargs.get("requires_grad", False)
        kwargs = {key: x for key, x in kwargs.items() if x is not None and key not in _DROPPED}
        found = resolve(name, args, kwargs)
        if found is None:
            return function(*args, **kwargs)
        operation = found.with_placement(get_default_device())
        tensor = call(f"{name}.{found.overload}", *operation.args, **operation.kwargs)
        return tensor.requires_grad_() if requires_grad else tensor

    return create


def _draw(operation: str) -> _Handler:
    def draw(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        arguments = {name: x for name, x in kwargs.items() if name != "generator" or x is not None}
        return call(operation, *args, **arguments)

    return draw


def _of_data(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    tensor = function(*args, **kwargs)
    return tensor if any([isinstance(x, Tensor) for x in args[:1]]) else call("lift_fresh", tensor)


def _new_of_data(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    return call("lift_fresh", function(*args, **kwargs))


def _read(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    if args[0].numel() == 1:
        call("_local_scalar_dense", args[0])
    return function(*args, **kwargs)


def _handlers() -> dict[str, _Handler]:
    """What is done in place of functions, by their names."""
    found: dict[str, _Handler] = {}
    for name in (_CREATIONS + _OF_ANOTHER).split():
        found[f"torch.{name}"] = _creation(name)
    for name in _OF_ANOTHER.split():
        found[f"torch.Tensor.{name}"] = _creation(name)
    for name, operation in _DRAWS.items():
        for prefix in ("torch", "torch.Tensor"):
            found[f"{prefix}.{name}"] = _draw(operation)
    found.update({f"torch.{name}": _of_data for name in _OF_DATA})
    found["torch.Tensor.new_tensor"] = _new_of_data
    found.update({f"torch.Tensor.{name}": _read for name in _READS})
    return found


_HANDLERS = _handlers()


@contextmanager
def seen_creations() -> Iterator[None]:
    """A block in which this thread's modes see creations, random writes and reads of numbers."""
    thread = threading.get_ident()

    def run(function: Callable[..., Any], name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        handler = _HANDLERS.get(name)
        if handler is not None and mode.dispatch_modes and threading.get_ident() == thread:
            return handler(function, args, kwargs)
        outer = around_intercepted[around_intercepted.index(run) + 1 :]
        return outer[0](function, name, args, kwargs) if outer else function(*args, **kwargs)

    active_modes.append(None)  # so that calls of plain tensors come here too
    intercept()
    around_intercepted.insert(0, run)
    try:
        yield
    finally:
        around_intercepted.remove(run)
        release()
        active_modes.pop()
