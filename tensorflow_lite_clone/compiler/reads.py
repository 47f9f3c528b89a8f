"""What a function's code names: globals, closure variables, attributes, and what is in those."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections import OrderedDict, defaultdict
from typing import Any

from tensorflow_lite_clone.amp.grad_scaler import GradScaler
from tensorflow_lite_clone.compiler.signature import SCALARS, UnsuitableError
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.optim.lr_scheduler import LRScheduler
from tensorflow_lite_clone.tensor import Tensor

_DEPTH = 4  # containers, objects and functions that are looked into from where one is named
_LONGEST = 1000  # container: of longer ones only the length is looked at
_CONTAINERS = (list, tuple, dict, OrderedDict, defaultdict)
_PACKAGE = __name__.partition(".")[0]
_OF_ATTRIBUTES = frozenset("LOAD_ATTR LOAD_METHOD LOAD_SUPER_ATTR STORE_ATTR DELETE_ATTR".split())
_OF_GLOBALS = frozenset(
    "LOAD_GLOBAL LOAD_NAME LOAD_FROM_DICT_OR_GLOBALS STORE_GLOBAL DELETE_GLOBAL".split()
)
_NOT_OF_USE = frozenset(
    "__init__ __new__ __post_init__ __del__ __repr__ __str__ __getstate__ __setstate__ "
    "__reduce__ __reduce_ex__ __copy__ __deepcopy__ __init_subclass__".split()
)
_FOREIGN = sys.stdlib_module_names | {_PACKAGE, "torch", "torchvision", "numpy", "cupy"}


def is_unchanged(now: Any, value: Any) -> bool:
    """Whether a variable still holds what it did: the same object, or an equal plain value."""
    if now is value:
        return True
    kind = value.__class__
    return now.__class__ is kind and kind in SCALARS and bool(now == value)


class _ContainerGuard:
    """The values of a list or of a mapping's keys, and a quick look whether they are the same."""

    __slots__ = ("_ids", "_keys", "_owner", "values")

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._keys = tuple(owner) if isinstance(owner, dict) else None
        self.values = self._now()
        self._ids = list(map(id, self.values))

    def _now(self) -> list[Any]:
        return list(self._owner if self._keys is None else self._owner.values())

    def is_valid(self) -> bool:
        owner = self._owner
        if list(map(id, owner if self._keys is None else owner.values())) == self._ids:
            return self._keys is None or tuple(owner) == self._keys
        if len(owner) != len(self.values):
            return False
        if self._keys is not None and tuple(owner) != self._keys:
            return False
        return all(map(is_unchanged, self._now(), self.values))

    def restore(self) -> None:
        if self._keys is None:
            self._owner[:] = self.values
        else:
            self._owner.clear()
            self._owner.update(zip(self._keys, self.values))


