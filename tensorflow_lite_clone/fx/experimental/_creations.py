"""Calls below which modes with `__torch_dispatch__` see nothing: creations, random writes, reads.

A tensor that is made of numbers comes from no op, so a mode does not see it made (and a random
draw fills memory that is there). While `SeenCreations` is on, these calls go to the modes as the
operations that they are in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.overrides import TorchFunctionMode
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
        chosen = overloads[min(len(values), len(overloads)) - 1]
        return chosen, tuple(values), kwargs

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
_OF_DATA = ("tensor", "as_tensor", "asarray", "from_numpy", "new_tensor")
#: Methods that give a number.
_READS = ("item", "__bool__", "__int__", "__float__", "__complex__", "__index__", "tolist")


def _found(names: Any, *places: str) -> dict[Any, str]:
    """The functions of these names, which are keys of tables."""
    return {EXPORTS[place][name]: name for place in places for name in names if name in EXPORTS[place]}


class SeenCreations(TorchFunctionMode):
    """A block in which creations, random writes and reads of numbers go to modes as operations."""

    def __init__(self) -> None:
        super().__init__()
        self._creations = _found(_FUNCTIONS, "torch")
        self._of_another = _found(_OF_ANOTHER, "torch", "method")
        self._draws = _found(_DRAWS, "torch", "method")
        self._of_data = _found(_OF_DATA, "torch", "method")
        self._reads = _found(_READS, "method")

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in self._creations:
            return self._create(_FUNCTIONS[self._creations[func]], args, kwargs)
        if func in self._of_another:
            return self._create(_OF_ANOTHER[self._of_another[func]], args, kwargs, of_another=True)
        if func in self._draws and kwargs.get("generator") is None:
            kwargs.pop("generator", None)
            return call(_DRAWS[self._draws[func]], *args, **kwargs)
        if func in self._of_data:
            made = func(*args, **kwargs)
            known = [value for value in args if isinstance(value, Tensor)]
            return made if known else call("lift_fresh", made)
        if func in self._reads and args[0].numel() == 1:
            call("_local_scalar_dense", args[0])
            return func(*args)
        with self:
            return func(*args, **kwargs)

    def _create(
        self, normalize: _Normalizer, args: tuple, kwargs: dict[str, Any], of_another: bool = False
    ) -> Any:
        requires_grad = kwargs.get("requires_grad", False)
        kwargs = {
            name: value
            for name, value in kwargs.items()
            if name not in _DROPPED and (value is not None or name == "size")
        }
        name, args, kwargs = normalize(args, kwargs)
        if not of_another or "device" in kwargs:
            kwargs["device"] = Device(kwargs.get("device") or get_default_device())
        order = [key for key in ("dtype", "layout", "device") if key in kwargs]
        first = {key: kwargs.pop(key) for key in order}
        first["pin_memory"] = kwargs.pop("pin_memory", False)
        made = call(name, *args, **first, **kwargs)
        return made.requires_grad_() if requires_grad else made
