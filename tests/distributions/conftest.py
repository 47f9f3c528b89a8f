"""Tensors of these tests are made on the device under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorflow_lite_clone as tlc
from tests.device import DEVICE


@pytest.fixture(autouse=True)
def device_under_test() -> Iterator[None]:
    before = tlc.get_default_device()
    tlc.set_default_device(DEVICE)
    yield
    tlc.set_default_device(before)
