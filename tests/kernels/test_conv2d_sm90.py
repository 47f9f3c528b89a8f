"""Convolutions on Hopper's tensor cores beside the generic forms: geometries, every tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone.core.flags import flags
from tests.kernels.gpu import HALF, needs_gpu
from tests.kernels.test_conv2d import assert_tf32, calls, compare, run

pytestmark = needs_gpu

# n, c, o, size, kernel, stride, padding, dilation, groups
GEOMETRIES = (
    (3, 32, 64, (8, 8), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (2, 40, 72, (13, 11), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (18, 64, 128, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), 1),  # rows that read zeros alone
    (2, 72, 136, (16, 18), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    (3, 64, 40, (9, 12), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (2, 32, 32, (9, 8), (1, 1), (2, 2), (0, 0), (1, 1), 1),
    (2, 32, 32, (11, 13), (3, 2), (2, 3), (0, 1), (2, 1), 1),
    (2, 32, 32, (9, 9), (3, 3), (4, 4), (1, 1), (2, 2), 1),  # stride and dilation share a factor
    (1, 32, 32, (13, 9), (4, 5), (1, 1), (3, 4), (2, 3), 1),
    (5, 64, 64, (1, 1), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (1, 32, 32, (20, 18), (1, 1), (9, 9), (0, 0), (1, 1), 1),  # a stride the copy engine refuses
    (2, 40, 32, (70,), (3,), (1,), (1,), (1,), 1),
)
# More pixels, outputs and channels than the largest tile and each split of it
LARGE = (
    (5, 288, 136, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (3, 272, 72, (12, 11), (3, 3), (2, 2), (1, 1), (1, 1), 1),
)


def hopper() -> Any:
    """The launcher; a skip where there is no such GPU."""
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.Device().compute_capability.startswith("9"):
        pytest.skip("no Hopper GPU")
    from tensorflow_lite_clone.backends.cupy import convolution_hopper

    return convolution_hopper


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list:
    """Gets an entry for each call that the launcher serves."""
    launcher, found = hopper(), []
    gather = launcher.gather

    def counted(*args: Any) -> None:
        found.append(args)
        gather(*args)

    monkeypatch.setattr(launcher, "gather", counted)
    return found


@pytest.fixture(autouse=True)
def rounded() -> Iterator[None]:
    before, flags.cudnn_allow_tf32 = flags.cudnn_allow_tf32, True
    yield
    flags.cudnn_allow_tf32 = before


def gathers(geometry: tuple) -> list:
    return calls(geometry)[:2]


def assert_right(geometry: tuple, dtypes: tuple, *all_layouts: str) -> None:
    for layout in all_layouts:
        for name, arrays, parameters in gathers(geometry):
            compare(name, arrays, parameters, dtypes, (layout, layout))
        assert_tf32(geometry, layout)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_geometries(served: list, geometry: tuple) -> None:
    layouts = ("contiguous", "channels_last")[: len(geometry[3])]
    assert_right(geometry, HALF, *layouts)
    ops = 1 if max(geometry[5]) > 8 else 2
    assert len(served) == (len(HALF) + 1) * ops * len(layouts)


@pytest.mark.parametrize("number", range(9))
def test_tiles(served: list, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    from tensorflow_lite_clone.backends.cupy import convolution_plan

    assert len(convolution_plan.SHAPES) == 9
    shape = convolution_plan.SHAPES[number]
    monkeypatch.setattr(convolution_plan, "SHAPES", (shape,))
    hopper().prepare.cache_clear()
    try:
        for geometry in LARGE:
            assert_right(geometry, HALF[:1], "channels_last")
    finally:
        hopper().prepare.cache_clear()
    assert served


def test_more_tiles_than_blocks(served: list) -> None:
    geometry = (48, 32, 64, (32, 32), (3, 3), (1, 1), (1, 1), (1, 1), 1)
    for name, arrays, parameters in gathers(geometry):
        compare(name, arrays, parameters, HALF, ("channels_last", "channels_last"))
    assert len(served) == 2 * len(HALF)


def test_conv2d_sm90_without_bias(served: list) -> None:
    name, (x, w, _), parameters = calls(GEOMETRIES[1])[0]
    result = run(name, [x, w, None], parameters, "bfloat16")
    zero = run(name, [x, w, np.zeros(w.shape[0])], parameters, "bfloat16")
    assert bool((result.view("u2") == zero.view("u2")).all())
    assert len(served) == 2


def test_results_are_the_same_bits_each_time(served: list) -> None:
    for geometry in (GEOMETRIES[2], LARGE[0]):
        for name, arrays, parameters in gathers(geometry):
            first, *others = [run(name, arrays, parameters).view("u4") for _ in range(3)]
            assert all(bool((first == other).all()) for other in others), name
    assert len(served) == 12


def test_nan_and_infinity_pass(served: list) -> None:
    name, (x, w, b), parameters = calls(GEOMETRIES[1])[0]
    x[0, 0, 3, 3], x[1, 0, 3, 3] = np.nan, np.inf
    y = run(name, [x, np.abs(w) + 1, b], parameters).get()
    assert np.isnan(y[0, :, 2:5, 2:5]).all()
    assert np.isposinf(y[1, :, 2:5, 2:5]).all()
    assert np.isfinite(y[0, :, 5:]).all()
    assert len(served) == 1


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "dtype"),
    [
        (64, 64, 2, "float32"),
        (8, 64, 1, "float32"),  # few channels
        (64, 18, 1, "float32"),  # results that are no packs
        (64, 64, 1, "float64"),
    ],
)
def test_conv2d_sm90_declines_other_geometries(
    served: list, channels: int, outputs: int, groups: int, dtype: str
) -> None:
    geometry = (2, channels, outputs, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1), groups)
    name, arrays, parameters = calls(geometry)[0]
    assert run(name, arrays, parameters, dtype) is not NotImplemented
    assert not served


def test_exact_products_are_not_served(served: list) -> None:
    flags.cudnn_allow_tf32 = False
    name, arrays, parameters = calls(GEOMETRIES[1])[0]
    run(name, arrays, parameters)
    assert not served
