"""The same lines run under PyTorch and here; what they return, raise and warn is compared."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)

LIBRARIES = (tlc, torch)


def plain(value: Any) -> Any:
    """`value` with tensors as lists and modules as text, so that two libraries' compare equal."""
    for library in LIBRARIES:
        if isinstance(value, library.Tensor):
            kind = "Parameter" if isinstance(value, library.nn.Parameter) else "Tensor"
            grad = value.requires_grad
            return kind, str(value.dtype), list(value.shape), grad, value.tolist()
        if isinstance(value, library.nn.Module):
            return text(repr(value))
        if isinstance(value, library.Size):
            return "Size", list(value)
        if isinstance(value, library.dtype | library.device):
            return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return repr(value)
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, type):
        return text(value.__name__)
    if value is None or isinstance(value, int | float | set):
        return value
    raise TypeError(f"the test returns a {type(value)}, which it should turn into plain values")


def text(message: str) -> str:
    """`message` with our package called PyTorch's name."""
    return message.replace("tensorflow_lite_clone", "torch")


def outcome(script: Callable[[Any], Any], library: Any) -> Any:
    """What `script` returns or raises under `library`, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(script(library))
        except Exception as error:
            result = type(error).__name__, text(str(error))
    return result, [(type(w.message).__name__, text(str(w.message))) for w in caught]


def same(script: Callable[[Any], Any]) -> Any:
    """Assert that `script(library)` does the same under both libraries; returns what it does."""
    here, there = (outcome(script, library) for library in LIBRARIES)
    if here != there:  # in full: pytest's own account would leave out the ends
        raise AssertionError(f"\nhere:    {here}\nPyTorch: {there}")
    return here[0]


def near(script: Callable[[Any], Any], rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Assert that both return the same, but for the rounding of two float32 calculations."""
    here, there = (outcome(script, library) for library in LIBRARIES)
    assert not failed(there[0]), there[0]
    if not _near(here, there, rtol, atol):
        raise AssertionError(f"\nhere:    {here}\nPyTorch: {there}")


def _near(here: Any, there: Any, rtol: float, atol: float) -> bool:
    if isinstance(here, float) and isinstance(there, float):
        return math.isclose(here, there, rel_tol=rtol, abs_tol=atol) or here != here != there
    if type(here) is not type(there):
        return False
    if isinstance(here, dict):
        pairs = [(here[key], there.get(key)) for key in here]
        return here.keys() == there.keys() and all(_near(*pair, rtol, atol) for pair in pairs)
    if isinstance(here, list | tuple):
        pairs = list(zip(here, there))
        return len(here) == len(there) and all(_near(*pair, rtol, atol) for pair in pairs)
    return here == there


def train(lib: Any, module: Any, x: Any, steps: int = 3) -> Any:
    """Losses of a few steps of SGD with momentum, and the state and output after them."""
    optimizer = lib.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = module(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    module.eval()
    return losses, module.state_dict(), module(x)


def raises(script: Callable[[Any], Any]) -> str:
    """Assert that both libraries raise the same; returns the message."""
    result = same(script)
    assert failed(result), result
    return result[1]


def failed(result: Any) -> bool:
    """Whether what `same` returns is an exception's name and message."""
    pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], str)
    return pair and result[0].endswith("Error")
