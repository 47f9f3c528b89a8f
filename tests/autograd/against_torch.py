"""One script, run under PyTorch and here: what it returns, raises and warns is compared.

Under ``DEVICE=strict`` (or ``cuda``) our side makes its tensors on that device.
"""

from __future__ import annotations

import cmath
import contextlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE

LIBRARIES = (tlc, torch)


class Failure(tuple):
    """An exception as (type, message)."""

    __slots__ = ()


def plain(value: Any) -> Any:
    """`value` with tensors, arrays, dtypes, devices and nodes as plain Python values."""
    for library in LIBRARIES:
        if isinstance(value, library.Tensor):
            name = str(value.dtype), list(value.shape), value.requires_grad
            return (type(value).__name__, *name, value.detach().tolist())
        if isinstance(value, library.Size):
            return "Size", list(value)
        if isinstance(value, library.dtype):
            return str(value)
        if isinstance(value, library.device):
            return text(repr(value))
        if isinstance(value, library.autograd.graph.Node):
            return value.name()
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, str(value.dtype), list(value.shape), value.tolist()
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return text(value)
    if isinstance(value, type):
        return text(value.__name__)
    if isinstance(value, BaseException):
        return Failure((type(value).__name__, text(str(value))))
    if value is None or isinstance(value, int | float | complex | set | bytes):
        return value
    raise TypeError(f"the test returns a {type(value)}, which it should turn into plain values")


def text(message: str) -> str:
    """`message` with our package and the device under test called as PyTorch's."""
    message = message.replace("tensorflow_lite_clone", "torch")
    if DEVICE != "cpu":
        message = message.replace(f"type='{DEVICE}', index=0", "type='cpu'")
        message = message.replace(f"{DEVICE}:0", "cpu").replace(f"torch.{DEVICE}.", "torch.")
    return message


def outcome(script: Callable[[Any], Any], library: Any) -> tuple[Any, list]:
    """What `script` returns or raises under `library`, and its warnings."""
    here = library is tlc and DEVICE != "cpu"
    place = tlc.device(DEVICE) if here else contextlib.nullcontext()
    with warnings.catch_warnings(record=True) as caught, place:
        warnings.simplefilter("always")
        try:
            result = plain(script(library))
        except Exception as error:
            result = plain(error)
    return result, [(type(w.message).__name__, text(str(w.message))) for w in caught]


def close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    """Whether two plain values are equal, floats within the tolerances and NaN equal to NaN."""
    if isinstance(a, float | complex) and isinstance(b, float | complex):
        if type(a) is not type(b):
            return False
        if isinstance(a, complex):
            return close(a.real, b.real, rtol, atol) and close(a.imag, b.imag, rtol, atol)
        if math.isnan(a) or math.isnan(b):
            return cmath.isnan(a) and cmath.isnan(b)
        return a == b or abs(a - b) <= atol + rtol * max(abs(a), abs(b)) < math.inf
    if isinstance(a, Failure) or isinstance(b, Failure):
        return isinstance(a, Failure) and isinstance(b, Failure) and tuple(a) == tuple(b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y, rtol, atol) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key], rtol, atol) for key in a)
    return type(a) is type(b) and a == b


def _reduced(value: Any, words: Sequence[str]) -> Any:
    """Failures and warnings with their message cut down to the `words` that are in it."""
    if isinstance(value, Failure):
        return Failure((value[0], *[word for word in words if word in value[1]]))
    if isinstance(value, list | tuple):
        return type(value)(_reduced(item, words) for item in value)
    return value


def same(
    script: Callable[[Any], Any],
    words: Sequence[str] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    warned: bool = True,
) -> Any:
    """Assert that `script(library)` does the same under both libraries; returns what it does.

    Messages of exceptions and warnings must be equal, or with `words` agree in which of these
    they hold (one of them at least). With `warned` false warnings are not compared.
    """
    (here, here_warned), (there, there_warned) = (outcome(script, lib) for lib in LIBRARIES)
    if words is not None:
        for kind, message in _failures(there, there_warned if warned else []):
            assert any(word in message for word in words), f"PyTorch: {kind}: {message}"

    def ours_fit(ours: Any, theirs: Any) -> bool:
        if words is not None:
            ours, theirs = _reduced(ours, words), _reduced(theirs, words)
        return close(ours, theirs, rtol, atol)

    equal = ours_fit(here, there)
    if warned and equal:
        ours, theirs = map(_as_failures, (here_warned, there_warned))
        if words is not None:
            ours, theirs = _reduced(ours, words), _reduced(theirs, words)
        equal = ours == theirs
    if not equal:
        where, ours, theirs = _difference(here, there, ours_fit)
        raise AssertionError(
            f"{where}\nhere:    {ours} {here_warned or ''}\nPyTorch: {theirs} {there_warned or ''}"
        )
    return here


def _difference(here: Any, there: Any, equal: Callable[[Any, Any], bool]) -> tuple:
    """The first entries of two results that differ, and where they are."""
    if isinstance(here, dict) and isinstance(there, dict):
        keys = [key for key in {**here, **there} if not equal(here.get(key), there.get(key))]
        ours, theirs = ({key: side.get(key) for key in keys} for side in (here, there))
        return f"[{len(keys)} of {len(there)}]", ours, theirs
    where = ""
    while (
        type(here) is type(there)
        and isinstance(here, list)
        and len(here) == len(there)
        and not all(map(equal, here, there))
    ):
        index = next(i for i, pair in enumerate(zip(here, there)) if not equal(*pair))
        where += f"[{index}]"
        here, there = here[index], there[index]
    return where, here, there


def _as_failures(caught: list) -> list:
    return [Failure(warning) for warning in caught]


def _failures(value: Any, caught: list) -> list:
    found = list(caught)
    if isinstance(value, Failure):
        found.append(value)
    elif isinstance(value, list | tuple):
        for item in value:
            found += _failures(item, [])
    return found


def raises(script: Callable[[Any], Any], *words: str) -> str:
    """Assert that both libraries raise the same; returns our message."""
    result = same(script, words or None)
    assert isinstance(result, Failure), result
    return result[1]


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What ``function(...)`` returns or, as a value, the exception it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error
