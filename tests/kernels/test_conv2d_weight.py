"""The weight's gradients by 3x3 that read the pixels once: geometries, layouts, tiles, types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone.core.flags import flags
from tests.kernels.gpu import Laid, check, needs_gpu, on_device, run_override

NAME = "conv_backward_weight"
# n, c, o, size, stride, padding
GEOMETRIES = (
    (66, 64, 64, (8, 8), 1, (1, 1)),  # a set is an image, or two
    (40, 16, 16, (16, 16), 1, (1, 1)),
    (134, 24, 36, (4, 4), 1, (1, 1)),  # channels and outputs that fill no tile
    (96, 72, 80, (7, 5), 1, (1, 1)),  # sets begin anywhere in an image
    (60, 20, 17, (11, 13), 1, (0, 0)),
    (70, 32, 48, (9, 3), 1, (0, 1)),
    (300, 32, 32, (2, 2), 1, (1, 1)),
    (40, 16, 32, (32, 30), 2, (1, 1)),
    (80, 64, 72, (16, 16), 2, (1, 1)),
    (160, 20, 17, (8, 7), 2, (1, 1)),
    (100, 32, 32, (13, 10), 2, (0, 2)),
    (700, 32, 32, (1, 1), 1, (1, 1)),  # a tap meets the pixel, the others its padding
)


@pytest.fixture(autouse=True)
def allowed() -> Iterator[None]:
    """float32 products may be TF32's."""
    before, flags.cudnn_allow_tf32 = flags.cudnn_allow_tf32, True
    yield
    flags.cudnn_allow_tf32 = before


def window() -> Any:
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy import convolution_weight

    return convolution_weight


def hopper() -> Any:
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy import convolution_wgrad_hopper

    return convolution_wgrad_hopper


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what the other kernels would serve."""
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy import convolution

    def refuse(*args: Any) -> None:
        raise AssertionError("the kernel for all taps did not serve this")

    monkeypatch.setattr(convolution, "_weight_gradient", refuse)


@pytest.fixture
def warpgroups(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what products of warpgroups do not serve; a skip where there are none."""
    import cupy

    if not cupy.cuda.Device().compute_capability.startswith("9"):
        pytest.skip("no Hopper GPU")

    def refuse(*args: Any) -> None:
        raise AssertionError("products of warpgroups did not serve this")

    monkeypatch.setattr(window(), "gradient", refuse)


