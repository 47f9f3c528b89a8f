"""Fixtures of the tests of modules."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch


@pytest.fixture
def flags_of_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget PyTorch's flags of hooks of all modules after the test.

    A hook taken with `with_kwargs=True` leaves its flag there when it is removed, and
    `torch.compile` warns of it in every later test of the process.
    """
    name = "_global_forward_hooks_with_kwargs"
    monkeypatch.setattr(torch.nn.modules.module, name, OrderedDict())
