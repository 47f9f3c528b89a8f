"""Pointwise kernels of a captured graph: neighbours become one, and give what they give apart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import hooks
from tests.kernels.gpu import needs_gpu

pytestmark = needs_gpu


def captured(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What `work` gives when it is replayed, and the kernels that were captured."""
    names: list[str] = []

    def launching(name: str, *rest: Any) -> Callable[[], None]:
        names.append(name)
        return lambda: None

    work()
    graph = tlc.cuda.CUDAGraph()
    hooks.on_launch.append(launching)
    try:
        with tlc.cuda.graph(graph):
            result = work()
    finally:
        hooks.on_launch.remove(launching)
    graph.replay()
    tlc.cuda.synchronize()
    return result, names


def same(ours: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(
        ours.detach().cpu().numpy(), expected.detach().cpu().numpy(), tolerance, tolerance
    )


def given(*shapes: tuple[int, ...]) -> list[Any]:
    tlc.manual_seed(0)
    return [tlc.randn(*shape, device="cuda") for shape in shapes]


def test_a_window_is_read_after_its_memory_is_written() -> None:
    (x,) = given((257, 257))

    def work() -> Any:
        y = x * 2
        return y.as_strided((257, 257), (1, 257)) + 1  # of the same shape, in another order

    result, _ = captured(work)
    same(result, x.T * 2 + 1)


def test_a_chain_is_one_kernel() -> None:
    x, y, row = given((65, 130), (65, 130), (130,))

    def work() -> Any:
        return ((x * 2 + y).relu() - row).exp().clamp(max=9.0)

    result, names = captured(work)
    assert len(names) == 1
    same(result, work())


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(17001, 48), (50, 17002), (6, 50, 8192), (7, 1 << 18)])
def test_operands_that_serve_many_rows(kind: str, shape: tuple[int, ...]) -> None:
    dtype = getattr(tlc, kind)
    channels = shape[1]
    per_channel = (channels,) + (1,) * (len(shape) - 2)
    x, y, mean, scale = given(shape, shape, per_channel, per_channel)
    x, y = x.to(dtype), y.to(dtype)
    mean, scale = mean.to(dtype), scale.to(dtype)

    start = x.clone()

    def work() -> tuple:
        x.copy_(start)
        total = (x - mean) * scale + y
        x.mul_(scale)
        return total.relu(), (y * y + 1).rsqrt() * mean, x * 1

    result, names = captured(work)
    assert len(names) == 1
    for ours, expected in zip(result, work()):
        same(ours.float(), expected.float(), 2e-6 if kind == "float32" else 1e-2)


def test_fused_chain_writes_referenced_intermediates() -> None:
    x, y = given((300,), (300,))

    def work() -> tuple:
        kept = x + y
        last = (kept * 3).tanh()
        return kept, last

    result, names = captured(work)
    assert len(names) == 1
    for ours, expected in zip(result, work()):
        same(ours, expected)


def test_views_of_what_waits() -> None:
    x, y = given((40, 50), (40, 50))

    def work() -> tuple:
        total = x + y
        part = total[:, 3:20] * 2
        turned = total.t() + 1
        return part, turned, (total.view(-1) * 5).view(50, 40)

    for ours, expected in zip(captured(work)[0], work()):
        same(ours, expected)


def test_writes_in_place() -> None:
    x, y = given((1000,), (1000,))
    start = x.clone()

    def work() -> tuple:
        x.copy_(start)
        before = x * 2
        x.mul_(y)
        x.add_(before)
        after = x + 1
        x[:10].zero_()
        return before, after, x * 1

    result, _ = captured(work)
    for ours, expected in zip(result, work()):
        same(ours, expected)
    same(x[10:], (start * y + start * 2)[10:])


def test_an_overlapping_view_is_written_in_order() -> None:
    x = tlc.arange(100.0, device="cuda")
    start = x.clone()

    def work() -> Any:
        x.copy_(start)
        shifted = x[1:] * 2
        x[:-1].add_(shifted)
        return x + 0

    result, _ = captured(work)
    same(result, work())


