"""One script of distributions under PyTorch and here, from the same seed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.autograd import against_torch

TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-10, 1e-12)}


def described(value: Any) -> Any:
    """`value` with distributions, transforms, constraints and messages as text."""
    for lib in (tlc, torch):
        distributions = lib.distributions
        kinds = (
            distributions.Distribution,
            distributions.Transform,
            distributions.constraints.Constraint,
        )
        if isinstance(value, kinds):
            return shown(repr(value))
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):  # in its order
        return ["dict", *[[key, described(item)] for key, item in value.items()]]
    if type(value) is tuple:
        return ["tuple", *map(described, value)]
    return [*map(described, value)] if type(value) is list else value


def shown(message: str) -> str:
    """`message` without devices and runs of spaces."""
    return " ".join(re.sub(r", device='\w+:0'", "", message).split())


def _seeded(script: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def seeded(lib: Any) -> Any:
        lib.manual_seed(0)
        try:
            return described(script(lib))
        except Exception as error:
            raise type(error)(shown(str(error))) from error

    return seeded


def same(script: Callable[[Any], Any], rtol: float = 1e-5, atol: float = 1e-6) -> Any:
    """Assert that `script(library)` does the same under both; returns what it does here."""
    return against_torch.same(_seeded(script), rtol=rtol, atol=atol)


def raises(script: Callable[[Any], Any]) -> str:
    """Assert that both libraries raise the same; returns the message."""
    return against_torch.raises(_seeded(script))
