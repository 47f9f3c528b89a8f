"""A few random calls of the op table's rows against PyTorch, each time the same ones."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.tools.fuzz import Call, run

# PyTorch resizes uint8 in two passes, rounding after each, here it is one.
BYTES = ("F.interpolate", "F.upsample")


@pytest.mark.skipif(DEVICE != "cpu", reason="rows have other tolerances on a device")
def test_random_calls() -> None:
    found = run(1, range(500))
    assert {name: n for name, n in found.items() if not name.startswith(BYTES)} == {}


def test_a_call_is_reproducible() -> None:
    one, two = (Call(3, 17) for _ in range(2))
    assert repr(one) == repr(two) and one.layouts.tolist() == two.layouts.tolist()
    assert any(repr(Call(3, number)) != repr(one) for number in range(5))


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("tanh", "sin", "exp")
    calls = (call for call in map(lambda n: Call(0, n), range(9000)) if call.op.name in names)
    call = next(call for call in calls if call.dtype == "float64" and "0" not in repr(call.sample))
    assert call.judge() is None
    run_row = type(call.op).run
    off = lambda module: 1.001 if module is tlc else 1.0
    monkeypatch.setattr(
        type(call.op), "run", lambda op, lib, *rest: run_row(op, lib, *rest) * off(lib)
    )
    assert str(call.judge()).startswith("differs")
