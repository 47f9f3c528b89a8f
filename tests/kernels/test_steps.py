"""`fused_step` hands over to the launcher what a kernel takes."""

from __future__ import annotations

from typing import Any

import pytest

from tensorflow_lite_clone.core import dynamic_scalar
from tensorflow_lite_clone.core.late_bound import launch_step
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.kernels import Kernel, fused_step
from tensorflow_lite_clone.kernels.steps import complement, function_of, logarithm

KERNEL = Kernel("step.cu", "step", params=("T", "WIDE"))


def test_what_the_launcher_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def launch(
        kernel: Kernel, template: Any, lists: Any, cells: Any, values: Any, flags: Any, **more: Any
    ) -> Any:
        seen.extend([kernel, template, lists, cells, values(), flags, more])
        return NotImplemented

    monkeypatch.setattr(launch_step, "function", launch, raising=False)
    monkeypatch.setattr(table, "overrides", dict(table.overrides))
    numbers = lambda h: (h.lr, function_of(h.rho, complement))
    options: Any = {"cells": ("steps",), "flags": ("maximize", "absent")}
    fused_step("a_step", KERNEL, numbers, template=lambda h: (h.wide,), **options)
    step = table.overrides["a_step", "cupy"]
    hyper = {"lr": 0.5, "rho": 0.75, "wide": True, "maximize": 1, "steps": ["t"]}
    assert step(None, ["p"], ["g"], [], ["m"], found_inf="flag", **hyper) is NotImplemented
    lists = [["p"], ["g"], ["m"]]  # a list of states that are not kept is left out
    flags = [True, False]
    more = {"lr": 0.5, "found_inf": "flag"}
    assert seen == [KERNEL, (True,), lists, [["t"]], (0.5, 0.25), flags, more]


def test_functions_of_dynamic_scalars_are_dynamic(monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorder(dynamic_scalar.Recorder):
        def number(self, read: Any) -> dynamic_scalar.DynamicScalar:
            return dynamic_scalar.DynamicScalar(read, None)

    monkeypatch.setattr(dynamic_scalar, "recorder", Recorder())
    value = [0.25]
    number = dynamic_scalar.dynamic_scalar(lambda: value[0])
    share = function_of(number, complement)
    assert isinstance(share, dynamic_scalar.DynamicScalar) and isinstance(
        number, dynamic_scalar.DynamicScalar
    )
    assert share == 0.75 and number.consumed
    value[0] = 0.0
    assert share.read() == 1 and logarithm(0.0) == -float("inf")
