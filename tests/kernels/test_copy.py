"""Copies of dense memory: every byte, whatever the size and dtype."""

from __future__ import annotations

import pytest

from tests.kernels.gpu import needs_gpu, poison

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1, (1 << 18) + 15, 3_000_001])
def test_bytes(size: int) -> None:
    from tensorflow_lite_clone.backends.cupy.primitives.indexing import copy

    x = cupy.arange(size, dtype=cupy.uint8)
    poison(cupy)
    y = copy(x)
    assert y.data.ptr != x.data.ptr and bool((x == y).all())


def test_other_layouts() -> None:
    from tensorflow_lite_clone.backends.cupy.primitives.indexing import copy

    x = cupy.arange(300 * 400, dtype=cupy.float64).reshape(300, 400)
    for part in (x, x.T, x[:, 1:], x[::2], x.ravel()[1:], x.reshape(3, 100, 400).swapaxes(0, 1)):
        y = copy(part)
        assert y.flags.c_contiguous and bool((y == part).all())
