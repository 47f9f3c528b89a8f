"""The pair's arrays and backends, and which of the two is current."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.numpy import primitives as numpy_kit
from tensorflow_lite_clone.backends.numpy.backend import NATIVE
from tensorflow_lite_clone.backends.numpy.random import Generator
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, PRIMITIVES
from tests.strict_backend.array import StrictArray, unwrap
from tests.strict_backend.backend import StrictBackend


class _Current:
    index = 0


current = _Current()


@contextmanager
def device(index: int) -> Iterator[None]:
    """A block in which a device is the current one."""
    before, current.index = current.index, index
    try:
        yield
    finally:
        current.index = before


class PairArray(StrictArray):
    """A strict array of one of the two devices."""

    __slots__ = ("home",)

    def __init__(self, array: Any, home: int | None = None) -> None:
        super().__init__(array)
        self.home = current.index if home is None else home

    @property
    def T(self) -> PairArray:
        return PairArray(self._hidden.T, self.home)

    @property
    def mT(self) -> PairArray:
        return PairArray(self._hidden.mT, self.home)

    def __getitem__(self, index: Any) -> PairArray:
        entries = index if type(index) is tuple else (index,)
        if any(isinstance(entry, (StrictArray, list)) for entry in entries):
            _check(self, index)
        return PairArray(self._hidden[unwrap(index)], self.home)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(self, index, value)
        self._hidden[unwrap(index)] = unwrap(value)


def _check(*values: Any) -> None:
    for value in values:
        if isinstance(value, (tuple, list)):
            _check(*value)
        elif isinstance(value, PairArray):
            assert value.home == current.index, (
                f"an array of pair:{value.home} was used while pair:{current.index} is current"
            )


def _rewrap(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return PairArray(value)
    if isinstance(value, (tuple, list)):
        return (
            type(value)([_rewrap(v) for v in value])
            if type(value) in (tuple, list)
            else (tuple([_rewrap(v) for v in value]))
        )
    return value


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function over NumPy arrays on arrays of the current device."""
    _check(*args, *kwargs.values())
    given = {name: unwrap(value) for name, value in kwargs.items()}
    return _rewrap(function(*unwrap(args), **given))


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def apply(self: PairArray, other: Any) -> Any:
        if not isinstance(other, (PairArray, bool, int, float, complex)):
            return NotImplemented
        return run(function, other, self) if reflected else run(function, self, other)

    return apply


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: PairArray, other: Any) -> PairArray:
        _check(self, other)
        self._hidden[...] = function(self._hidden, unwrap(other))
        return self

    return apply


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    _word = {"and": "and_", "or": "or_"}.get(_name, _name)
    setattr(PairArray, f"__{_name}__", _operator(getattr(operator, _word), False))
    setattr(PairArray, f"__r{_name}__", _operator(getattr(operator, _word), True))
    setattr(PairArray, f"__i{_name}__", _in_place(getattr(operator, _word)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(PairArray, f"__{_name}__", _operator(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs", "invert"):
    _function = getattr(operator, _name)
    setattr(PairArray, f"__{_name}__", lambda self, function=_function: run(function, self))
PairArray.__hash__ = object.__hash__  # type: ignore[method-assign]


class _Lifted:
    """The functions of a module over the pair's arrays; constants and dtypes as they are."""

    def __init__(self, module: Any, names: frozenset[str] | None) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (self._names is not None and name not in self._names):
            raise AttributeError(f"the pair has no '{name}'")
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return _Lifted(value, None)
        if isinstance(value, type) or not callable(value):
            return value
        return lambda *args, **kwargs: run(value, *args, **kwargs)


class _Generator:
    """The CPU's random streams, one on each device, drawn from anywhere."""

    def __init__(self, index: int) -> None:
        self._source, self._index = Generator(), index

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._source, name)
        if not callable(value):
            return value

        def draw(*args: Any, **kwargs: Any) -> Any:
            with device(self._index):
                return run(value, *args, **kwargs)

        return draw

    def into(self, array: Any) -> Any:
        return self

    def manual_seed(self, seed: int) -> Any:
        self._source.manual_seed(seed)
        return self

    def get_state(self) -> Any:
        return self._source.get_state()

    def set_state(self, state: Any) -> None:
        self._source.set_state(state)


backends.register("pair", lambda index: backend(index))  # before its device is named


class PairBackend(StrictBackend):
    """One of the two devices."""

    name = "pair"
    xp = _Lifted(np, PRIMITIVES.keys() | CONSTANTS)
    primitives = _Lifted(numpy_kit, None)
    array_type = PairArray
    alone = False

    def __init__(self, index: int) -> None:
        self.device = Device("pair", index)
        self.index = index
        super().__init__()
        self.generator = _Generator(index)

    def guarded(self, call: Any) -> Any:
        if not callable(call) or isinstance(call, type):
            return call

        def on_device(*args: Any, **kwargs: Any) -> Any:
            with device(self.index):
                return call(*args, **kwargs)

        return on_device

    def make_generator(self) -> Any:
        return _Generator(self.index)

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        with device(self.index):
            return run(np.asarray, data, None if dtype is None else NATIVE[dtype])

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        return PairArray(np.array(array), self.index)

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        assert array.home == self.index
        return np.array(array._hidden)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return PairArray(np.full(shape, 7, NATIVE[dtype]), self.index)

    def write(self, target: Any, value: Any) -> None:
        with device(self.index):
            target[...] = value

    def constant(self, value: complex, native_dtype: Any) -> Any:
        made = super().constant(value, native_dtype)
        return PairArray(made._hidden, self.index)

    def owns_memory(self, array: Any) -> bool:
        # a gradient may be on its way to another device
        return super().owns_memory(array) and array.home == self.index


_backends = [PairBackend(0), PairBackend(1)]


def backend(index: int) -> Backend:
    """One of the two, -1 being the current one."""
    return _backends[current.index if index < 0 else index]
