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

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.errors import NotStrided, size_error
from tensorflow_lite_clone.core.forwarding import Parameters, forwarder, parameters_of
from tensorflow_lite_clone.core.older_orders import ORDERS, in_present_order

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
    "MemoryFormat": (
        "torch.memory_format",
        lambda value: isinstance(value, classes["MemoryFormat"]),
    ),
}


def has_kinds(function: Any) -> bool:
    """Whether there is something to check: a method's own tensor is one in any case."""
    return not hasattr(function, "checked") and any(
        [
            name != "self" and str(annotation).split(" | ")[0] in _KINDS
            for name, annotation in inspect.unwrap(function).__annotations__.items()
            if name != "return"
        ]
    )


#: Flags that PyTorch reads in Python, where any truth value will do.
_TRUTHS = (
    "antialias", "get_infos", "inplace", "need_weights", "reduce", "return_indices", "size_average"
)  # fmt: skip
#: Data that becomes a tensor, which has the dtype of NumPy's numbers.
_DATA = ("data", "obj")
#: Types that say of all their values of what kind they are: a call like an earlier one is not read.
_BY_TYPE = (bool, int, float, complex, str, type(None))


class Signature:
    """What the parameters of a function are annotated with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        function = inspect.unwrap(function)
        code = function.__code__
        count = code.co_argcount
        self.names = code.co_varnames[:count]
        keywords = code.co_varnames[: count + code.co_kwonlyargcount]
        admits_none = {
            name
            for name, value in zip(
                reversed(self.names), reversed(function.__defaults__ or ()), strict=False
            )
            if value is None
        }
        admits_none.update(
            [name for name, value in (function.__kwdefaults__ or {}).items() if value is None]
        )
        self.kinds: dict[str, tuple[str, Callable[[Any], bool], bool]] = {}
        for name in keywords:
            parts = str(function.__annotations__.get(name, "")).split(" | ")
            kind = None if name in _TRUTHS else _KINDS.get(parts[0])
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
                values = [named.pop(name) for name in self.names]
                args, kwargs, settled = tuple(values), named, False
        for place, name in enumerate(self.names[: len(args)]):
            values[place], by_type = self._read(name, args[place], f" (position {place + 1})")
            settled &= by_type
        named = {}
        for name, value in kwargs.items():
            named[name], by_type = self._read(name, value, "")
            settled &= by_type
        return tuple(values), named, settled

    def _fits(self, name: str, value: Any) -> bool:
        return name not in self.kinds or self.kinds[name][1](value)

    def _read(self, name: str, value: Any, where: str) -> tuple[Any, bool]:
        by_type = type(value) in _BY_TYPE or isinstance(value, DType)
        if not by_type and name not in _DATA:
            number = python_number(value)
            if number is not value:
                return self._read(name, number, where)[0], False
        kind = self.kinds.get(name)
        if kind is None:
            return value, True
        called, fits, admits_none = kind
        if value is None and admits_none:
            return value, True
        if not fits(value):
            raise TypeError(
                f"{self.name}(): argument '{name}'{where} must be {called}, not "
                f"{type(value).__name__}"
            )
        if called == "int":
            expect_long(f"{self.name}(): argument '{name}'", value.__index__())
        if called == "Tensor":
            return value, True
        if isinstance(value, classes["Tensor"]):
            return value.item(), False
        return value, by_type


#: What a checked function does; `known` holds types of arguments that have passed.
_CHECKED = """
    if {types} in known:
        try:
            return function({call})
        except Exception as error:
            return failed(error, {args}, {kwargs})
    return check({args}, {kwargs})
"""
#: The same for one that has other names for some of its parameters, `more`.
_TRANSLATED = _CHECKED.replace("if {types}", "if not more and {types}")
#: Stands for parameters that may be given under another name.
_MISSING = object()


def checked(function: Any, translated: Callable[[dict], dict] | None = None) -> Any:
    """`function`, whose arguments are checked by their annotations before it is called.

    `translated` gives keyword arguments the function's own names before they are looked at, or
    gives them back as they are.
    """
    signature: Signature | None = None
    known: set[tuple] = set()
    # Calls in an earlier order may have more arguments than there are parameters.
    parameters = None if function.__name__ in ORDERS else parameters_of(function)
    if translated is not None and parameters is not None:
        parameters = parameters.under_other_names(_MISSING)

    def check(args: tuple, kwargs: dict[str, Any], types: tuple = ()) -> Any:
        nonlocal signature
        own = True
        if signature is None:
            signature = Signature(function)
        if parameters is not None:
            types = (*map(type, args), *map(type, kwargs.values()))
            args, kwargs, own = given(parameters, args, kwargs)
        args, kwargs, settled = signature.read(args, kwargs)
        if settled and own and len(known) < 64:
            known.add(types)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return answer(error, args, kwargs)

    def given(
        parameters: Parameters, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[tuple, dict[str, Any], bool]:
        """What the call names, under the function's own names, and whether it was so."""
        args, kwargs = parameters.given(args, kwargs)
        if translated is None:
            return args, kwargs, True
        if any([value is _MISSING for value in args]):
            named = dict(zip(parameters.positional, args, strict=False))
            args, kwargs = (), {k: v for k, v in named.items() if v is not _MISSING} | kwargs
        own = translated(kwargs)
        return args, own, own is kwargs

    def answer(error: Exception, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(error, NotStrided):
            return error.answer(function.__name__, *args, **kwargs)
        assert signature is not None
        signature.read(args, kwargs)  # where an int has too many bits for its type to tell
        translation = size_error(function.__name__, error, (*args, *kwargs.values()))
        if translation is error:
            raise
        raise translation from None

    if parameters is not None:

        def failed(error: Exception, args: tuple, kwargs: dict[str, Any]) -> Any:
            args, kwargs, _ = given(parameters, args, kwargs)
            return answer(error, args, kwargs)

        body = _CHECKED if translated is None else _TRANSLATED
        wrapper = forwarder(function, body, parameters, known=known, check=check, failed=failed)
    else:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if translated is not None:
                kwargs = translated(kwargs)
            types = (*map(type, args), *kwargs, *map(type, kwargs.values()))
            if types not in known:
                return check(args, kwargs, types)
            try:
                return function(*args, **kwargs)
            except Exception as error:
                return answer(error, args, kwargs)

    wrapper.checked = True  # type: ignore[attr-defined]
    return wrapper
