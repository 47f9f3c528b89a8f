"""A base backend is told of what mapped functions do to its arrays outside of its words."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends


def test_operators_of_mapped_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []

    def foreign(call: Callable[..., Any], is_view: bool = False) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            called.append(call)
            return call(*args, **kwargs)

        return noted

    monkeypatch.setattr(backends.load("cpu"), "foreign", foreign)

    x = tlc.tensor([-1.0, 0.0, 3.0])
    mapped = tlc.func.vmap(tlc.nn.functional.hardswish)(x)  # x * ... / 6
    assert mapped.tolist() == tlc.nn.functional.hardswish(x).tolist()
    assert {operator.mul, operator.truediv} <= set(called)
