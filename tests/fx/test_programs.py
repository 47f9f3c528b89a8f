"""Programs with graphs see the same under PyTorch and here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.fx import programs, programs_of_modules

ALL = [*programs.PROGRAMS, *programs_of_modules.PROGRAMS]


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.__name__)
def test_program(program: Any) -> None:
    expected, seen = program(torch), program(tlc)
    assert len(expected) == len(seen)
    for one, other in zip(expected, seen):
        assert one == other
