"""Convolutions and their gradients beside the generic forms: geometries, layouts, every tile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone.core.flags import flags
from tests.kernels.gpu import ALL, Laid, check, needs_gpu, on_device, run_override

pytestmark = needs_gpu

# n, c, o, size, kernel, stride, padding, dilation, groups
GEOMETRIES = (
    (2, 3, 5, (7, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 1, 32, (28, 28), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    (2, 32, 64, (13, 13), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    (2, 16, 32, (16, 16), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (2, 64, 128, (9, 9), (1, 1), (2, 2), (0, 0), (1, 1), 1),
    (3, 12, 10, (1, 1), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 4, 6, (9, 8), (3, 2), (2, 3), (0, 1), (2, 1), 2),  # sizes no stride divides
    (1, 3, 4, (5, 11), (5, 4), (3, 4), (4, 3), (1, 2), 1),
    (2, 5, 7, (6, 6), (1, 1), (2, 2), (0, 0), (1, 1), 1),
    (2, 8, 8, (10, 10), (2, 2), (5, 4), (0, 0), (1, 1), 2),  # a stride beyond the kernel
    (1, 6, 4, (3, 3), (5, 5), (1, 1), (2, 2), (1, 1), 2),  # a kernel beyond the input
    (1, 17, 9, (12, 1), (3, 1), (2, 1), (2, 0), (3, 1), 1),
    (2, 4, 4, (9, 9), (3, 3), (4, 4), (1, 1), (2, 2), 1),  # stride and dilation share a factor
    (2, 24, 16, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1), 8),
    (2, 4, 6, (9,), (4,), (3,), (2,), (2,), 2),
    (2, 8, 8, (40,), (3,), (1,), (1,), (1,), 1),
)
LAYOUTS = ("contiguous", "channels_last", "transposed", "sliced", "offset")
# rows, columns, warps down, warps across
TILES = ((128, 128, 2, 4), (128, 64, 4, 2), (64, 64, 2, 2), (128, 32, 4, 1))
PLAIN_TILES = ((128, 128, 16, 16), (128, 64, 16, 16), (64, 64, 16, 16), (128, 32, 16, 8))
DOUBLE_TILES = ((64, 64, 16, 16), (64, 32, 16, 8))
WEIGHT_TILES = ((128, 128, 2, 4), (64, 64, 2, 2), (32, 128, 1, 4))
PLAIN_WEIGHT_TILES = ((128, 128, 16, 16), (64, 64, 16, 16), (32, 128, 8, 16))
DOUBLE_WEIGHT_TILES = ((64, 64, 16, 16), (32, 64, 8, 16))


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """float32 products are float32's."""
    before, flags.cudnn_allow_tf32 = flags.cudnn_allow_tf32, False
    yield
    flags.cudnn_allow_tf32 = before


