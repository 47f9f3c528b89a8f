"""Two GPUs: streams, events, page-locked memory, figures and graphs of each."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core.errors import CaptureError
from tests.cuda.sweep import data
from tests.cuda.two_devices import ONE, ZERO, cuda_0_is_current, home

pytestmark = [pytest.mark.cuda, pytest.mark.multi_gpu]
__all__ = ["cuda_0_is_current"]  # a fixture for every test here
nn = tlc.nn


# ---- streams, events, pinned memory


def test_streams() -> None:
    streams = [tlc.cuda.Stream(i) for i in (0, 1)]
    defaults = [tlc.cuda.current_stream(i) for i in (0, 1)]
    assert streams[0] != streams[1] and defaults[0] != defaults[1]
    assert streams[1].device == tlc.device(ONE)
    x = tlc.ones(1 << 20, device=ONE)
    tlc.cuda.synchronize(1)
    with tlc.cuda.stream(streams[1]):
        assert tlc.cuda.current_device() == 1 and tlc.cuda.current_stream() == streams[1]
        assert tlc.cuda.current_stream(0) == defaults[0]
        for _ in range(5):
            x = x + 1
        with tlc.cuda.stream(streams[0]):
            assert tlc.cuda.current_device() == 0
            assert [tlc.cuda.current_stream(i) for i in (0, 1)] == streams
            y = x * 2  # still on cuda:1's stream
        assert home(y) == 1 and tlc.cuda.current_stream() == streams[1]
        tlc.cuda.set_device(0)  # the end of the block undoes this
    assert tlc.cuda.current_device() == 0
    assert [tlc.cuda.current_stream(i) for i in (0, 1)] == defaults
    defaults[1].wait_stream(streams[1])
    y.record_stream(defaults[1])
    assert y.sum().item() == 12.0 * (1 << 20)
    tlc.cuda.set_stream(streams[1])
    assert tlc.cuda.current_device() == 1 and tlc.cuda.current_stream() == streams[1]
    tlc.cuda.set_stream(defaults[1])
    assert tlc.cuda.current_stream(1) == defaults[1]
    tlc.cuda.set_device(0)


def test_memory_that_a_stream_of_the_other_device_uses() -> None:
    side = tlc.cuda.Stream(1)
    x = tlc.ones(1 << 22, device="cuda:0")
    used = tlc.cuda.memory_allocated(0)
    x.record_stream(side)
    del x
    tlc.cuda.synchronize(1)
    tlc.cuda.empty_cache()
    assert tlc.cuda.memory_allocated(0) <= used - (4 << 22)


def test_events() -> None:
    """Of default streams too, whose pointers are equal."""
    x = tlc.ones(1 << 22, device=ONE)
    for stream in (tlc.cuda.default_stream(1), tlc.cuda.Stream(1)):
        start, end = (tlc.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(stream)
        with tlc.cuda.stream(stream):
            for _ in range(20):
                x = x + 1
        end.record(stream)
        tlc.cuda.current_stream(0).wait_event(end)  # across devices
        end.wait(tlc.cuda.Stream(0))
        end.synchronize()
        assert end.query() and stream.query() and start.elapsed_time(end) > 0
        stream.synchronize()
        tlc.cuda.default_stream(0).wait_stream(stream)
    assert x[0].item() == 41.0
    with tlc.cuda.device(1):
        event = tlc.cuda.current_stream().record_event()
    event.wait()
    tlc.cuda.synchronize(ONE)
    tlc.cuda.synchronize()


def test_pinned_memory() -> None:
    host = data(64, 33).pin_memory()
    assert host.is_pinned() and host.pin_memory(ONE).is_pinned()
    x = host.to(ONE, non_blocking=True)
    back = x.T.to("cpu", non_blocking=True)
    tlc.cuda.synchronize(1)
    assert home(x) == 1 and tlc.equal(back.T, host) and back.is_pinned()
    tlc.ones(1, device=ZERO)
    dataset = tlc.utils.data.TensorDataset(data(10, 3), tlc.arange(10))
    loader = tlc.utils.data.DataLoader(dataset, batch_size=4, pin_memory=True)
    for number, (values, labels) in enumerate(loader):
        assert values.is_pinned() and labels.is_pinned()
        there = values.to(ONE, non_blocking=True)
        tlc.cuda.synchronize(1)
        assert tlc.equal(there.cpu(), dataset.tensors[0][4 * number : 4 * number + 4])


# ---- memory


def test_memory_figures() -> None:
    gc.collect()
    tlc.cuda.empty_cache()
    before = [tlc.cuda.memory_allocated(i) for i in (0, 1)]
    for i in (0, 1):
        tlc.cuda.reset_peak_memory_stats(i)
    x = tlc.empty(1 << 22, device=ONE)
    y = x.to(ONE)
    assert y is x
    now = [tlc.cuda.memory_allocated(i) for i in (0, 1)]
    assert now[0] == before[0] and now[1] - before[1] == 1 << 24
    assert tlc.cuda.max_memory_allocated(ONE) == now[1]
    assert tlc.cuda.max_memory_allocated(ZERO) == before[0]
    held = tlc.cuda.memory_reserved(1)
    assert "cuda:1" in tlc.cuda.memory_summary(1)
    free, total = tlc.cuda.mem_get_info(1)
    assert 0 < free < total
    del x, y
    tlc.cuda.empty_cache()  # of all devices
    assert tlc.cuda.memory_reserved(1) < held
    assert tlc.cuda.current_device() == 0


def test_out_of_memory_on_the_other_device() -> None:
    with pytest.raises(tlc.cuda.OutOfMemoryError, match="GPU 1 has a total capacity"):
        tlc.empty(1 << 45, dtype=tlc.uint8, device=ONE)
    assert tlc.cuda.current_device() == 0
    assert tlc.ones(3, device=ONE).sum().item() == 3.0 == tlc.ones(3, device=ZERO).sum().item()


# ---- graphs


def test_a_graph_on_the_other_device() -> None:
    x, w = data(32, 64).to(ONE), data(64, 64, seed=1).to(ONE)
    out = tlc.zeros(32, 64, device=ONE)

    def work() -> None:
        out.copy_((x @ w).softmax(1) + tlc.rand(32, 64, device=ONE) * 0)

    work()
    expected = out.clone()
    early = tlc.cuda.CUDAGraph()  # before its device is current
    for graph, options in (
        (tlc.cuda.CUDAGraph(device=ONE), {}),
        (early, {"stream": tlc.cuda.Stream(1)}),
    ):
        with tlc.cuda.graph(graph, **options):
            assert tlc.cuda.is_current_stream_capturing()
            work()
        assert tlc.cuda.current_device() == 0
        out.zero_()
        graph.replay()  # while cuda:0 is current
        tlc.cuda.synchronize(1)
        assert tlc.equal(out, expected)
    again = tlc.cuda.CUDAGraph()
    with tlc.cuda.device(1):
        with tlc.cuda.graph(again):
            work()
        x.mul_(2)
        again.replay()
        found = out.clone()
        work()
    assert tlc.equal(found, out)


def test_copies_between_devices_are_not_captured() -> None:
    x = tlc.ones(3, device=ZERO)
    graph = tlc.cuda.CUDAGraph(device=ONE)
    with pytest.raises(CaptureError, match="copies from another device"), tlc.cuda.graph(graph):
        x.to(ONE)
    assert x.to(ONE).sum().item() == 3.0


def test_graphed_callables_on_the_other_device() -> None:
    layer = nn.Linear(8, 4).to(ONE)
    x = data(2, 8).to(ONE)
    (expected,) = tlc.autograd.grad(layer(x).square().sum(), layer.weight)
    graphed = tlc.cuda.make_graphed_callables(layer, (tlc.zeros(2, 8, device=ONE),))
    for _ in range(2):
        layer.weight.grad = None
        graphed(x).square().sum().backward()
        assert home(layer.weight.grad) == 1 and tlc.cuda.current_device() == 0
        np.testing.assert_allclose(
            layer.weight.grad.cpu().numpy(), expected.cpu().numpy(), rtol=1e-4, atol=1e-4
        )


def test_work_for_the_other_device_within_a_capture() -> None:
    """It runs at once; what waits on the captured device is captured there all the same."""
    x, z = data(32, 64).to(ZERO), data(32, 64, seed=1).to(ONE)
    expected = (x * 2 + 1).tanh(), z.softmax(1)
    graph = tlc.cuda.CUDAGraph()
    with tlc.cuda.graph(graph):
        y = (x * 2 + 1).tanh()
        at_once = z.softmax(1)
    x.mul_(1)
    graph.replay()
    assert tlc.equal(y, expected[0]) and tlc.equal(at_once, expected[1])
