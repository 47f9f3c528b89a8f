"""What all tests of kernels share."""

from __future__ import annotations

import pytest

from tensorflow_lite_clone.core.flags import flags


@pytest.fixture(autouse=True)
def launchers_decide(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launchers decide at each call, as many tests change what they decide by, or count them."""
    remembering = request.module.__name__.endswith("test_launch_cache")
    monkeypatch.setattr(flags, "remember_launches", remembering)
