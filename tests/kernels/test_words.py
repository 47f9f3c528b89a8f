"""CuPy's words: what they share, what they cost under capture, and where CuPy's own differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import needs_gpu

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

CUDA = "cuda:0"
F = tlc.nn.functional


def primitives() -> Any:
    from tensorflow_lite_clone import backends

    return backends.load(CUDA).F


def captured(function: Any) -> Any:
    """A graph of a function that ran once before."""
    function()
    graph = tlc.cuda.CUDAGraph()
    with tlc.cuda.graph(graph):
        function()
    return graph


def host(x: Any) -> np.ndarray:
    return x.cpu().numpy()


JOINED = {
    "cat": lambda x, i: tlc.cat([x * k for k in range(12)], 1),
    "cat of several sizes": lambda x, i: tlc.cat([x[: 1 + k % 3] for k in range(12)]),
    "cat of views": lambda x, i: tlc.cat([x.T] * 12, -1),
    "stack": lambda x, i: tlc.stack([x * k for k in range(12)]),
    "stack last": lambda x, i: tlc.stack([x * k for k in range(12)], -1),
}
OTHERS = {
    "masked_fill": lambda x, i: x.masked_fill(x > 0, -math.inf),
    "masked_fill of rows": lambda x, i: x.masked_fill(x[:, :1] > 0, 2.0),
    "remainder": lambda x, i: x.half() % 2.0,
    "floor_divide": lambda x, i: (x.half() // 1.5).float(),
    "bfloat16 remainder": lambda x, i: (x.bfloat16() % 2.0).float(),
    "scatter": lambda x, i: x.scatter(1, i, 3.0),
    "scatter_reduce": lambda x, i: x.scatter_reduce(1, i, x * 2, "prod", include_self=False),
    "index_fill": lambda x, i: x.index_fill(0, i[0, :1], 5.0),
}


@pytest.mark.parametrize("name", [*JOINED, *OTHERS])
def test_captured(name: str) -> None:
    function = {**JOINED, **OTHERS}[name]
    rng = np.random.default_rng(0)
    x = tlc.zeros(4, 5, device=CUDA)
    index = tlc.tensor(np.array([[0, 2], [1, 1], [4, 3], [2, 0]]), device=CUDA)
    index = index if name != "scatter_reduce" else index[:, :1]
    out = tlc.empty_like(function(x, index))
    graph = captured(lambda: out.copy_(function(x, index)))
    for _ in range(3):
        new = rng.standard_normal((4, 5)).astype(np.float32) * 3
        x.copy_(tlc.tensor(new))  # transfers go on as before, into memory of their own
        graph.replay()
        expected = function(tlc.tensor(new), index.cpu())
        np.testing.assert_allclose(host(out), expected.float().numpy(), rtol=1e-2, atol=1e-2)


WINDOWS = {
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, size=(7, 3)),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    "avg_pool3d": lambda x: F.avg_pool3d(x[None], 2, padding=1, count_include_pad=False),
    "max_pool2d with places": lambda x: F.max_pool2d(x, 2, return_indices=True)[1].float(),
    "reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_constants_of_a_capture(name: str) -> None:
    function = WINDOWS[name]
    rng = np.random.default_rng(0)
    x = tlc.zeros(2, 3, 5, 4, device=CUDA)
    out = tlc.empty_like(function(x))
    graph = captured(lambda: out.copy_(function(x)))
    for _ in range(3):
        new = rng.standard_normal((2, 3, 5, 4)).astype(np.float32)
        x.copy_(tlc.tensor(new))
        others = [tlc.tensor(np.full(64, 1 << 40), device=CUDA) for _ in range(50)]
        graph.replay()
        expected = function(tlc.tensor(new)).numpy()
        np.testing.assert_allclose(host(out), expected, rtol=1e-4, atol=1e-5)
        del others


def test_joined_one_by_one() -> None:
    from tensorflow_lite_clone.backends.cupy.primitives import indexing

    arrays = [cupy.full((3, 1 + k % 4, 2), k, np.float16) for k in range(11)]
    for axis in (1, -2):
        mine = indexing._joined(arrays, axis)
        assert (mine == cupy.concatenate(arrays, axis)).all() and mine.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool", "int64", "uint8"])
@pytest.mark.parametrize("dims", [0, 1, 2, 3])
def test_masks_are_filled_without_a_count(dims: int, dtype: str) -> None:
    rng = np.random.default_rng(dims)
    start = rng.integers(0, 5, (3, 4, 2))
    mask = np.asarray(rng.integers(0, 2, (3, 4, 2)[:dims]).astype(bool))
    for value in (np.array(1), np.arange(2))[: 1 + (dims < 3)]:
        x = tlc.tensor(start).to(getattr(tlc, dtype))
        given = tlc.tensor(value).to(x.dtype)
        expected = x.cdouble().numpy()
        expected[mask] = given.cdouble().numpy()
        for y in (x.to(CUDA), x.to(CUDA).permute(2, 0, 1).contiguous().permute(1, 2, 0)):
            array = y._storage.array
            primitives().write_at(array, cupy.asarray(mask), given.to(CUDA)._storage.array)
            np.testing.assert_array_equal(host(y.cdouble()), expected)


def test_a_mask_of_nothing() -> None:
    x = tlc.zeros(3, 0, device=CUDA)
    assert x.masked_fill(x > 0, 1.0).shape == (3, 0)
    graph = captured(lambda: x.masked_fill(x > 0, 1.0))
    graph.replay()


@pytest.mark.parametrize("name", ["round", "sign", "floor", "ceil", "trunc", "clone", "abs"])
def test_results_are_no_aliases(name: str) -> None:
    for dtype in (tlc.int64, tlc.uint8, *([tlc.bool] if name in ("sign", "clone") else [])):
        x = tlc.ones(3, dtype=dtype, device=CUDA)
        getattr(x, name)().zero_()
        assert x.tolist() == [1, 1, 1]


def test_floats_wrap_around_in_bytes_as_on_the_host() -> None:
    x = tlc.tensor([-1.0, -130.5, 0.0, 255.9, 256.0, 300.0])
    for dtype in (tlc.float32, tlc.float64, tlc.bfloat16, tlc.float16):
        y = x.to(CUDA, dtype)
        assert y.to(tlc.uint8).tolist() == x.to(dtype).to(tlc.uint8).tolist()
        z = tlc.empty(6, dtype=tlc.uint8, device=CUDA)
        assert z.copy_(y).tolist() == y.to(tlc.uint8).tolist()


def test_places_along_a_negative_axis() -> None:
    values, index = cupy.arange(1.0, 7.0).reshape(3, 2), cupy.asarray([[0, 3], [2, 1], [1, 0]])
    last = primitives().put_along_axis(values, index, axis=-1, size=4)
    assert (last == primitives().put_along_axis(values, index, axis=1, size=4)).all()
    assert last.get().tolist() == [[1, 0, 0, 2], [0, 4, 3, 0], [6, 5, 0, 0]]


def test_softplus_of_no_slope() -> None:
    x = tlc.tensor([-1.0, 2.0], device=CUDA)
    assert F.softplus(x, beta=0.0).tolist() == [math.inf] * 2


def test_a_tensor_lent_in_a_capture() -> None:
    x, out = tlc.ones(64, device=CUDA), tlc.zeros(64, device=CUDA)

    def step() -> None:
        y = x * 2
        y.record_stream(tlc.cuda.current_stream())
        out.copy_(y)

    graph = captured(step)
    graph.replay()
    x.record_stream(tlc.cuda.current_stream())  # asks of what was lent before
    tlc.cuda.synchronize()
    x.record_stream(tlc.cuda.current_stream())
    assert out.tolist() == [2.0] * 64
