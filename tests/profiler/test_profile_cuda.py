"""The profiler on a GPU: device times, kernels, memory of the pool, waits, captured graphs."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import profiler

nn = tlc.nn
pytestmark = pytest.mark.cuda


def network() -> nn.Module:
    tlc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16 * 16, 10),
    ).cuda()  # fmt: skip


def step(model: nn.Module, optimizer: tlc.optim.Optimizer, x: tlc.Tensor) -> None:
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def setting() -> tuple[nn.Module, tlc.optim.Optimizer, tlc.Tensor]:
    model = network()
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = tlc.randn(64, 16, 32, 32, device="cuda")
    for _ in range(3):
        step(model, optimizer, x)
    tlc.cuda.synchronize()
    return model, optimizer, x


def test_device_times_are_those_of_events() -> None:
    a = tlc.randn(8192, 8192, device="cuda")
    for _ in range(3):
        a @ a
    begin, end = [tlc.cuda.Event(enable_timing=True) for _ in range(2)]
    with profiler.profile() as found:
        begin.record()
        for _ in range(5):
            a @ a
        end.record()
    (product,) = [e for e in found.key_averages() if e.device_time_total]
    assert product.count == 5
    expected = 1e3 * begin.elapsed_time(end)
    assert product.device_time_total == pytest.approx(expected, rel=0.1)
    assert product.cpu_time_total < expected / 5  # nobody waited
    assert found.waits() == []
    assert "Self CUDA" in found.key_averages().table(sort_by="cuda_time_total")


def test_what_a_step_took_on_the_device_lies_in_its_order() -> None:
    model, optimizer, x = setting()
    with profiler.profile() as found:
        step(model, optimizer, x)
    events = [e for e in found.events() if e.kind in ("op", "backward") and e.device_range]
    starts = [event.device_range.start for event in events]
    assert starts == sorted(starts) and len(events) > 10
    backward = {e.name for e in events if e.kind == "backward"}
    assert {"ConvolutionBackward0", "MaxPool2DWithIndicesBackward0"} <= backward
    (update,) = [e for e in found.events() if e.name == "Optimizer.step#SGD.step"]
    assert update.device_time_total > 0


def test_kernels_and_their_files() -> None:
    model, optimizer, x = setting()
    with profiler.profile(with_kernels=True) as found:
        step(model, optimizer, x)
    files = {event.file for event in found.events() if event.kind == "kernel"}
    assert {"batch_norm.cu", "max_pool_strips.cu", "optimizer.cu"} <= files, files
    (forward,) = [e for e in found.events() if e.name == "batch_norm"]
    launches = [launch for launch in forward.kernels if launch.file == "batch_norm.cu"]
    assert launches and all([launch.duration > 0 for launch in launches])
    assert sum([launch.duration for launch in launches]) <= forward.device_time_total
    names = [event.key for event in found.kernels()]
    assert any(["<" in name for name in names])  # with their template arguments
    assert "batch_norm.cu" in found.report()


def test_without_kernel_times_their_names_are_there() -> None:
    model, optimizer, x = setting()
    with profiler.profile() as found:
        step(model, optimizer, x)
    kernels = found.kernels()
    assert kernels and all([kernel.device_time_total == 0 for kernel in kernels])


def test_memory_peaks_are_those_of_the_pool() -> None:
    model, optimizer, x = setting()
    optimizer.zero_grad()
    tlc.cuda.reset_peak_memory_stats()
    before = tlc.cuda.memory_allocated()
    with profiler.profile(profile_memory=True) as found:
        step(model, optimizer, x)
    tlc.cuda.synchronize()
    events = [event for event in found.memory_events() if event.device == "cuda:0"]
    assert events[0].total_bytes == before
    assert max([e.total_bytes for e in events]) == tlc.cuda.max_memory_allocated()
    assert events[-1].total_bytes == tlc.cuda.memory_allocated()
    conv = next(e for e in found.events() if e.name == "conv")
    assert conv.device_memory_usage >= 64 * 32 * 32 * 32 * 4
    assert any([event.where.startswith(__file__) for event in events])


def test_waits_are_found() -> None:
    x = tlc.randn(1000, device="cuda")
    with profiler.profile() as found:
        total = x.sum()
        for _ in range(3):
            total.item()
        tlc.ones(4).cuda()
        tlc.cuda.synchronize()
    seen = {what: (count, size) for what, where, count, size in found.waits()}
    assert seen["reads a value back"] == (3, 12)
    assert seen["copies from the host"][1] == 16
    assert seen["waits for the device"][0] == 1
    assert all([where.startswith(__file__) for _, where, _, _ in found.waits()])


def test_a_captured_step_is_one_event() -> None:
    model, optimizer, x = setting()
    compiled = tlc.compile(lambda: step(model, optimizer, x))
    for _ in range(3):
        compiled()
    with profiler.profile() as found:
        compiled()
        compiled()
    (replay,) = [e for e in found.key_averages() if e.key == "CUDAGraph.replay"]
    assert replay.count == 2 and replay.device_time_total > 0


def test_capturing_while_a_profile_is_made() -> None:
    model, optimizer, x = setting()
    with profiler.profile(profile_memory=True, with_kernels=True) as found:
        compiled = tlc.compile(lambda: step(model, optimizer, x))
        for _ in range(4):
            compiled()
    assert [e for e in found.events() if e.name == "CUDAGraph.replay"]


def test_traces_show_the_device(tmp_path) -> None:
    import json

    model, optimizer, x = setting()
    with profiler.profile() as found:
        step(model, optimizer, x)
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any([e["ph"] == "X" and e["pid"] == 1 and e["dur"] > 0 for e in events])