def test_between_other_kernels() -> None:
    x, w = given((32, 32), (32, 32))

    def work() -> Any:
        h = (x + 1) * 2
        h = (h @ w).relu() * 0.1
        h = h.softmax(1) + h
        total = (h * h).sum(0, keepdim=True)
        return (h - total).sigmoid()

    result, _ = captured(work)
    same(result, work())


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("last", [False, True])
def test_batch_norm_and_residuals(kind: str, last: bool) -> None:
    dtype = getattr(tlc, kind)
    form = tlc.channels_last if last else tlc.contiguous_format
    tlc.manual_seed(0)
    x = tlc.randn(8, 16, 6, 6, device="cuda").to(dtype).contiguous(memory_format=form)
    other = tlc.randn(8, 16, 6, 6, device="cuda").to(dtype).contiguous(memory_format=form)
    g = tlc.randn(8, 16, 6, 6, device="cuda").to(dtype).contiguous(memory_format=form)
    x.requires_grad_(), other.requires_grad_()
    norm = tlc.nn.BatchNorm2d(16).cuda()
    with tlc.no_grad():
        norm.weight.uniform_(), norm.bias.normal_()

    def work() -> tuple:
        y = norm(x)
        y += other
        y = y.relu()
        gradients = tlc.autograd.grad(y, (x, other, norm.weight, norm.bias), g)
        return (y, *gradients)

    result, names = captured(work)
    # moments, (their end,) the rest forward; the mask, sums, (their end,) the rest backward
    assert len(names) <= 6
    tolerance = 2e-5 if kind == "float32" else 4e-2  # it rounds fewer intermediate values
    for ours, expected in zip(result, work()):
        same(ours.float(), expected.float(), tolerance)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(32, 20, 33, 17), (64, 64, 32, 32), (3, 264, 5, 7), (600, 10)])
@pytest.mark.parametrize("joined", ["rectified", "with another", "held"])
def test_sums_of_a_gradient_that_waits(kind: str, shape: tuple[int, ...], joined: str) -> None:
    dtype = getattr(tlc, kind)
    tlc.manual_seed(0)
    x, other, g = [tlc.randn(*shape, device="cuda").to(dtype) for _ in range(3)]
    if len(shape) == 4:
        x, other, g = [v.contiguous(memory_format=tlc.channels_last) for v in (x, other, g)]
    x.requires_grad_(), other.requires_grad_()
    norm = (tlc.nn.BatchNorm2d if len(shape) == 4 else tlc.nn.BatchNorm1d)(shape[1]).cuda()
    with tlc.no_grad():
        norm.weight.uniform_(), norm.bias.normal_()
    inner: Any = []

    def work() -> tuple:
        y = norm(x)
        inner[:] = [y]
        if joined == "with another":
            y = y + other
        y = y.relu()
        wanted = [x, norm.weight, norm.bias]
        wanted += {"rectified": [], "with another": [other], "held": inner}[joined]
        return (y, *tlc.autograd.grad(y * y, wanted, g))

    result, names = captured(work)
    inner.clear()
    names = [name for name in names if "conv2d_pack" not in name]  # gradients laid out anew
    assert names.count("pointwise_batch_norm_sums") == 1 and len(names) <= 7
    tolerance = {"float32": 2e-5, "float16": 5e-3, "bfloat16": 4e-2}[kind]
    for ours, expected in zip(result, work()):
        scale = max(1.0, float(expected.detach().float().abs().max()))
        same(ours.float() / scale, expected.float() / scale, tolerance)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("between", [False, True])
def test_a_convolution_leaves_moments(kind: str, between: bool) -> None:
    tlc.manual_seed(0)
    dtype = getattr(tlc, kind)
    conv = tlc.nn.Conv2d(64, 128, 3, padding=1).cuda().to(dtype)
    norm = tlc.nn.BatchNorm2d(128).cuda()
    x = tlc.randn(64, 64, 16, 16, device="cuda").to(dtype)
    x = x.contiguous(memory_format=tlc.channels_last)

    def work() -> tuple:
        norm.reset_running_stats()
        with tlc.no_grad():
            y = conv(x)
            if between:
                y.mul_(2.0)
            z = norm(y)
        return z, norm.running_mean.clone(), norm.running_var.clone()

    with tlc.backends.cudnn.flags(allow_tf32=True):
        result, names = captured(work)
        normal, *running = zip(result, work())
    if tlc.cuda.get_device_capability() == (9, 0):
        assert any(["forward_moments" in name for name in names]) == between
    same(normal[0].float(), normal[1].float(), 2e-5 if kind == "float32" else 2e-2)
    for ours, expected in running:
        same(ours, expected, 1e-5)


