"""Arguments checked against a function's own annotations, as PyTorch's argument parser does.

A parameter annotated ``dim: int`` refuses True and 1.5, ``input: Tensor`` refuses lists and NumPy
arrays, before any work is done; ``| None`` admits None. Parameters annotated otherwise are the
function's own business.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from numbers import Number, Real
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, as_dtype
from tensorflow_lite_clone.core.errors import NotStrided, size_error
from tensorflow_lite_clone.core.forwarding import (
    Missing,
    Parameters,
    forwarder,
    has_parameters,
    parameters_of,
)
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.core.older_orders import CROSSED, ORDERS, in_present_order

_LEAST, _LARGEST = -(1 << 63), (1 << 63) - 1  # of 64 bits
#: Classes of higher rooms that annotations name, or what tells their instances; entered by these.
classes: dict[str, Any] = {}


def _is_single(value: Any, kinds: str) -> bool:
    """Whether `value` is a tensor of one element without dimensions, of a dtype of `kinds`."""
    return isinstance(value, classes["Tensor"]) and not value.ndim and value.dtype.kind in kinds


def is_int(value: Any) -> bool:
    """Whether PyTorch takes `value` for an int: no bool, but a zero-dim tensor of integers."""
    if isinstance(value, classes["Tensor"]):
        return _is_single(value, "iu")
    return hasattr(value, "__index__") and not is_bool(value)


def expect_long(what: str, number: int) -> None:
    """ValueError for an int that 64 bits do not hold."""
    if not _LEAST <= number <= _LARGEST:
        raise ValueError(f"{what}: Overflow when unpacking long long, got {number}")


def expect_longs(what: str, numbers: Iterable[int]) -> None:
    """TypeError for a sequence with an int that 64 bits do not hold."""
    for place, number in enumerate(numbers):
        if not _LEAST <= number <= _LARGEST:
            raise TypeError(
                f"{what} failed to unpack the object at pos {place + 1} with error "
                f'"Overflow when unpacking long long", got {number}'
            )


def whole_number(what: str, value: Any) -> int:
    """`value` as an int; TypeError for what PyTorch does not take for one.

    ValueError for one that 64 bits do not hold.
    """
    if not is_int(value):
        raise TypeError(f"{what} must be int, not {type(value).__name__}")
    number: int = value.__index__()
    expect_long(what, number)
    return number


def is_bool(value: Any) -> bool:
    """Whether `value` is a bool, of Python or NumPy."""
    return isinstance(value, bool) or (
        type(value).__name__ in ("bool", "bool_") and hasattr(value, "dtype")
    )


def _is_float(value: Any) -> bool:
    return isinstance(value, Real) or is_bool(value) or _is_single(value, "biuf")


def is_number(value: Any) -> bool:
    """Whether `value` is a number of any kind, or a zero-dim tensor."""
    return isinstance(value, Number) or is_bool(value) or _is_single(value, "biufc")


def _is_dtype(value: Any) -> bool:
    return isinstance(value, DType) or value in (bool, int, float, complex)


def python_number(value: Any) -> Any:
    """A number of NumPy or of an enumeration as Python's own; anything else as it is.

    Kernels tell NumPy's numbers from Python's: they promote with theirs, and would widen a result.
    """
    if isinstance(value, Number) or is_bool(value):
        if hasattr(value, "item"):
            return value.item()
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
    return value


#: annotation -> (how torch calls it, what is of that kind)
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("Tensor", lambda value: isinstance(value, classes["Tensor"])),
    "int": ("int", is_int),
    "bool": ("bool", is_bool),
    "float": ("float", _is_float),
    "complex": ("Number", is_number),
    "str": ("str", lambda value: isinstance(value, str)),
    "DType": ("torch.dtype", _is_dtype),
    "Generator": ("torch.Generator", lambda value: isinstance(value, classes["Generator"])),
    "Layout": ("torch.layout", lambda value: classes["is_layout"](value)),
    "AnyLayout": ("torch.layout", lambda value: isinstance(value, classes["Layout"])),
    "MemoryFormat": (
        "torch.memory_format",
        lambda value: isinstance(value, classes["MemoryFormat"]),
    ),
}


#: First parameters that are tensors, or several.
_TENSORS = ("args", "input", "operands", "self", "tensors")


def is_checked(function: Any, places: tuple[str, ...]) -> bool:
    """Whether calls of an exported function go through `checked`.

    There is something to check, a method's own tensor aside; or the function takes tensors, in
    place of which a program may have something that overrides it.
    """
    if hasattr(function, "checked"):
        return False
    inner = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
    kinds = [
        str(annotation).split(" | ")[0]
        for name, annotation in inner.__annotations__.items()
        if name not in ("return", "self")
    ]
    takes_tensors = inner.__code__.co_varnames[:1] in [(name,) for name in _TENSORS]
    return any([kind in _KINDS for kind in kinds]) or (takes_tensors and places != ("method",))


#: Flags that PyTorch reads in Python, where any truth value will do.
_TRUTHS = (
    "antialias", "get_infos", "inplace", "need_weights", "reduce", "return_indices", "size_average"
)  # fmt: skip
#: The same of some functions' flags, which other functions hand on to where only a bool will do.
_TRUTHS_OF = {
    "gaussian_nll_loss": ("full",),
    "gumbel_softmax": ("hard",),
    "interpolate": ("recompute_scale_factor",),
    "triplet_margin_with_distance_loss": ("swap",),
}
#: Other names of parameters: NumPy's.
_SYNONYMS = {
    "a": "input",
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "x1": "input",
    "x2": "other",
}
#: Parameters that PyTorch calls otherwise where they are numbers, or by a word of Python's.
_SYNONYMS_OF = {
    "bucketize": {"self": "input"},
    "float_power": {"self": "input"},
    "searchsorted": {"self": "input"},
    "where": {"self": "input"},
    "random_": {"from": "from_"},
    "uniform_": {"from": "from_"},
    "zeta": {"self": "input"},
}
#: Parameters that are an int or several.
_DIMS = ("dim", "dims")
#: Functions for which a tensor in their place is another operand.
_PAIRWISE = ("max", "min")
#: Data that becomes a tensor, which has the dtype of NumPy's numbers.
_DATA = ("data", "obj")
#: Types that say of all their values of what kind they are: a call like an earlier one is not read.
_BY_TYPE = (bool, int, float, complex, str, type(None))


class Signature:
    """What the parameters of a function are annotated with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        function = inspect.unwrap(function)
        own = parameters_of(function)
        self.names = own.positional
        keywords = (*own.positional, *own.keywords)
        admits_none = [name for name, value in own.all_defaults().items() if value is None]
        self.synonyms = {
            word: name
            for word, name in (_SYNONYMS | _SYNONYMS_OF.get(self.name, {})).items()
            if name in keywords and word not in keywords
        }
        self.dims = () if self.name in _PAIRWISE else _DIMS
        truths = (*_TRUTHS, *_TRUTHS_OF.get(self.name, ()))
        self.kinds: dict[str, tuple[str, Callable[[Any], bool], bool]] = {}
        for name in keywords:
            parts = str(function.__annotations__.get(name, "")).split(" | ")
            kind = None if name in truths else _KINDS.get(parts[0])
            if kind is not None and parts[1:] in ([], ["None"]):
                self.kinds[name] = (*kind, len(parts) > 1 or name in admits_none)

    def read(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any], bool]:
        """Arguments with numbers for zero-dim tensors, and whether their types alone say they fit.

        NumPy's numbers become Python's.

        Raises torch's TypeError for a value of a wrong kind.
        """
        values, settled = list(args), True
        if self.name in ORDERS:
            named = in_present_order(self.name, self._fits, args, kwargs)
            if named is not None:
                values = [named.pop(name) for name in self.names if name in named]
                args, kwargs, settled = tuple(values), named, False
        for place, name in enumerate(self.names[: len(args)]):
            values[place], by_type = self._read(name, args[place], f" (position {place + 1})")
            settled &= by_type
        named = {}
        for word, value in kwargs.items():
            name = self.synonyms.get(word, word)
            if name is not word:
                settled = False
                if name in named or name in self.names[: len(args)]:
                    raise TypeError(f"{self.name}() got multiple values for argument '{name}'")
            named[name], by_type = self._read(name, value, "")
            settled &= by_type
        return tuple(values), named, settled

    def _fits(self, name: str, value: Any) -> bool:
        if name not in self.kinds:
            return True
        _, fits, admits_none = self.kinds[name]
        return fits(value) or (value is None and admits_none)

    def _read(self, name: str, value: Any, where: str) -> tuple[Any, bool]:
        by_type = type(value) in _BY_TYPE or isinstance(value, DType)
        if not by_type and name not in _DATA:
            number = python_number(value)
            if number is not value:
                return self._read(name, number, where)[0], False
        kind = self.kinds.get(name)
        if kind is None:
            if name in self.dims and isinstance(value, classes["Tensor"]):
                return value.__index__() if is_int(value) else value, False
            return value, True
        called, fits, admits_none = kind
        if value is None and admits_none:
            return value, True
        if not fits(value):
            raise TypeError(
                f"{self.name}(): argument '{name}'{where} must be {called}, not "
                f"{type(value).__name__}"
            )
        if called == "torch.dtype" and type(value) is type:  # one of Python's
            return as_dtype(value), False
        if called == "int":
            expect_long(f"{self.name}(): argument '{name}'", value.__index__())
        if called == "Tensor":
            return value, True
        if isinstance(value, classes["Tensor"]):
            return value.item(), False
        return value, by_type