class ReadSet:
    """What functions read by name, as it is now; `modules` are those among it, with their parts.

    Followed are functions, lists, tuples, dicts, and of other objects the attributes that the code
    names; Python modules and the functions of libraries are not.
    """

    def __init__(self) -> None:
        self.modules: dict[int, Module] = {}
        self.tensors: list[tuple[Tensor, Any, Any]] = []
        self._names: list[tuple[Any, str, Any]] = []
        self._cells: list[tuple[Any, Any]] = []
        self._contents: list[_ContainerGuard] = []
        self._lengths: list[tuple[Any, int]] = []
        self._seen: dict[Any, Any] = {}

    # -- what there is ------------------------------------------------------------------------

    def function(self, function: Any, depth: int = _DEPTH) -> None:
        """Follow what a function names."""
        if isinstance(function, functools.partial):
            code = getattr(getattr(function.func, "__func__", function.func), "__code__", None)
            names = frozenset() if code is None else attributes_in(code)
            for value in (function.args, function.keywords, function.func):
                self.value(value, names, depth)
            return
        if isinstance(function, Module):
            self.value(function, frozenset(), depth)
            return
        function = getattr(function, "_function", function)  # one that is compiled itself
        owner = getattr(function, "__self__", None)
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is None and hasattr(type(function).__call__, "__code__"):
            owner, function = function, type(function).__call__
            code = function.__code__
        function = getattr(function, "__func__", function)
        if code is None or self._is_known((id(function), id(owner)), (function, owner)):
            return
        names = attributes_in(code)
        space = function.__globals__
        for name in globals_in(code):
            if name in space:
                self._named(space, name, names, depth)
        if owner is not None:
            self.value(owner, names, depth)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.value(default, names, depth - 1)
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self._cells.append((cell, value))
            self.value(value, names, depth)

    def _named(self, space: Any, name: str, names: frozenset[str], depth: int) -> None:
        value = space[name]
        if not isinstance(value, types.ModuleType):
            if not self._is_known((id(space), name), space):
                self._names.append((space, name, value))
            self.value(value, names, depth)

    def value(self, value: Any, names: frozenset[str], depth: int) -> None:
        """Follow a value that code with these names can reach."""
        kind = value.__class__
        if kind in SCALARS or depth < 0:
            return
        if isinstance(value, Tensor):
            if not self._is_known(id(value), value):
                self.tensors.append((value, value._storage.array, value._edge))
        elif isinstance(value, Module):
            for module in value.modules():
                self.modules[id(module)] = module
        elif kind in _CONTAINERS:
            if not self._is_known((id(value), names), value):
                self._container(value, names, depth)
        elif isinstance(value, (types.FunctionType, types.MethodType)):
            if not is_foreign(value):
                self.function(value, depth - 1)
        elif isinstance(value, functools.partial) or hasattr(value, "_function"):
            self.function(value, depth - 1)
        elif hasattr(value, "__dict__") and not self._is_known((id(value), names), value):
            space = vars(value)
            if isinstance(value, (GradScaler, LRScheduler)):
                names = frozenset([name for name in space if not isinstance(space[name], Tensor)])
            elif type(value).__module__.startswith((_PACKAGE, "torch.")):
                names = names & {"param_groups"}
            elif not isinstance(value, type):
                for name in _special_methods(type(value)):
                    self._of_class(value, name, names, depth - 1)
            for name in names:
                if name in space:
                    self._named(space, name, names, depth - 1)
                elif not isinstance(value, type):
                    self._of_class(value, name, names, depth - 1)

    def _of_class(self, value: Any, name: str, names: frozenset[str], depth: int) -> None:
        """Follow a method or an attribute that a value has from its class."""
        for kind in type(value).__mro__:
            found = vars(kind).get(name)
            method = _method_in(found)
            if method is not None:
                if not is_foreign(method):
                    self.function(types.MethodType(method, value), depth)
                return
            if found is not None:
                self._named(vars(kind), name, names, depth)
                return

    def _container(self, value: Any, names: frozenset[str], depth: int) -> None:
        if len(value) > _LONGEST:
            self._lengths.append((value, len(value)))
            return
        if value.__class__ is not tuple:
            self._contents.append(_ContainerGuard(value))
        for entry in list(value.values() if isinstance(value, dict) else value):
            self.value(entry, names, depth - 1)

    def _is_known(self, key: Any, value: Any) -> bool:
        known = key in self._seen
        self._seen[key] = value  # kept, so that its id is nobody else's
        return known

    # -- whether it is the same ---------------------------------------------------------------

    def is_valid(self) -> bool:
        """Whether everything is as it was."""
        for tensor, array, edge in self.tensors:
            if tensor._storage.array is not array or tensor._edge is not edge:
                return False
        for space, name, value in self._names:
            now = space.get(name, self)
            if now is not value and not is_unchanged(now, value):
                return False
        for cell, value in self._cells:
            try:
                now = cell.cell_contents
            except ValueError:
                return False
            if now is not value and not is_unchanged(now, value):
                return False
        for values in self._contents:
            if not values.is_valid():
                return False
        for value, length in self._lengths:  # noqa: SIM110  all() would cost more
            if len(value) != length:
                return False
        return True

    def check(self) -> None:
        """After a capture: UnsuitableError when it has changed what a replay cannot change."""
        for space, name, value in self._names:
            if not is_unchanged(space.get(name, self), value):
                raise UnsuitableError(f"it changes the variable '{name}'")
        for cell, value in self._cells:
            if not is_unchanged(cell.cell_contents, value):
                raise UnsuitableError("it changes a variable of the function around it")
        if not all([values.is_valid() for values in self._contents]):
            raise UnsuitableError("it changes a list or dict")

    def restore(self) -> None:
        """Put back variables, attributes, and what was in lists and dicts."""
        for space, name, value in self._names:
            if isinstance(space, dict) and not is_unchanged(space.get(name, self), value):
                space[name] = value
        for cell, value in self._cells:
            cell.cell_contents = value
        for values in self._contents:
            if not values.is_valid():
                values.restore()


def _method_in(attribute: Any) -> types.FunctionType | None:
    """The function that reading or calling an attribute of a class runs."""
    if isinstance(attribute, property):
        attribute = attribute.fget
    elif isinstance(attribute, functools.cached_property):
        attribute = attribute.func
    elif isinstance(attribute, (classmethod, staticmethod)):
        attribute = attribute.__func__
    return attribute if isinstance(attribute, types.FunctionType) else None


def _special_methods(kind: type) -> list[str]:
    """Methods that code runs without naming them: of calls, operators, ``x[i]``, loops, blocks."""
    return [
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if name[:2] == name[-2:] == "__"
        and name not in _NOT_OF_USE
        and isinstance(value, types.FunctionType)
        and not is_foreign(value)
    ]


def attributes_in(code: types.CodeType) -> frozenset[str]:
    """The attributes that code and the functions and classes inside it name."""
    return _names_in(code)[0]


def globals_in(code: types.CodeType) -> frozenset[str]:
    """The globals that code and the functions and classes inside it read or assign.

    In the body of a class a name is the class's own once the body has assigned it.
    """
    return _names_in(code)[1]


@functools.lru_cache(4096)
def _names_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Attributes and globals: both, and the names of imports and locals, are in `co_names`."""
    attributes: set[str] = set()
    variables: set[str] = set()
    own: set[str] = set()
    for instruction in dis.get_instructions(code):
        operation, name = instruction.opname, instruction.argval
        if operation in _OF_ATTRIBUTES:
            attributes.add(name)
        elif operation == "STORE_NAME":
            own.add(name)
        elif operation in _OF_GLOBALS and name not in own:
            variables.add(name)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names_in(constant)
            attributes |= inner[0]
            variables |= inner[1]
    return frozenset(attributes), frozenset(variables)


def names_of(kind: type) -> frozenset[str]:
    """The attributes that methods of a class name, but for its constructor and libraries'."""
    names: frozenset[str] = frozenset()
    for name, value in [item for base in kind.__mro__ for item in vars(base).items()]:
        if isinstance(value, types.FunctionType) and name != "__init__" and not is_foreign(value):
            names |= attributes_in(value.__code__)
    return names


def is_foreign(function: Any) -> bool:
    """Whether a function is a library's, by the module where it was defined."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] in _FOREIGN
