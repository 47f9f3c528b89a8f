"""Numbers before tensors, as optimizers of older programs wrote them."""

from __future__ import annotations

import warnings

import pytest
import torch

import tensorflow_lite_clone as tlc

CALLS = """
    lib.add(x, 2, y)
    x.add(2, y)
    x.add_(-0.5, y)
    x.add(2, 3)
    lib.add(x, lib.tensor(2.0), y)
    lib.add(x, 2, y, out=lib.empty(3))
    lib.sub(x, 2, y)
    x.sub_(2.5, y)
    x.mul_(0.9).add_(0.1, y).addcmul_(0.1, y, y)
    lib.addcmul(x, 2, y, y)
    lib.addcmul(x, lib.tensor(2.0), y, y)
    lib.addcdiv(x, 2, y, y, out=lib.empty(3))
    x.addcmul(2, y, y)
    x.addcdiv_(-0.1, y, y)
    lib.add(x, y, y)
    x.add(2, y, alpha=3)
    lib.addcmul(x, y, y, y)
    x.addcmul(2, y)
    x.addcmul_(2, y, y, value=3)
    lib.tensor([1, 2]).add_(2.5, lib.tensor([1, 2]))
"""


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_numbers_before_tensors(call):
    found = []
    for lib in (tlc, torch):
        x, y = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([4.0, 5.0, 6.0])
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            try:
                outcome = eval(call, {"lib": lib, "x": x, "y": y}).tolist(), x.tolist()
            except (TypeError, RuntimeError) as error:
                outcome = type(error)
        found.append(outcome)
        if lib is tlc and isinstance(outcome, tuple):  # PyTorch warns once in a process
            assert {warning.filename for warning in given} == {"<string>"}
            assert "deprecated" in str(given[0].message)
    if isinstance(found[1], tuple):
        for mine, reference in zip(found[0], found[1], strict=True):
            assert mine == pytest.approx(reference)
    else:
        assert found[0] is found[1]


def test_gradients_go_to_both():
    x = tlc.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="deprecated"):
        x.add(3, x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
