"""The same lines run under PyTorch and here; values are compared to a tolerance."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)
TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-10, 1e-12)}


def plain(value: Any) -> Any:
    """`value` with tensors as (dtype, shape, array) and objects of a library as text."""
    for lib in LIBRARIES:
        if isinstance(value, lib.Tensor):
            array = value.detach().cpu().numpy().copy()
            return "Tensor", str(value.dtype), tuple(value.shape), array
        if isinstance(value, lib.distributions.Distribution | lib.distributions.Transform):
            return text(repr(value))
        if isinstance(value, lib.distributions.constraints.Constraint):
            return text(repr(value))
        if isinstance(value, lib.Size):
            return "Size", tuple(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, type):
        return text(value.__name__)
    if value is None or isinstance(value, int | float):
        return value
    raise TypeError(f"the test returns a {type(value)}, which it should turn into plain values")


def text(message: str) -> str:
    """`message` with our package called PyTorch's name, without devices and runs of spaces."""
    message = re.sub(r", device='\w+:0'", "", message)
    return " ".join(message.replace("tensorflow_lite_clone", "torch").split())


def outcome(script: Callable[[Any], Any], library: Any) -> Any:
    """What `script` returns or raises under `library`, and its warnings."""
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = "value", plain(script(library))
        except Exception as error:
            result = "error", (type(error).__name__, text(str(error)))
    return result, [(type(w.message).__name__, text(str(w.message))) for w in caught]


def compare(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    """Assert that two plain values are equal, numbers to the tolerance."""
    if isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            compare(ours[key], theirs[key], rtol, atol)
    elif isinstance(theirs, list | tuple):
        assert isinstance(ours, type(theirs)) and len(ours) == len(theirs), (ours, theirs)
        for mine, other in zip(ours, theirs):
            compare(mine, other, rtol, atol)
    elif isinstance(theirs, float):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
    else:
        assert ours == theirs


def same(script: Callable[[Any], Any], rtol: float = 1e-5, atol: float = 1e-6) -> Any:
    """Assert that `script(library)` does the same under both; returns what it does here."""
    (here, our_warnings), (there, their_warnings) = (outcome(script, lib) for lib in LIBRARIES)
    assert here[0] == there[0], f"\nhere:    {here}\nPyTorch: {there}"
    compare(here[1], there[1], rtol, atol)
    assert our_warnings == their_warnings
    return here[1]


def raises(script: Callable[[Any], Any]) -> str:
    """Assert that both libraries raise the same; returns the message."""
    kind, message = same(script)
    assert kind.endswith("Error")
    return message
