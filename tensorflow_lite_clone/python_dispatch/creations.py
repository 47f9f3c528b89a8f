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
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.interception import around_intercepted, intercept, release
from tensorflow_lite_clone.core.torch_function import active_modes
from tensorflow_lite_clone.python_dispatch.calls import call
from tensorflow_lite_clone.tensor import Tensor

_Normalizer = Callable[[tuple, dict[str, Any]], tuple[str, tuple, dict[str, Any]]]

#: Keywords of creation that say nothing about the operation.
_DROPPED = ("requires_grad", "out", "names")


def _size(args: tuple, kwargs: dict[str, Any]) -> list[int]:
    """The size among a call's arguments: a sequence, numbers one by one, or a keyword."""
    if not args:
        return list(kwargs.pop("size"))
    first = args[0]
    return list(first) if isinstance(first, tuple | list) else list(args)


def _of_size(overload: str) -> _Normalizer:
    return lambda args, kwargs: (overload, (_size(args, kwargs),), kwargs)


def _full(args: tuple, kwargs: dict[str, Any]) -> tuple[str, tuple, dict[str, Any]]:
    value = args[1] if len(args) > 1 else kwargs.pop("fill_value")
    return "full", (_size(args[:1], kwargs), value), kwargs


def _by_position(names: str, *overloads: str) -> _Normalizer:
    """Of a function whose overloads take one argument more each; keywords become positions."""

    def normalize(args: tuple, kwargs: dict[str, Any]) -> tuple[str, tuple, dict[str, Any]]:
        values = [*args, *(kwargs.pop(name) for name in names.split() if name in kwargs)]
        overload = overloads[min(len(values), len(overloads)) - 1]
        return overload, tuple(values), kwargs

    return normalize


def _arange(args: tuple, kwargs: dict[str, Any]) -> tuple[str, tuple, dict[str, Any]]:
    values = list(args)
    if "start" in kwargs or "end" in kwargs:
        start = values[0] if values else kwargs.pop("start", 0)
        kwargs.pop("start", None)
        values = [start, kwargs.pop("end") if "end" in kwargs else values[1], *values[2:]]
    if "step" in kwargs:
        values = [*([0] if len(values) == 1 else []), *values, kwargs.pop("step")]
    overload = ("arange", "arange.start", "arange.start_step")[len(values) - 1]
    return overload, tuple(values), kwargs


def _randint(args: tuple, kwargs: dict[str, Any]) -> tuple[str, tuple, dict[str, Any]]:
    values = list(args)
    low = [kwargs.pop("low")] if "low" in kwargs else []
    high = [kwargs.pop("high")] if "high" in kwargs else []
    size = [kwargs.pop("size")] if "size" in kwargs else []
    *bounds, shape = [*low, *values, *high, *size]
    overload = "randint" if len(bounds) == 1 else "randint.low"
    return overload, (*bounds, list(shape)), kwargs


def _like(name: str) -> _Normalizer:
    def normalize(args: tuple, kwargs: dict[str, Any]) -> tuple[str, tuple, dict[str, Any]]:
        return name, args, kwargs

    return normalize


def _new(name: str) -> _Normalizer:
    def normalize(args: tuple, kwargs: dict[str, Any]) -> tuple[str, tuple, dict[str, Any]]:
        x, *rest = args
        if name == "new_full":
            value = rest[1] if len(rest) > 1 else kwargs.pop("fill_value")
            return name, (x, _size(tuple(rest[:1]), kwargs), value), kwargs
        return name, (x, _size(tuple(rest), kwargs)), kwargs

    return normalize


#: Function of ``torch``, by name, and how a call of it is one of aten's.
_FUNCTIONS: dict[str, _Normalizer] = {
    "zeros": _of_size("zeros"),
    "ones": _of_size("ones"),
    "empty": _of_size("empty.memory_format"),
    "rand": _of_size("rand"),
    "randn": _of_size("randn"),
    "full": _full,
    "arange": _arange,
    "randint": _randint,
    "eye": _by_position("n m", "eye", "eye.m"),
    "linspace": _by_position("start end steps", "linspace"),
    "logspace": _by_position("start end steps base", "logspace"),
    "randperm": _by_position("n", "randperm"),
    "scalar_tensor": _by_position("s", "scalar_tensor"),
    "tril_indices": _by_position("row col offset", "tril_indices"),
    "triu_indices": _by_position("row col offset", "triu_indices"),
}
#: Functions that give a tensor like another one: of the namespace or methods.
_OF_ANOTHER: dict[str, _Normalizer] = {
    **{
        name: _like(name)
        for name in "zeros_like ones_like empty_like full_like rand_like randn_like".split()
    },
    **{name: _new(name) for name in "new_zeros new_ones new_empty new_full".split()},
}
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


def _creation(normalize: _Normalizer, of_another: bool) -> _Handler:
    def create(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        requires_grad = kwargs.get("requires_grad", False)
        kwargs = {name: x for name, x in kwargs.items() if x is not None and name not in _DROPPED}
        name, args, kwargs = normalize(args, kwargs)
        if not of_another or "device" in kwargs:
            kwargs["device"] = Device(kwargs.get("device") or get_default_device())
        order = ("dtype", "layout", "device")
        first: dict[str, Any] = {key: kwargs.pop(key) for key in order if key in kwargs}
        first["pin_memory"] = kwargs.pop("pin_memory", False)
        tensor = call(name, *args, **first, **kwargs)
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
    for name, normalize in _FUNCTIONS.items():
        found[f"torch.{name}"] = _creation(normalize, of_another=False)
    for name, normalize in _OF_ANOTHER.items():
        for prefix in ("torch", "torch.Tensor"):
            found[f"{prefix}.{name}"] = _creation(normalize, of_another=True)
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
