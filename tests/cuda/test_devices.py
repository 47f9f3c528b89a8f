"""``torch.cuda``: devices, transfers, streams, events, memory, switches."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import tensorflow_lite_clone as torch
from tests.tools.markdown import ROOT

pytestmark = pytest.mark.cuda


def test_devices():
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
    assert torch.cuda.current_device() == 0
    found = torch.cuda.get_device_properties(0)
    assert found.name == torch.cuda.get_device_name() and found.total_memory > 1 << 30
    assert torch.cuda.get_device_capability() == (found.major, found.minor)
    assert torch.cuda.get_arch_list() == [f"sm_{found.major}{found.minor}"]
    x = torch.ones(2, device="cuda")
    assert x.device == torch.device("cuda:0") and x.is_cuda and x.get_device() == 0
    with torch.cuda.device(0), torch.cuda.device_of(x):
        assert torch.ones(1).cuda().device.index == 0


def test_a_device_that_does_not_exist():
    count = torch.cuda.device_count()
    for use in (
        lambda: torch.ones(2, device=f"cuda:{count}"),
        lambda: torch.ones(2).to(f"cuda:{count}"),
        lambda: torch.cuda.set_device(count),
    ):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            use()


def test_mixed_devices():
    with pytest.raises(RuntimeError, match=r"same device.*cuda:0 and cpu.*add"):
        torch.ones(2, device="cuda") + torch.ones(2)
    x = torch.ones(2, device="cuda") + torch.tensor(1.0)  # a zero-dim tensor is a number
    assert x.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_transfers(pinned, non_blocking):
    host = torch.randn(64, 33)
    source = host.pin_memory() if pinned else host
    assert source.is_pinned() == pinned
    x = source.to("cuda", non_blocking=non_blocking)
    back = x.to("cpu", non_blocking=non_blocking)
    torch.cuda.synchronize()
    assert torch.equal(back, host)
    assert torch.equal(x.cpu(), host)
    y = torch.empty(64, 33, device="cuda")
    y.copy_(source, non_blocking=non_blocking)
    assert torch.equal(y.cpu(), host)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_transfers_keep_the_dtype(non_blocking):
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.bool, torch.complex64):
        x = torch.arange(5).to(dtype)
        there = x.to("cuda", non_blocking=non_blocking)
        back = there.to("cpu", non_blocking=non_blocking)
        torch.cuda.synchronize()
        assert there.dtype == back.dtype == dtype and torch.equal(back, x)


def test_a_number_comes_back_while_the_program_goes_on():
    loss = torch.full((), 2.5, device="cuda")
    back = loss.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    assert back.shape == () and back.item() == 2.5


def test_transfers_keep_dense_layouts():
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    for made in (x.cuda(), x.cuda().cpu(), x.mT.cuda().mT, x.pin_memory().to("cuda", None, True)):
        assert made.stride() == x.stride()
        assert torch.equal(made.cpu(), x)
    y = x[:, :, ::2].cuda()
    assert torch.equal(y.cpu(), x[:, :, ::2])


def test_gradients_cross_devices():
    w = torch.ones(3, requires_grad=True)
    (w.cuda() * torch.arange(3.0, device="cuda")).sum().cpu().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [0.0, 1.0, 2.0]


def test_streams_and_events():
    stream = torch.cuda.Stream()
    before = torch.cuda.current_stream()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    x = torch.ones(1 << 20, device="cuda")
    stream.wait_stream(before)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream != before
        start.record()
        for _ in range(20):
            x = x + 1
        end.record()
        x.record_stream(before)
    assert torch.cuda.current_stream() == before == torch.cuda.default_stream()
    end.synchronize()
    assert stream.query() and end.query() and start.elapsed_time(end) > 0
    before.wait_stream(stream)
    assert x.sum().item() == 21.0 * (1 << 20)
    with pytest.raises(ValueError, match="enable_timing"):
        torch.cuda.Event().elapsed_time(end)
    with torch.cuda.nvtx.range("step {}", 1):
        torch.cuda.nvtx.mark("here")


def test_memory_that_another_stream_uses_later():
    """What is queued after `record_stream` and before the tensor goes counts as well."""
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()
    weight = torch.randn(4096, 4096, device="cuda")
    sums = []
    for number in range(12):
        with torch.cuda.stream(side):
            x = torch.full((1 << 20,), float(number), device="cuda")
        here.wait_stream(side)
        x.record_stream(here)
        for _ in range(3):  # the program's stream is behind
            weight = (weight @ weight).clamp(-1, 1)
        sums.append((x - number).abs().sum())
        del x
    assert torch.stack(sums).tolist() == [0.0] * 12
    used = torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # which looks for what nobody uses any more
    assert torch.cuda.memory_allocated() <= used - (4 << 20)


def test_peaks_of_memory_count_from_the_first_allocation():
    program = """
