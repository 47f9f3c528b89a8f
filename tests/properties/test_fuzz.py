"""A few random calls of every kind against PyTorch, each time the same ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.tools.fuzz import call, run
from tests.tools.fuzz.calls import KINDS
from tests.tools.fuzz.indices import Write
from tests.tools.fuzz.operators import Operation
from tests.tools.fuzz.rows import RowCall


@pytest.mark.skipif(DEVICE == "cuda", reason="rows have other tolerances on a device")
def test_random_calls() -> None:
    assert run(1, range(1000)) == {}


def test_a_call_is_reproducible() -> None:
    for number in range(40):
        one, two = (call(3, number) for _ in range(2))
        assert type(one) is type(two) and repr(one) == repr(two)
    assert len({repr(call(3, number)) for number in range(40)}) > 35


def test_every_kind_is_drawn() -> None:
    drawn = {type(call(0, number)) for number in range(500)}
    assert drawn == {kind for kind, _ in KINDS}


def first(kind: type, of: Any) -> Any:
    """The first call of a kind for which `of` holds."""
    calls = (call(0, number) for number in range(20000))
    return next(found for found in calls if type(found) is kind and of(found))


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("tanh", "sin", "exp", "exp2", "cos", "cosh", "sinh", "sqrt", "log", "erf", "atan")
    found = first(RowCall, lambda c: c.op.name in names and c.dtype == "float64"
                  and "0" not in repr(c.sample))
    assert found.judge() is None
    run_row = type(found.op).run
    off = lambda module: 1.001 if module is tlc else 1.0
    monkeypatch.setattr(
        type(found.op), "run", lambda op, lib, *rest: run_row(op, lib, *rest) * off(lib)
    )
    assert str(found.judge()).startswith("differs")


def test_a_wrong_dtype_a_missed_refusal_and_a_crash_are_found() -> None:
    found = first(Operation, lambda c: c.name == "+" and c.judge() is None
                  and "float32" in repr(c) and "float64" not in repr(c))
    plain = found.run
    ours = lambda side: side.module is tlc

    def other_dtype(side: Any, *arguments: Any) -> Any:
        result = plain(side, *arguments)
        return result.to(tlc.complex128) if ours(side) else result

    def refuses(side: Any, *arguments: Any) -> Any:
        if not ours(side):
            raise RuntimeError("no")
        return plain(side, *arguments)

    def crashes(side: Any, *arguments: Any) -> Any:
        return None.shape if ours(side) else plain(side, *arguments)  # type: ignore[attr-defined]

    for fault, says in ((other_dtype, "dtype"), (refuses, "PyTorch refuses"), (crashes, "crash")):
        found.run = fault
        assert says in str(found.judge())


def test_a_missed_write_is_found() -> None:
    found = first(Write, lambda c: c.arguments[0].array.size > 3
                  and (c.arguments[1] is ... or c.arguments[1] is None)
                  and type(c.arguments[2]) in (int, float) and c.judge() is None)
    plain = found.run
    found.run = lambda side, *rest: None if side.module is tlc else plain(side, *rest)
    assert "arguments afterwards" in str(found.judge())


def test_command_line() -> None:
    command = [sys.executable, "-m", "tests.tools.fuzz", "--seed", "3", "--only", "5"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "1 calls" in said and "0 differ" in said
