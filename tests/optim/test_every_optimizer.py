"""All optimizers against torch: numbers, states, dtypes, and states that change sides."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.optim.cases import (
    CASES,
    RICHEST,
    assert_same,
    optimizer_of,
    parameters,
    plain,
    run,
    values,
)

# A few roundings in twelve steps that feed on each other.
ROUNDING = {"float32": 3e-6, "float64": 1e-13, "complex64": 3e-6, "complex128": 1e-13}
IDS = [f"{name}-{number}" for number, (name, _) in enumerate(CASES)]
STEPS = 12


def both(make):
    """What a function of the library gives for ours and for torch."""
    return [make(lib) for lib in (tlc, torch)]


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_steps(name, options, dtype):
    if name == "Adafactor" and dtype.startswith("complex"):
        pytest.skip("takes no complex parameters")

    def result(lib):
        params = parameters(lib, dtype)
        optimizer = optimizer_of(lib, params, name, options)
        run(lib, params, optimizer, range(STEPS))
        return plain(params), plain(optimizer.state_dict()), repr(optimizer)

    ours, theirs = both(result)
    assert_same(list(ours), list(theirs), ROUNDING[dtype])