import tensorflow_lite_clone as torch
x = torch.empty(1 << 24, device="cuda")
y = torch.empty(1 << 24, device="cuda")
del x, y
torch.cuda.empty_cache()
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    allocated, reserved = map(int, done.stdout.split())
    assert 2 << 26 <= allocated <= reserved


def test_memory_figures():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 22, device="cuda")
    y = torch.empty(1 << 22, device="cuda")
    assert torch.cuda.memory_allocated() - before == 2 << 24
    del y
    assert torch.cuda.memory_allocated() - before == 1 << 24
    assert torch.cuda.max_memory_allocated() - before == 2 << 24
    assert torch.cuda.memory_reserved() >= 2 << 24
    assert torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    assert "allocated by tensors" in torch.cuda.memory_summary()
    held = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < held
    del x


def test_peaks_count_what_was_released_again():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.empty(1 << 24, device="cuda")
    torch.empty(1 << 22, device="cuda")
    most = torch.cuda.max_memory_allocated()
    assert before + (1 << 26) <= most < before + (1 << 26) + (1 << 24)
    assert torch.cuda.memory_allocated() == before
    torch.cuda.empty_cache()
    assert torch.cuda.max_memory_reserved() >= most > torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()


def test_out_of_memory_leaves_the_process_usable():
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate .* GiB.*pool holds"):
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    assert torch.ones(3, device="cuda").sum().item() == 3.0


def test_random_states():
    torch.cuda.manual_seed_all(3)
    x = torch.rand(100, device="cuda")
    state = torch.cuda.get_rng_state()
    y = torch.rand(100, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(100, device="cuda"), y) and not torch.equal(x, y)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(100, device="cuda"), x) and torch.cuda.initial_seed() == 3
    with torch.random.fork_rng():
        torch.rand(10, device="cuda")
    assert torch.equal(torch.rand(100, device="cuda"), y)


def test_switches():
    assert not torch.backends.cuda.matmul.allow_tf32
    x, y = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    true = x.cpu().numpy().astype(np.float64) @ y.cpu().numpy().astype(np.float64)

    def error():
        return float(np.abs((x @ y).cpu().numpy() - true).max())

    exact = error()
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.backends.cuda.matmul.allow_tf32
        rounded = error()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.get_float32_matmul_precision() == "highest"
    assert exact < 1e-4 < rounded
    before = torch.backends.cudnn.allow_tf32
    with torch.backends.cudnn.flags(allow_tf32=not before):
        assert torch.backends.cudnn.allow_tf32 != before
    assert torch.backends.cudnn.allow_tf32 == before
    with pytest.raises(RuntimeError, match="highest, high, medium"):
        torch.set_float32_matmul_precision("low")


def test_a_thread_whose_first_work_is_a_kernel() -> None:
    torch.rand(1000, device="cuda")  # compiled, so that the thread does nothing but launch
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.append(torch.rand(1000, device="cuda").sum().item()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all([400 < total < 600 for total in found])
