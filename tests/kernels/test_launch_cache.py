"""Launchers that are remembered: what is done again, and what is not."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

import cupy

from tensorflow_lite_clone.backends.cupy import batch_norm, convolution, launch_cache
from tensorflow_lite_clone.backends.cupy.kernel import unknown, watch
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.kernels.signature import Parameter
from tests.kernels.gpu import why_not

_REASON = why_not()
needs_gpu = pytest.mark.skipif(bool(_REASON), reason=str(_REASON))
FLOAT = np.dtype(np.float32)


class Played:
    """An instance of a kernel (const float* x, int n, float* y) that is never launched."""

    kernel = SimpleNamespace(source=None)
    parameters: tuple = (
        Parameter("x", "float", True, True),
        Parameter("n", "int", False),
        Parameter("y", "float", True),
    )
    address, version = 77, 3

    def current_version(self) -> int:
        return self.version

    def __call__(self, grid: int, x: Any, n: int, y: Any) -> None:
        if watch.launches is not None:
            watch.launches.append((self, (grid,), (32,), (x, n, y), 0))

    def given(self, struct: Any, y: Any) -> None:
        """Another kernel's launch."""
        kernel = Played()
        kernel.parameters = (Parameter("s", "Addresses", False), Parameter("y", "float", True))
        if watch.launches is not None:
            watch.launches.append((kernel, (1,), (32,), (struct, y), 0))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list]:
    """The launches that were done again, as (grid, x, n, y); arrays lie in the host's memory."""

    def allocate(size: int) -> Any:
        held = np.zeros(size + 512, np.uint8)
        memory = cupy.cuda.UnownedMemory(-(-held.ctypes.data // 512) * 512, max(size, 1), held, 0)
        return cupy.cuda.MemoryPointer(memory, 0)

    done: list[tuple] = []

    def launch(function: int, *values: Any) -> None:
        addresses = (ctypes.c_void_p * 3).from_address(values[8])
        kinds: Any = ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
        x, n, y = [kind.from_address(at).value for kind, at in zip(kinds, addresses)]
        done.append((values[0], x, n, y))

    monkeypatch.setattr(launch_cache, "launch", launch)
    monkeypatch.setattr(launch_cache, "get_device", lambda: 0)
    monkeypatch.setattr(launch_cache, "get_current_stream", lambda: SimpleNamespace(ptr=0))
    with cupy.cuda.using_allocator(allocate):
        yield done


def test_cached_launch_takes_memory_and_launches_kernels(launched: list) -> None:
    kernel, calls = Played(), []

    @launch_cache.cached_launches
    def launcher(F: Any, x: Any, *, factor: int) -> tuple:
        calls.append(factor)
        middle, y = cupy.ndarray((4,), FLOAT), cupy.ndarray((2, 3), FLOAT)
        kernel(5, x, factor, middle)
        kernel(6, middle[1:], 2, y)
        return y.T, x, None

    for factor in (1, 2):
        for number in range(4):
            x = cupy.ndarray((3,), FLOAT)
            y, same, nothing = launcher(None, x, factor=factor)
            assert same is x and nothing is None
            assert (y.shape, y.strides, y.dtype) == ((3, 2), (4, 12), FLOAT)
            if number >= 2:
                (_, read, n, middle), (grid, second, _, written) = launched[-2:]
                assert (read, n, grid) == (x.data.ptr, factor, 6)
                assert (second, written) == (middle + 4, y.data.ptr)
    assert calls == [1, 1, 2, 2]
    assert len(launched) == 8
    kernel.version = 4  # the file was edited
    launcher(None, cupy.ndarray((3,), FLOAT), factor=2)
    assert calls == [1, 1, 2, 2, 2]
    assert len(launched) == 8
    launcher(None, cupy.ndarray((4,), FLOAT), factor=2)
    assert len(calls) == 6


def test_traced_launch_gives_the_launchers_result(launched: list) -> None:
    kernel, calls = Played(), []

    @launch_cache.cached_launches
    def launcher(F: Any, x: Any) -> Any:
        calls.append(x)
        y = cupy.ndarray(x.shape, FLOAT)
        kernel(1, x, 0, y)
        return y

    x = cupy.ndarray((3,), FLOAT)
    for _ in range(3):
        launcher(None, x)
    assert (len(calls), len(launched)) == (2, 1)
    watcher = lambda *told: lambda: None
    hooks.on_launch.append(watcher)
    try:
        launcher(None, x)
    finally:
        hooks.on_launch.remove(watcher)
    assert (len(calls), len(launched)) == (3, 1)


def test_cached_launches_of_a_nested_launcher_are_left_to_the_outer(launched: list) -> None:
    kernel, calls = Played(), []

    @launch_cache.cached_launches
    def inner(F: Any, x: Any) -> Any:
        calls.append("inner")
        y = cupy.ndarray(x.shape, FLOAT)
        kernel(1, x, 0, y)
        return y

    @launch_cache.cached_launches
    def outer(F: Any, x: Any) -> Any:
        calls.append("outer")
        y = cupy.ndarray(x.shape, FLOAT)
        kernel(2, inner(F, x), 0, y)
        return y

    for _ in range(3):
        inner(None, cupy.ndarray((3,), FLOAT))
    calls.clear()
    launched.clear()
    for _ in range(3):
        outer(None, cupy.ndarray((3,), FLOAT))
    assert calls == ["outer", "outer", "inner"]  # not watched, inner was done again
    assert [grid for grid, *_ in launched] == [1, 1, 2]


def copied(kernel: Any, x: Any, y: Any) -> Any:
    made, copy = cupy.ndarray((3,), FLOAT), cupy.ndarray((3,), FLOAT)  # which CuPy has filled
    kernel(1, copy, 0, made)
    return made


def unwritten(kernel: Any, x: Any, y: Any) -> Any:
    return cupy.ndarray((3,), FLOAT)


def view(kernel: Any, x: Any, y: Any) -> Any:
    return x[1:]


def elsewhere(kernel: Any, x: Any, y: Any) -> Any:
    made = cupy.ndarray((3,), FLOAT)
    kernel(1, OUTSIDE[0], 0, made)
    return made


def zeroed(kernel: Any, x: Any, y: Any) -> Any:
    made = cupy.ndarray((3,), FLOAT)
    with suppress(cupy.cuda.runtime.CUDARuntimeError):  # without a GPU
        made.data.memset_async(0, 0)
    kernel(1, x, 0, made)
    return made


def struct(kernel: Any, x: Any, y: Any) -> Any:
    made = cupy.ndarray((3,), FLOAT)
    kernel.given(np.array([0, made.data.ptr + 4]).view("V16"), made)
    return made


def told(kernel: Any, x: Any, y: Any) -> Any:
    made = cupy.ndarray((3,), FLOAT)  # which CuPy has filled, and the kernel changes
    kernel(1, x, 0, made)
    unknown()
    return made


def declined(kernel: Any, x: Any, y: Any) -> Any:
    return NotImplemented


def twice(kernel: Any, x: Any, y: Any) -> Any:
    made = cupy.ndarray((3,), FLOAT)
    kernel(1, x, 0, made)
    return made, made


def listed(kernel: Any, x: Any, y: Any) -> Any:
    return [x]


OUTSIDE: list = []


@pytest.mark.parametrize(
    "body",
    [copied, unwritten, view, elsewhere, zeroed, struct, told, declined, twice, listed],
)
def test_launch_cache_skips_unrepeatable_launches(launched: list, body: Any) -> None:
    OUTSIDE[:] = [cupy.ndarray((3,), FLOAT)]
    calls = []

    @launch_cache.cached_launches
    def launcher(F: Any, x: Any, y: Any) -> Any:
        calls.append(x)
        return body(Played(), x, y)

    for _ in range(4):
        launcher(None, cupy.ndarray((3,), FLOAT), None)
    assert (len(calls), launched) == (4, [])


def test_cached_launches_of_operands_that_share_memory_are_not_kept(launched: list) -> None:
    kernel, calls = Played(), []

    @launch_cache.cached_launches
    def launcher(F: Any, x: Any, y: Any) -> Any:
        calls.append(x)
        made = cupy.ndarray((3,), FLOAT)
        kernel(1, x, 0, made)
        kernel(1, y, 0, made)
        return made

    x = cupy.ndarray((3,), FLOAT)
    for _ in range(3):
        launcher(None, x, x)  # which of them a kernel reads cannot be told
    assert (len(calls), launched) == (3, [])


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_cached_launches_of_convolutions_give_the_same_bits(
    dtype: str, last: bool, stride: int
) -> None:
    settings = {"stride": (stride, stride), "padding": (1, 1), "dilation": (1, 1), "groups": 1}

    def random(*shape: int) -> Any:
        x = cupy.random.standard_normal(shape).astype(dtype)
        return x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2) if last else x

    for _ in range(4):
        x, w = random(8, 32, 16, 16), random(64, 32, 3, 3)
        g = random(8, 64, 16 // stride, 16 // stride)
        calls: Any = (
            (convolution.conv, (x, w, None), {}),
            (convolution.conv_backward_input, (g, w), {"size": (16, 16)}),
            (convolution.conv_backward_weight, (g, x), {"kernel": (3, 3)}),
        )
        for launcher, arrays, more in calls:
            expected = launcher.__wrapped__(None, *arrays, **more, **settings)
            cupy.cuda.alloc(expected.nbytes).memset(255, expected.nbytes)  # for the next to take
            found = launcher(None, *arrays, **more, **settings)
            assert found.strides == expected.strides
            cupy.testing.assert_array_equal(found, expected)


@pytest.mark.cuda
@needs_gpu
def test_cached_launches_with_copied_weights_match_uncached_ones() -> None:
    settings = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    launcher: Any = convolution.conv
    for _ in range(4):
        x, w = [cupy.random.standard_normal((64, 64, 4, 4), np.float32) for _ in "xw"]
        w = w[:, :, ::4, ::4]
        expected = launcher.__wrapped__(None, x, w, None, **settings)
        cupy.cuda.alloc(w.nbytes).memset(255, w.nbytes)
        cupy.testing.assert_array_equal(launcher(None, x, w, None, **settings), expected)


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("step", [1, 2])
def test_cached_launches_of_batch_norms_give_the_same_bits(step: int) -> None:
    forward: Any = batch_norm.batch_norm
    backward: Any = batch_norm.batch_norm_backward
    for _ in range(4):
        x, g = [cupy.random.standard_normal((8, 32, 9, 9), np.float32) for _ in "xg"]
        w, b = [cupy.random.standard_normal(32, np.float32) for _ in "wb"]
        mean = cupy.random.standard_normal(32 * step, np.float32)
        running = [[mean.copy()[::step], abs(mean)[::step]] for _ in range(2)]
        expected, found = [
            call(None, x, w, b, *statistics, momentum=0.1, eps=1e-5)
            for call, statistics in zip((forward.__wrapped__, forward), running)
        ]
        for one, other in zip((*expected, *running[0]), (*found, *running[1]), strict=True):
            cupy.testing.assert_array_equal(one, other)
        needs = {"eps": 1e-5, "needs": (True, True, False)}
        arrays = g, x, w, *expected[1:3]
        expected = backward.__wrapped__(None, *arrays, **needs)
        found = backward(None, *arrays, **needs)
        assert expected[2] is None and found[2] is None
        for one, other in zip(expected[:2], found):
            cupy.testing.assert_array_equal(one, other)
