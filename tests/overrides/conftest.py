"""Public functions as they are in a program that has nothing that overrides them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorflow_lite_clone.core import interception


@pytest.fixture
def idle() -> Iterator[None]:
    """Functions have their own code, whatever ran in this process before."""
    count, expecting = len(interception.intercepting), list(interception._enabled_for_values)
    for _ in range(count):
        interception.release()
    interception._enabled_for_values.clear()
    yield
    while interception.intercepting:
        interception.release()
    for _ in range(count):
        interception.intercept()
    interception._enabled_for_values[:] = expecting
