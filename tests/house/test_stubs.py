"""The type stub of Tensor is what the bound functions give."""

from __future__ import annotations

from tests.tools.stubs import TARGET, stub


def test_stub_is_fresh() -> None:
    assert TARGET.read_text() == stub(), "run python -m tests.tools.stubs"
