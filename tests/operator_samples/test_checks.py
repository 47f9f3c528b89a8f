"""The checks themselves, on operators that agree and on ones made to differ."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tensorflow_lite_clone as tlc
from tests.operator_samples import checks
from tests.samples.translate import Missing, to_ours, to_torch


def _entry(name: str) -> Any:
    return next(op for op in op_db if op.name == name)


@pytest.mark.parametrize("kind", checks.KINDS)
def test_an_operator_that_agrees(kind: str) -> None:
    checks.KINDS[kind](_entry("diff" if kind == "errors" else "mul"))


@pytest.mark.parametrize("kind", ["forward", "dtypes", "gradients", "second_gradients", "out"])
def test_another_function_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "operator", lambda op: tlc.atan2)
    with pytest.raises((AssertionError, checks.Difference, TypeError, RuntimeError)):
        checks.KINDS[kind](_entry("mul"))


def test_an_error_that_is_not_raised_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "operator", lambda op: lambda *args, **kwargs: None)
    with pytest.raises(checks.Difference, match="nothing raised"):
        checks.errors(_entry("diff"))


def test_a_missing_name_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tlc, "mul")
    monkeypatch.delattr(tlc.Tensor, "mul")
    with pytest.raises(Missing):
        checks.names(_entry("mul"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool])
def test_values_cross_with_their_strides(dtype: torch.dtype) -> None:
    there = torch.arange(24).reshape(2, 3, 4).to(dtype)[:, ::2].transpose(0, 2)
    here = to_ours(there)
    assert here.stride() == there.stride()
    assert torch.equal(to_torch(here), there)
