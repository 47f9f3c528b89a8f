"""Depthwise convolutions and their gradients beside the generic forms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import ALL, needs_gpu, on_device, run_override
from tests.kernels.test_conv2d import LAYOUTS, calls, compare, physical

pytestmark = needs_gpu

# n, c, o, size, kernel, stride, padding, dilation, groups
GEOMETRIES = (
    (2, 8, 8, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1), 8),
    (2, 33, 66, (6, 5), (2, 3), (2, 2), (1, 1), (1, 1), 33),
    (2, 4, 12, (9, 8), (5, 5), (1, 2), (2, 2), (1, 1), 4),
    (1, 5, 5, (11, 12), (3, 3), (3, 2), (0, 2), (2, 3), 5),
    (2, 2, 2, (10, 9), (7, 7), (2, 1), (3, 3), (1, 1), 2),
    (3, 40, 40, (1, 1), (3, 3), (1, 1), (1, 1), (1, 1), 40),
    (2, 6, 6, (9, 9), (1, 1), (2, 2), (0, 0), (1, 1), 6),
    (2, 6, 12, (13,), (7,), (2,), (3,), (1,), 6),
)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_geometries(geometry: tuple) -> None:
    for name, arrays, parameters in calls(geometry):
        compare(name, arrays, parameters)
        if len(geometry[3]) == 2:
            compare(name, arrays, parameters, ALL, ("channels_last", "channels_last"))


@pytest.mark.parametrize("first", [*LAYOUTS, "expanded"])
@pytest.mark.parametrize("second", LAYOUTS)
def test_layouts(first: str, second: str) -> None:
    for name, arrays, parameters in calls((2, 8, 8, (8, 8), (4, 4), (2, 2), (1, 1), (1, 1), 8)):
        compare(name, arrays, parameters, ("float32", "bfloat16"), (first, second))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_sums_over_many_pixels_are_split(layout: str) -> None:
    for name, arrays, parameters in calls((16, 8, 8, (40, 40), (3, 3), (1, 1), (1, 1), (1, 1), 8)):
        compare(name, arrays, parameters, ("float32", "float16"), (layout, layout))
        given = [on_device(a, "float32") for a in physical(arrays, layout, layout)]
        first, second = [run_override(name, given, parameters).view(np.uint32) for _ in range(2)]
        assert bool((first == second).all()), f"{name} differs from run to run"


def test_depthwise_kernels_serve_depthwise(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy import convolution

    def refuse(*args: object) -> None:
        raise AssertionError("not the depthwise kernels")

    monkeypatch.setattr(convolution, "_gather", refuse)
    monkeypatch.setattr(convolution, "_weight_gradient", refuse)
    for name, arrays, parameters in calls(GEOMETRIES[0]):
        compare(name, arrays, parameters, ("float32",))
