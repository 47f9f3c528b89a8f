"""What the tests on two GPUs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorflow_lite_clone as tlc

ZERO, ONE = "cuda:0", "cuda:1"


@pytest.fixture(autouse=True)
def cuda_0_is_current() -> Iterator[None]:
    """CuPy warns where arrays of a device that is not current are used, and warnings are errors."""
    tlc.cuda.set_device(0)
    with tlc.backends.cudnn.flags(allow_tf32=False):
        yield
    found = tlc.cuda.current_device()
    tlc.cuda.set_device(0)
    assert found == 0, "the test left another device current"


def home(x: tlc.Tensor) -> int:
    """The device that the memory is on, which had better be the one that the tensor names."""
    index = x._storage.array.data.device_id
    assert x.device == tlc.device("cuda", index)
    return index
