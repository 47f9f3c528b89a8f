"""Expressions over a few named tensors and arrays, evaluated under PyTorch and here."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import numpy as np
from parameterized import parameterized

from tests.autograd.against_torch import same


def names(lib: Any) -> dict[str, Any]:
    """What expressions may name; `torch` is the library under test."""
    f = lib.arange(6.0).reshape(2, 3)
    n = np.arange(6.0).reshape(2, 3)
    return {
        "torch": lib,
        "np": np,
        "copy": copy,
        "math": math,
        "operator": operator,
        "pickle": pickle,
        "x": lib.ones(2, requires_grad=True),
        "f": f,
        "i": lib.arange(6).reshape(2, 3),
        "n": n,
        "n32": n.astype(np.float32),
        "ni": np.arange(3),
        "s": lib.tensor(2.5),
        "si": lib.tensor(3),
        "c": lib.tensor(1 + 2j),
        "b": lib.tensor(True),
        "bf": lib.tensor([1.5, 2.5], dtype=lib.bfloat16),
        "h": lib.tensor([1.5], dtype=lib.float16),
    }


def lines(text: str) -> Any:
    """Parameterize a test by the lines of `text`."""
    return parameterized.expand([(line.strip(),) for line in text.splitlines() if line.strip()])


def check(expression: str, **options: Any) -> None:
    """Assert that an expression has the same value, or raises the same type, in both libraries."""
    options.setdefault("words", ("",))
    options.setdefault("warned", False)
    same(lambda lib: eval(expression, names(lib)), **options)