#: What a function does whose first argument may have another name.
_ALSO_SELF = """
if {missing} or rest or more:
    return renamed({args}, {kwargs})
{inner}
"""


def also_self(function: Any) -> Any:
    """`function`, whose first argument may be given by the name `self`, as PyTorch calls numbers.

    For functions that are not `checked`.
    """

    def names(parameters: Parameters) -> dict[str, Any]:
        def renamed(args: tuple, kwargs: dict[str, Any]) -> Any:
            args, kwargs = parameters.given(args, kwargs)
            first = {"input": kwargs.pop("self")} if "self" in kwargs else {}
            return function(*args, **first, **kwargs)

        return {"renamed": renamed}

    return forwarder(function, _ALSO_SELF, names, Parameters.opened)


#: What a checked function does; `known` holds types of arguments that have passed.
_CHECKED = """
if {types} not in known or rest or more:
    return check({args}, {kwargs})
try:
    {inner}
except Exception as error:
    return failed(error, {args}, {kwargs})
"""


class _Checks:
    """The checks of a function's arguments, which remember the types that have passed."""

    __slots__ = ("function", "known", "parameters", "signature")

    def __init__(self, function: Any, parameters: Parameters | None = None) -> None:
        self.function = function
        self.parameters = parameters
        self.known: set[tuple] = set()
        self.signature: Signature | None = None

    def check(self, args: tuple, kwargs: dict[str, Any], types: tuple) -> Any:
        """Call the function, with arguments that were read."""
        result = try_overrides(self.function, *args, **kwargs)
        if result is not NotImplemented:
            return result
        if self.signature is None:
            self.signature = Signature(self.function)
        args, kwargs, settled = self.signature.read(args, kwargs)
        if settled and types and len(self.known) < 64:
            self.known.add(types)
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            return self.answer(error, args, kwargs)

    def answer(self, error: Exception, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call gives that raised `error`: mostly an error."""
        if isinstance(error, NotStrided):
            return error.answer(self.function.__name__, *args, **kwargs)
        result = try_overrides(self.function, *args, **kwargs)  # of something in a list
        if result is not NotImplemented:
            return result
        assert self.signature is not None
        self.signature.read(args, kwargs)  # where an int has too many bits for its type to tell
        translation = size_error(self.function.__name__, error, (*args, *kwargs.values()))
        if translation is error:
            raise
        raise translation from None

    # Of a function whose wrapper is given all of its parameters, defaults too.

    def check_all(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """`check`."""
        assert self.parameters is not None
        types = (*map(type, args), *map(type, kwargs.values()))
        if Missing in types:  # perhaps a mistake
            types = ()
        return self.check(*self.parameters.given(args, kwargs), types)

    def failed(self, error: Exception, args: tuple, kwargs: dict[str, Any]) -> Any:
        """`answer`."""
        assert self.parameters is not None
        return self.answer(error, *self.parameters.given(args, kwargs))


def checked(function: Any) -> Any:
    """`function`, whose arguments are checked by their annotations before it is called.

    Some may be given under other names or in another order than that of its parameters.
    """
    if function.__name__ not in CROSSED and has_parameters(function):

        def names(parameters: Parameters) -> dict[str, Any]:
            checks = _Checks(function, parameters)
            return {"known": checks.known, "check": checks.check_all, "failed": checks.failed}

        forwarding = forwarder(function, _CHECKED, names, Parameters.opened)
        forwarding.checked = True
        return forwarding

    checks = _Checks(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        types = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if types not in checks.known:
            return checks.check(args, kwargs, types)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return checks.answer(error, args, kwargs)

    wrapper.checked = True  # type: ignore[attr-defined]
    return wrapper
