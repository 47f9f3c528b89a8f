"""Containers: modules and parameters held in sequences and dictionaries."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.modules.module import Module, _addindent
from tensorflow_lite_clone.nn.modules.registry import typename
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """A module with the given modules as children: PyTorch's old name for that."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(index: Any, length: int) -> int:
    """`index` as a position from 0; IndexError outside of -length .. length - 1."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _ModuleSequence(Module):
    """What `Sequential` and `ModuleList` share: children in order, by position."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def _refill(self, children: Iterable[Module | None]) -> None:
        """Let these be the children, called "0", "1", ..."""
        children = list(children)
        self._modules.clear()
        for position, module in enumerate(children):
            self.add_module(str(position), module)

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        names = list(self._modules)
        if not isinstance(idx, slice):
            idx = _position(idx, len(names))
        gone = names[idx] if isinstance(idx, slice) else [names[idx]]
        for name in gone:
            delattr(self, name)
        self._refill(self)

    def pop(self, key: int | slice) -> Module:
        """Remove the child at a position (or a slice of them) and return it."""
        module = self[key]  # type: ignore[index]
        del self[key]
        return module

    def append(self, module: Module) -> Self:
        """Add a child at the end."""
        self.add_module(str(len(self)), module)
        return self


class Sequential(_ModuleSequence):
    """Modules that run one after the other, each on what the one before returned.

    ``Sequential(a, b)`` names them "0", "1"; ``Sequential(OrderedDict(first=a))`` as it says.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def forward(self, input: Any) -> Any:
        """Run the children in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_require_sequential(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(_require_sequential(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*[module for _ in range(self._times(other)) for module in self])

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        children = list(self)
        for _ in range(self._times(other) - 1):
            self.extend(children)
        return self

    def _times(self, factor: Any) -> int:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")
        return factor

    def insert(self, index: int, module: Module) -> Self:
        """Add a child before the one at `index`, -len to len."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        children = list(self)
        children.insert(index, module)
        self._refill(children)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add children at the end."""
        for module in list(sequential):
            self.append(module)
        return self


def _require_sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )
    return other


class ModuleList(_ModuleSequence):
    """A list of modules; it has no forward of its own."""

    _get_abs_string_index = _ModuleSequence._name_at  # Pyro's lists look children up by it

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._modules[self._name_at(idx)]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Add a child before the one at `index`, as ``list.insert``."""
        children = list(self)
        children.insert(index, module)
        self._refill(children)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add children at the end."""
        _require_iterable("ModuleList.extend should be called with an iterable", modules)
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Children that follow each other and print alike are shown once, with their number."""
        runs: list[list] = []  # [first, last, text]
        for position, text in enumerate(repr(module) for module in self):
            if runs and runs[-1][2] == text:
                runs[-1][1] = position
            else:
                runs.append([position, position, text])
        if not runs:
            return f"{self._get_name()}()"
        lines = []
        for first, last, text in runs:
            shown = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append("\n  " + _addindent(shown + text, 2))
        return f"{self._get_name()}({''.join(lines)}\n)"


class ModuleDict(Module):
    """A dictionary of modules, in the order of insertion; it has no forward of its own."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all children."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the child `key` and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of name and child."""
        return self._modules.items()

    def values(self) -> Any:
        """The children."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the children of a mapping, or of an iterable of pairs."""
        for key, module in _pairs(modules, "ModuleDict", "ModuleDict"):
            self[key] = module


class ParameterList(Module):
    """A list whose tensors are parameters; other values are allowed and left alone."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(position)) for position in range(self._size)])

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return getattr(self, str(_position(idx, self._size)))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_position(idx, self._size)), _as_parameter(param))

    def append(self, value: Any) -> Self:
        """Add a value at the end; a tensor becomes a Parameter."""
        position = self._size
        self._size += 1
        self[position] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end; tensors become Parameters."""
        message = "ParameterList.extend should be called with an iterable"
        _require_iterable(message, values, but_not=Tensor)
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(
            f"  ({i}): {_describe(value, getattr(value, 'dtype', None))}"
            for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are parameters; other values are allowed and left alone.

    From a plain mapping the keys are taken sorted, from an OrderedDict in its order.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _require_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _require_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A ParameterDict of its own with the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`, set to `default` first if it was not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove `key` and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last pair and return it."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, key)
        return key, value

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return getattr(self, _require_key(key)) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict with `default` under each of `keys`."""
        return ParameterDict(OrderedDict((key, default) for key in keys))

    def keys(self) -> Any:
        """The keys, in order."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Take over the pairs of a mapping, or of an iterable of pairs."""
        pairs = _pairs(parameters, "ParametersDict", "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs)
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(
            f"  ({key}): {_describe(value, typename(value))}" for key, value in self.items()
        )

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        copy = self.copy()
        copy.update(OrderedDict(other.items()))
        return copy

    def __ror__(self, other: Any) -> Any:
        copy = other.copy()
        copy.update(self.items())
        return copy

    def __ior__(self, other: Any) -> Self:
        self.update(OrderedDict(other.items()))
        return self


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if type(value) is Tensor else value


def _require_key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key


def _describe(value: Any, tensor_type: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    word = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(length) for length in value.shape)
    where = f" (GPU {value.device.index or 0})" if value.is_cuda else ""
    return f"{word} containing: [{tensor_type} of size {size}{where}]"


def _require_iterable(message: str, values: Any, but_not: tuple | type = ()) -> None:
    if not isinstance(values, Iterable) or isinstance(values, but_not):
        raise TypeError(f"{message}, but got {type(values).__name__}")


def _pairs(source: Any, caller: str, name: str) -> Iterable[tuple[str, Any]]:
    """The pairs of a mapping or an iterable, checked as ``dict.update`` checks them."""
    message = f"{caller}.update should be called with an iterable of key/value pairs"
    _require_iterable(message, source)
    if isinstance(source, Mapping | ModuleDict | ParameterDict):
        return list(source.items())
    pairs = []
    for number, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{number} should be Iterable; is"
                + type(pair).__name__
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{name} update sequence element #{number} has length {len(pair)}; 2 is required"
            )
        pairs.append(pair)
    return pairs