@pytest.fixture(autouse=True)
def without_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hopper's kernels have tests of their own."""
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy import convolution_hopper

    monkeypatch.setattr(convolution_hopper, "is_supported", lambda *_: False)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def calls(geometry: tuple) -> list[tuple[str, list, dict]]:
    """The three ops of a convolution: name, host arrays (the activation first), parameters."""
    n, c, o, size, kernel, stride, padding, dilation, groups = geometry
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w, b = normal(n, c, *size), normal(o, c // groups, *kernel), normal(o)
    count = [
        (m + 2 * p - d * (k - 1) - 1) // s + 1
        for m, k, s, p, d in zip(size, kernel, stride, padding, dilation)
    ]
    g = normal(n, o, *count)
    return [
        ("conv", [x, w, b], settings),
        ("conv_backward_input", [g, w], {"size": size, **settings}),
        ("conv_backward_weight", [g, x], {"kernel": kernel, **settings}),
    ]


def compare(
    name: str, arrays: list, parameters: dict, dtypes: tuple = ALL, layouts: tuple = ()
) -> None:
    """`check`, with room for one running sum where the generic form adds up several shorter ones.

    Such a sum of K terms is off by some sqrt(K) / 4 units in the last place of the largest result.
    """
    x, w = arrays[0].shape, arrays[1].shape
    if name == "conv_backward_weight":
        terms = x[0] * math.prod(x[2:])
    else:
        terms = math.prod(w) // (w[0] if name == "conv" else w[1])
    check(name, physical(arrays, *layouts), parameters, dtypes, slack=8 + math.sqrt(terms) / 2)


def physical(arrays: list, *layouts: str) -> list:
    layouts += ("contiguous",) * (len(arrays) - len(layouts))
    return [a if kind == "contiguous" else Laid(a, kind) for a, kind in zip(arrays, layouts)]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_conv2d_of_any_geometry_matches_generic(geometry: tuple) -> None:
    for name, arrays, parameters in calls(geometry):
        compare(name, arrays, parameters)
        if len(geometry[3]) == 2:
            compare(name, arrays, parameters, ALL, ("channels_last", "channels_last"))


def test_conv2d_without_bias() -> None:
    name, (x, w, _), parameters = calls(GEOMETRIES[0])[0]
    check(name, [x, w, None], parameters)


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_conv2d_of_any_layout_matches_generic(first: str, second: str) -> None:
    geometry = (2, 8, 16, (8, 8), (4, 4), (2, 2), (1, 1), (1, 1), 1)
    for name, arrays, parameters in calls(geometry):
        compare(name, arrays, parameters, ("float32", "float16"), (first, second))


def test_conv2d_of_expanded_operands_matches_generic() -> None:
    for name, arrays, parameters in calls(GEOMETRIES[3]):
        compare(name, arrays, parameters, ("float32",), ("expanded", "expanded"))


@pytest.mark.parametrize("last", [(False, False), (True, False), (False, True), (True, True)])
def test_conv2d_result_is_channels_last_where_an_operand_is(last: tuple) -> None:
    layouts = ["channels_last" if kind else "contiguous" for kind in last]
    for name, arrays, parameters in calls((2, 8, 12, (6, 5), (3, 3), (1, 1), (1, 1), (1, 1), 1)):
        given = [on_device(a, "float32") for a in physical(arrays, *layouts)]
        result = run_override(name, given, parameters)
        # Gradients of weights are row-major while results may lie otherwise than they are told.
        rows = name == "conv_backward_weight" or not any(last)
        moved = result if rows else result.transpose(0, 2, 3, 1)
        assert moved.flags.c_contiguous, name


def force(monkeypatch: pytest.MonkeyPatch, **tiles: tuple) -> None:
    """Let the launchers know one tile only."""
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy import convolution

    for name, tile in tiles.items():
        monkeypatch.setattr(convolution, name, (convolution._Tile._make((*tile, 1.0)),))
    convolution._choose.cache_clear()
    convolution._choose_split.cache_clear()


@pytest.fixture
def forget() -> Iterator[None]:
    """Drop what was chosen under `force`; requested before `monkeypatch`."""
    yield
    from tensorflow_lite_clone.backends.cupy import convolution

    convolution._choose.cache_clear()
    convolution._choose_split.cache_clear()


# More rows and columns than the largest tile, and a tail of each
LARGE = (
    (2, 24, 136, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 21, 71, (12, 11), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (1, 150, 33, (7, 9), (1, 1), (1, 1), (0, 0), (1, 1), 1),
)


def each_tile(names: tuple, dtypes: tuple) -> None:
    for geometry in LARGE:
        for name, arrays, parameters in calls(geometry):
            if name in names:
                compare(name, arrays, parameters, dtypes)
                compare(name, arrays, parameters, dtypes, ("channels_last", "channels_last"))


@pytest.mark.parametrize("number", range(4))
def test_conv2d_with_every_tile_matches_generic(
    forget: None, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    double = DOUBLE_TILES[number % 2]
    force(monkeypatch, _TENSOR=TILES[number], _PLAIN=PLAIN_TILES[number], _DOUBLE=double)
    each_tile(("conv", "conv_backward_input"), ALL)


@pytest.mark.parametrize("number", range(3))
def test_conv2d_weight_gradient_with_every_tile_matches_generic(
    forget: None, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    double = DOUBLE_WEIGHT_TILES[number % 2]
    force(
        monkeypatch, _WEIGHT_TENSOR=WEIGHT_TILES[number], _WEIGHT_PLAIN=PLAIN_WEIGHT_TILES[number],
        _WEIGHT_DOUBLE=double,
    )  # fmt: skip
    each_tile(("conv_backward_weight",), ALL)


@pytest.mark.parametrize("number", range(4))
def test_conv2d_tf32_tiles_match_generic(
    forget: None, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    force(monkeypatch, _TENSOR=TILES[number], _WEIGHT_TENSOR=WEIGHT_TILES[number % 3])
    for geometry in LARGE:
        assert_tf32(geometry, "contiguous")
        assert_tf32(geometry, "channels_last")


@pytest.mark.parametrize("splits_of", [(16, 16, 16, 32), (8, 3, 16, 32), (300, 4, 4, 5)])
def test_conv2d_weight_gradient_over_many_pixels_is_split(splits_of: tuple) -> None:
    n, c, o, size = splits_of
    geometry = (n, c, o, (size, size), (3, 3), (1, 1), (1, 1), (1, 1), 1)
    name, arrays, parameters = calls(geometry)[2]
    compare(name, arrays, parameters, ("float32", "float16"))
    compare(name, arrays, parameters, ("float32",), ("channels_last", "channels_last"))


def run(name: str, arrays: list, parameters: dict, dtype: str = "float32") -> Any:
    return run_override(name, [on_device(a, dtype) for a in arrays], parameters)


def assert_tf32(geometry: tuple, layout: str) -> float:
    """TF32 is as good as it can be; returns the largest error relative to its bound.

    Rounding to 11 bits changes an operand by at most 2^-11 of it, evenly spread: a standard
    deviation of 2^-11 / sqrt(3), for a product of two sqrt(2 / 3) 2^-11 |x w|. The errors of a sum
    are independent: sqrt(2 / 3) 2^-11 sqrt(sum (x w)^2). Six times 2^-11 sqrt(...) is seven of
    these deviations, and is more than the 2 * 2^-11 that a single product may be off.
    """
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch.op import TABLE

    host, worst = backends.load("cpu").F, 0.0
    flags.cudnn_allow_tf32 = True
    for name, arrays, parameters in calls(geometry):
        arrays = [a.astype(np.float32) for a in arrays]
        if name == "conv":
            arrays[2][:] = 0
        mine = run(name, physical(arrays, layout, layout), parameters).get().astype(np.float64)
        entry: Any = TABLE[name]
        wide = [a.astype(np.float64) for a in arrays]
        true = entry.forward(host, *wide, **parameters)
        squares = entry.forward(host, *[a * a for a in wide], **parameters)
        bound = 6 * 2.0**-11 * np.sqrt(squares) + 1e-6
        share = (np.abs(mine - true) / bound).max()
        assert share < 1, f"{name} {geometry} {layout}: {share} of the bound"
        worst = max(worst, share)
    return worst


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_conv2d_with_tf32_allowed_is_rounded(geometry: tuple) -> None:
    assert_tf32(geometry, "contiguous")
    if len(geometry[3]) == 2:
        assert_tf32(geometry, "channels_last")


def test_conv2d_reads_the_tf32_flag_at_each_call() -> None:
    _, arrays, parameters = calls(GEOMETRIES[2])[0]
    exact = run("conv", arrays, parameters)
    flags.cudnn_allow_tf32 = True
    rounded = run("conv", arrays, parameters)
    difference = float(abs(exact - rounded).max() / abs(exact).max())
    assert 2.0**-16 < difference < 2.0**-8


def test_conv2d_with_tf32_keeps_nan_and_infinity() -> None:
    flags.cudnn_allow_tf32 = True
    name, (x, w, b), parameters = calls(GEOMETRIES[0])[0]
    x[0, 0, 3, 3], x[1, 0, 3, 3] = np.nan, np.inf
    y = run(name, [x, np.abs(w) + 1, b], parameters).get()
    assert np.isnan(y[0, :, 2:5, 2:5]).all()
    assert np.isposinf(y[1, :, 2:5, 2:5]).all()
    assert np.isfinite(y[0, :, 5:]).all()


@pytest.mark.parametrize("allowed", [False, True])
def test_conv2d_called_twice_gives_the_same_bits(allowed: bool) -> None:
    flags.cudnn_allow_tf32 = allowed
    for name, arrays, parameters in calls((8, 16, 32, (32, 32), (3, 3), (1, 1), (1, 1), (1, 1), 1)):
        for dtype in ("float32", "bfloat16"):
            given = [on_device(a, dtype) for a in arrays]
            results = [run_override(name, given, parameters) for _ in range(3)]
            first, *others = [r.transpose(0, 2, 3, 1).ravel().view(np.uint8) for r in results]
            assert all(bool((first == other).all()) for other in others), (name, dtype)


def test_conv2d_transposed_with_output_padding_matches_generic() -> None:
    """A transposed convolution's size that no window reaches is filled with zeros."""
    w, g = normal(4, 6, 2, 2), normal(2, 4, 3, 3)
    parameters = {"size": (12, 13), "stride": (4, 4), "padding": (0, 0), "dilation": (1, 1)}
    check("conv_backward_input", [g, w], {**parameters, "groups": 1})


@pytest.mark.parametrize(
    ("arrays", "size"),
    [
        ([normal(2, 3, 4, 4, 4), normal(3, 3, 1, 1, 1), None], 3),
        ([np.ones((2, 3, 4, 4), np.int64), np.ones((3, 3, 1, 1), np.int64), None], 2),
        ([np.ones((2, 3, 4, 4), complex), np.ones((3, 3, 1, 1), complex), None], 2),
        ([normal(0, 3, 4, 4), normal(3, 3, 1, 1), None], 2),
    ],
)
def test_conv2d_declines_unsupported_operands(arrays: list, size: int) -> None:
    parameters = {"stride": (1,) * size, "padding": (0,) * size, "dilation": (1,) * size}
    result = run("conv", arrays, {**parameters, "groups": 1})
    assert result is NotImplemented
