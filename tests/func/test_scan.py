"""`associative_scan` against PyTorch's."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan as theirs

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.func.scan import associative_scan


def decayed(left, right):
    """States of a recurrence ``s = decay * s + x``: not commutative."""
    return {
        "decay": left["decay"] * right["decay"],
        "x": right["decay"] * left["x"] + right["x"],
    }


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [1, -1])
def test_a_recurrence(length: int, reverse: bool, dim: int) -> None:
    found = []
    for module, scan in ((torch, theirs), (tlc, associative_scan)):
        x = module.arange(2.0 * length * length).reshape(2, length, length) / 7 - 3
        tree = {"decay": module.sin(x), "x": x}
        states = scan(decayed, tree, dim, reverse=reverse, combine_mode="generic")
        found.append([states[name].tolist() for name in ("decay", "x")])
    for expected, seen in zip(*found, strict=True):
        torch.testing.assert_close(torch.tensor(seen), torch.tensor(expected))


def test_gradients_flow_through() -> None:
    x = tlc.arange(1.0, 5.0).requires_grad_()
    associative_scan(tlc.mul, x, 0, combine_mode="generic").sum().backward()
    twin = torch.arange(1.0, 5.0).requires_grad_()
    twin.cumprod(0).sum().backward()
    assert x.grad.tolist() == twin.grad.tolist()


@pytest.mark.parametrize(
    ("combine", "xs", "dim", "mode"),
    [
        (None, "x", 0, "generic"),
        ("add", "x", 0, "other"),
        ("add", "x", 0, "pointwise"),
        ("add", [], 0, "generic"),
        ("add", [1.0], 0, "generic"),
        ("add", "empty", 0, "generic"),
    ],
)
def test_wrong_arguments(combine, xs, dim, mode) -> None:
    def refusal(module, scan):
        values = {"x": module.ones(3), "empty": module.ones(0)}
        tree = values[xs] if isinstance(xs, str) else xs
        function = None if combine is None else getattr(module, combine)
        with pytest.raises(Exception) as caught:
            scan(function, tree, dim, combine_mode=mode)
        return type(caught.value).__name__

    assert refusal(tlc, associative_scan) in ("ValueError", refusal(torch, theirs))