def test_norms_and_counters_wait_for_what_joins_them() -> None:
    tlc.manual_seed(0)
    x = tlc.randn(16, 8, 12, 12, device="cuda")
    convs = [tlc.nn.Conv2d(8, 16, 3, padding=1).cuda() for _ in range(2)]
    norms = [tlc.nn.BatchNorm2d(16).cuda() for _ in range(2)]

    def work() -> Any:
        first, second = [norm(conv(x)) for norm, conv in zip(norms, convs)]
        return (first + second).relu()

    result, names = captured(work)
    formulas = [name for name in names if name.startswith("pointwise")]
    assert formulas == ["pointwise_chain"] * 2  # of the pictures, and of the counted batches
    counted = [int(norm.num_batches_tracked) for norm in norms]
    assert counted == [2, 2]
    same(result, work(), 2e-5)


def test_training_is_the_same() -> None:
    def trained(compiled: bool) -> list:
        tlc.manual_seed(0)
        model = tlc.nn.Sequential(
            tlc.nn.Conv2d(3, 16, 3, padding=1), tlc.nn.BatchNorm2d(16), tlc.nn.GELU(),
            tlc.nn.Conv2d(16, 16, 3, stride=2), tlc.nn.BatchNorm2d(16), tlc.nn.SiLU(),
            tlc.nn.Flatten(), tlc.nn.Linear(16 * 49, 10),
        ).cuda()  # fmt: skip
        optimizer = tlc.optim.NAdam(model.parameters(), lr=1e-3)  # formulas outside of any op
        x = tlc.randn(32, 3, 16, 16, device="cuda")
        y = tlc.randint(10, (32,), device="cuda")

        def step() -> Any:
            optimizer.zero_grad()
            loss = tlc.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = tlc.compile(step) if compiled else step
        return [float(run()) for _ in range(8)]

    np.testing.assert_allclose(trained(True), trained(False), rtol=2e-4)


def test_threads_capture_at_the_same_time() -> None:
    """Each on a stream of its own, while another one computes eagerly."""
    found: list[Any] = []
    done = threading.Event()

    def work(x: Any) -> Any:
        return ((x * 2 + 1).tanh().cumsum(0) * 3 - x).softmax(1).exp() * x

    def capture(seed: int) -> None:
        with tlc.cuda.stream(tlc.cuda.Stream()):
            x = tlc.from_numpy(np.random.default_rng(seed).normal(size=(64, 33))).cuda()
            expected = work(x).cpu().numpy()
            for _ in range(8):
                graph = tlc.cuda.CUDAGraph()
                with tlc.cuda.graph(graph):
                    result = work(x)
                graph.replay()
                found.append(np.abs(result.cpu().numpy() - expected).max())

    def compute() -> None:
        x = tlc.ones(64, 33, device="cuda", dtype=tlc.float64)
        expected = work(x).cpu().numpy()
        while not done.is_set():
            found.append(np.abs(work(x).cpu().numpy() - expected).max())

    threads = [threading.Thread(target=capture, args=(seed,)) for seed in range(3)]
    eager = threading.Thread(target=compute)
    for thread in (*threads, eager):
        thread.start()
    for thread in threads:
        thread.join(60)
    done.set()
    eager.join(60)
    assert len(found) > 3 * 8
    assert max(found) < 1e-12


def test_a_joined_kernel_that_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture survives it, and launches what was to be joined one by one."""
    from cupy.cuda.compiler import CompileException

    from tensorflow_lite_clone.backends.cupy.fusion import launch

    x, y = given((65, 130), (65, 130))
    compiled = launch._function

    def function(name: str, code: str) -> Any:
        if "chain" in name:
            raise CompileException("too large", code, name, ())
        return compiled(name, code)

    def work() -> Any:
        return ((x * 2 + y).relu() - y).exp()

    monkeypatch.setattr(launch, "_function", function)
    with pytest.warns(RuntimeWarning, match="does not compile, and they run one by one"):
        result, names = captured(work)
    assert len(names) >= 4
    same(result, work())