def call(geometry: tuple) -> tuple[list[np.ndarray], dict]:
    """Gradient, input and parameters."""
    n, c, o, size, stride, padding = geometry[:6]
    taps = geometry[6] if len(geometry) > 6 else 3
    random = np.random.default_rng(n + c + o)
    count = [(m + 2 * p - taps) // stride + 1 for m, p in zip(size, padding)]
    arrays = [random.normal(size=shape) for shape in ((n, o, *count), (n, c, *size))]
    settings = {"padding": padding, "stride": (stride, stride), "dilation": (1, 1), "groups": 1}
    return arrays, {"kernel": (taps, taps), **settings}


def physical(arrays: list, layout: str) -> list:
    return [a if layout == "contiguous" else Laid(a, layout) for a in arrays]


def assert_tf32(geometry: tuple, layout: str) -> None:
    """The bound of `assert_tf32` in test_conv2d.py: seven standard deviations of the rounding."""
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch.op import TABLE

    arrays, parameters = call(geometry)
    given = [on_device(a, "float32") for a in physical(arrays, layout)]
    mine = run_override(NAME, given, parameters).get().astype(np.float64)
    generic: Any = TABLE[NAME]
    wide = [a.astype(np.float32).astype(np.float64) for a in arrays]
    host = backends.load("cpu").F
    true = generic.forward(host, *wide, **parameters)
    squares = generic.forward(host, *[a * a for a in wide], **parameters)
    bound = 6 * 2.0**-11 * np.sqrt(squares) + 1e-6
    share = (np.abs(mine - true) / bound).max()
    assert share < 1, f"{geometry} {layout}: {share} of the bound"


def assert_good(geometry: tuple, layout: str) -> None:
    assert_tf32(geometry, layout)
    arrays, parameters = call(geometry)
    terms = arrays[0].size // arrays[0].shape[1]
    check(NAME, physical(arrays, layout), parameters, ("float16", "bfloat16"),
          slack=8 + math.sqrt(terms) / 2)  # fmt: skip


# Where products of warpgroups serve: more than 32 channels and outputs
LARGE = (
    (66, 64, 64, (8, 8), 1, (1, 1)),
    (40, 64, 128, (16, 16), 1, (1, 1)),
    (70, 64, 64, (32, 32), 1, (1, 1)),  # several sets a block, several stages a set
    (134, 100, 72, (4, 4), 1, (1, 1)),
    (96, 72, 80, (7, 5), 1, (1, 1)),
    (60, 40, 33, (11, 13), 1, (0, 0)),
    (90, 64, 48, (9, 3), 1, (0, 1)),
    (300, 64, 64, (2, 2), 1, (1, 1)),
    (40, 64, 64, (32, 30), 2, (1, 1)),
    (160, 65, 40, (8, 7), 2, (1, 1)),
    (100, 64, 64, (13, 10), 2, (0, 2)),
    (700, 64, 64, (1, 1), 1, (1, 1)),
    (70, 64, 40, (16, 12), 1, (1, 1)),  # a stage's second piece is outside
)
# These too, but not in sets of rows
MARGINS = (
    (90, 48, 64, (3, 4), 1, (2, 2)),  # more than one row and column of padding
    (300, 40, 72, (2, 3), 2, (2, 2)),
)
# Of 1x1: n, c, o, size, stride, padding, taps
SHORTCUTS = (
    (40, 64, 128, (32, 32), 2, (0, 0), 1),
    (130, 72, 80, (8, 8), 2, (0, 0), 1),
    (400, 40, 33, (7, 9), 2, (0, 0), 1),
)


class TestOnAGpu:
    pytestmark = needs_gpu

    @pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
    @pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
    def test_weight_gradient_of_any_geometry_matches_generic(
        self, alone: None, geometry: tuple, layout: str
    ) -> None:
        assert_good(geometry, layout)

    @pytest.mark.parametrize("geometry", [*LARGE, *MARGINS], ids=str)
    def test_weight_gradient_by_warpgroups_matches_generic(
        self, warpgroups: None, geometry: tuple
    ) -> None:
        assert_good(geometry, "channels_last")

    @pytest.mark.parametrize("geometry", SHORTCUTS, ids=str)
    @pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
    def test_weight_gradient_of_shortcuts_matches_generic(
        self, warpgroups: None, geometry: tuple, layout: str
    ) -> None:
        assert_good(geometry, layout)

    @pytest.mark.parametrize("axis", [0, 2, 3])
    def test_weight_gradient_of_expanded_upstream_matches_generic(
        self, alone: None, axis: int
    ) -> None:
        import cupy

        arrays, parameters = call((66, 64, 64, (8, 8), 1, (1, 1)))
        g, x = [on_device(a, "float32") for a in physical(arrays, "channels_last")]
        g = cupy.broadcast_to(cupy.take(g, cupy.array([0]), axis), g.shape)
        mine, other = [run_override(NAME, [these, x], parameters) for these in (g, g.copy())]
        np.testing.assert_array_equal(mine.get(), other.get())

    @pytest.mark.parametrize("geometry", LARGE, ids=str)
    def test_weight_gradient_by_warps_matches_generic(
        self, alone: None, monkeypatch: pytest.MonkeyPatch, geometry: tuple
    ) -> None:
        monkeypatch.setattr(hopper(), "plan", lambda *sizes: None)
        assert_good(geometry, "channels_last")

    @pytest.mark.parametrize("number", range(3))
    @pytest.mark.parametrize("geometry", [GEOMETRIES[3], GEOMETRIES[8]], ids=str)
    def test_weight_gradient_with_every_tile_matches_generic(
        self, alone: None, monkeypatch: pytest.MonkeyPatch, geometry: tuple, number: int
    ) -> None:
        module = window()
        monkeypatch.setattr(hopper(), "plan", lambda *sizes: None)
        monkeypatch.setattr(module, "_TILES", (module._TILES[number],))
        module.plan.cache_clear()
        try:
            assert_good(geometry, "channels_last")
        finally:
            module.plan.cache_clear()

    @pytest.mark.parametrize("axes", [(0,), (2, 3), (0, 2, 3)], ids=str)
    def test_weight_gradient_of_reversed_axes_matches_generic(
        self, alone: None, axes: tuple
    ) -> None:
        import cupy

        arrays, parameters = call((66, 64, 64, (8, 8), 1, (1, 1)))
        given = [on_device(a, "float32") for a in physical(arrays, "channels_last")]
        flipped = [cupy.flip(a, axes) for a in given]
        copies = [cupy.ascontiguousarray(a) for a in flipped]
        mine, other = [run_override(NAME, these, parameters) for these in (flipped, copies)]
        np.testing.assert_array_equal(mine.get(), other.get())

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_weight_gradient_called_twice_gives_the_same_bits(
        self, alone: None, dtype: str
    ) -> None:
        arrays, parameters = call((128, 64, 64, (16, 16), 1, (1, 1)))
        given = [on_device(a, dtype) for a in physical(arrays, "channels_last")]
        first, *others = [run_override(NAME, given, parameters).tobytes() for _ in range(4)]
        assert all(first == other for other in others)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("itemsize", [2, 4])
def test_weight_gradient_slots_hold_the_rows_of_a_set(stride: int, itemsize: int) -> None:
    module, runs = window(), 32 // itemsize
    for height in range(1, 41):
        most = 0
        for first in range(0, 60 * runs * height, runs):
            last = first + runs - 1
            images = last // height - first // height
            rows = (images * height + last % height - first % height) * stride
            most = max(most, rows + 3 + 2 * images)
        made = module.plan(64, 64, 60 * runs * height, height, stride, itemsize, 1, 1 << 20)
        if most > module._MOST_SLOTS:
            assert made is None
        else:
            assert most <= made.slots <= most + stride - 1


def test_weight_gradient_of_few_rows_uses_other_kernels() -> None:
    assert window().plan(64, 64, 16, 4, 1, 4, 132, 232448) is None
    assert window().plan(8, 64, 4096, 32, 1, 4, 132, 232448) is None
    assert hopper().plan(64, 64, 4, 4, 4, 3, 1, 4, 132, 232448) is None


@pytest.mark.parametrize("taps, stride", [(3, 1), (3, 2), (1, 2)])
@pytest.mark.parametrize("itemsize", [2, 4])
def test_weight_gradient_blocks_cover_the_pixels_and_fit(
    taps: int, stride: int, itemsize: int
) -> None:
    resident, shared = 2 if taps == 1 else 1, 232448  # blocks of a multiprocessor; bytes
    for height in range(1, 40, 3):
        for width in range(1, 40, 4):
            made = hopper().plan(100, 72, 600, height, width, taps, stride, itemsize, 132, shared)
            rows, columns, images = (2, 4, 8) if made.by_images else (8, 8, 1)
            assert made.across * columns >= width
            assert made.down * rows >= height
            assert made.steps == made.across * made.down * -(-600 // images)
            assert made.blocks == 4
            assert made.splits <= made.steps
            assert made.stages >= 2
            assert (made.stages * made.stage + 2048) * resident <= shared


def test_weight_gradient_with_less_shared_memory_uses_smaller_tiles() -> None:
    plan = window().plan
    for stride, itemsize in ((1, 4), (1, 2), (2, 4), (2, 2)):
        given = 64, 64, 128 * 32, 32, stride, itemsize, 108
        large, small = plan(*given, 227 * 1024), plan(*given, 99 * 1024)
        assert large.shared <= 227 * 1024
        assert small.shared + window()._STATIC <= 99 * 1024
        assert (small.tile == large.tile) == (large.shared + window()._STATIC <= 99 * 1024)
        assert plan(*given, 8 * 1024) is None
