"""torch.compile on a GPU: captured steps train as steps that are not captured."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.cuda import programs
from tests.cuda.programs import (
    adam,
    assert_same,
    host,
    in_place,
    labels,
    network,
    plain,
    state_of,
    step_first,
    tensor,
    zero_last,
)

pytestmark = pytest.mark.cuda
nn, F = tlc.nn, tlc.nn.functional
CUDA = "cuda:0"
# Kernels that add by atomics differ from run to run, and Adam divides by small numbers.
NEAR = {"rtol": 5e-3, "atol": 5e-4}


def trained(make: Any, steps: int, compiled: bool, **options: Any) -> tuple:
    return programs.trained(CUDA, make, steps, compiled, **options)


def forms(step: Any) -> list:
    return [form for entry in step._entries.values() for form in entry.variants]


@pytest.mark.parametrize("make", [plain, in_place, zero_last])
def test_a_step_trains_as_without_capture(make: Any) -> None:
    """100 steps with dropout: the same random numbers are drawn either way."""
    losses, state, _, _ = trained(make, 100, False)
    found, compiled_state, step, _ = trained(make, 100, True)
    np.testing.assert_allclose(found[:20], losses[:20], rtol=1e-3, atol=1e-4)
    assert_same(compiled_state, state, **NEAR)
    assert 1 <= len(forms(step)) <= 2


def test_a_step_that_uses_the_last_calls_gradients() -> None:
    _, state, _, _ = trained(step_first, 12, False)
    _, compiled_state, _, _ = trained(step_first, 12, True, fullgraph=False)
    assert_same(compiled_state, state, **NEAR)


def test_batches_of_two_sizes() -> None:
    def size(i: int) -> int:
        return 5 if i % 4 == 3 else 8

    losses, state, _, _ = trained(plain, 24, False, batch=size)
    found, compiled_state, step, _ = trained(plain, 24, True, batch=size)
    np.testing.assert_allclose(found, losses, rtol=1e-3, atol=1e-4)
    assert_same(compiled_state, state, **NEAR)
    assert len(forms(step)) == 2


def test_gradients_accumulate_across_calls() -> None:
    assert_same(programs.accumulated(CUDA, True), programs.accumulated(CUDA, False), **NEAR)


def test_a_schedule_needs_one_capture() -> None:
    def run(compiled: bool) -> tuple[dict[str, np.ndarray], Any]:
        model = network(CUDA)
        optimizer = adam(model)
        schedule = tlc.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
        step = plain(model, optimizer)
        step = tlc.compile(step, fullgraph=True) if compiled else step
        programs.seed(CUDA, 1)
        for i in range(20):
            step(tensor(CUDA, i, 8, 6), labels(CUDA, i, 8))
            schedule.step()
        return state_of(model), step

    state, step = run(True)
    assert_same(state, run(False)[0], **NEAR)
    assert len(forms(step)) == 1


def test_a_module_with_loss_and_optimizer_outside() -> None:
    losses, state = programs.called(CUDA, False)
    found, compiled_state = programs.called(CUDA, True)
    np.testing.assert_allclose(found[:20], losses[:20], rtol=1e-3, atol=1e-3)
    assert_same(compiled_state, state, **NEAR)


def test_a_convolutional_network_in_channels_last() -> None:
    def run(compiled: bool) -> dict[str, np.ndarray]:
        tlc.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 25, 10),
        ).to(CUDA)  # fmt: skip
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        step = plain(model, optimizer)
        step = tlc.compile(step, fullgraph=True) if compiled else step
        for i in range(20):
            x = tensor(CUDA, i, 8, 1, 14, 14).contiguous(memory_format=tlc.channels_last)
            step(x, labels(CUDA, i, 8, 10))
        return state_of(model)

    assert_same(run(True), run(False), **NEAR)


def test_a_transformer() -> None:
    def run(compiled: bool) -> list[float]:
        tlc.manual_seed(0)
        layer = nn.TransformerEncoderLayer(
            16, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        model = nn.Sequential(encoder, nn.Flatten(), nn.Linear(7 * 16, 3)).to(CUDA)
        step = plain(model, adam(model))
        step = tlc.compile(step, fullgraph=True) if compiled else step
        return [
            step(tensor(CUDA, i, 4, 7, 16), labels(CUDA, i, 4)).item() for i in range(20)
        ]

    np.testing.assert_allclose(run(True), run(False), rtol=5e-3, atol=1e-3)


def test_results_are_copies() -> None:
    @tlc.compile(fullgraph=True)
    def several(x: tlc.Tensor) -> dict[str, Any]:
        return {"twice": 2 * x, "turned": x.T, "same": x}

    results = [several(tensor(CUDA, i, 2, 3)) for i in range(6)]
    for i, result in enumerate(results):
        expected = host(tensor(CUDA, i, 2, 3))
        np.testing.assert_array_equal(host(result["twice"]), 2 * expected)
        np.testing.assert_array_equal(host(result["turned"]), expected.T)
        np.testing.assert_array_equal(host(result["same"]), expected)


def test_expanded_and_sliced_arguments() -> None:
    total = tlc.compile(lambda x: (x * x).sum(0), fullgraph=True)
    for i in range(4):
        x = tensor(CUDA, i, 4, 6)
        for view in (x[:, ::2], x[:1].expand(3, 6), x.T):
            np.testing.assert_allclose(host(total(view)), (host(view) ** 2).sum(0), rtol=1e-5)


def test_memory_of_others_is_left_alone() -> None:
    _, _, step, model = trained(plain, 3, True)
    held = [tlc.full((1 << 12,), float(i), device=CUDA) for i in range(32)]
    for i in range(20):
        step(tensor(CUDA, i, 8, 6), labels(CUDA, i, 8))
    for i, value in enumerate(held):
        assert float(value.min()) == float(value.max()) == float(i)


def test_seeds_decide_the_dropout_of_replays() -> None:
    drop = tlc.compile(lambda x: F.dropout(x, 0.5), fullgraph=True)
    x = tlc.ones(128, device=CUDA)
    drop(x), drop(x)
    runs = []
    for _ in range(2):
        tlc.manual_seed(5)
        runs.append([drop(x).tolist() for _ in range(3)])
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1] != runs[0][2]
    tlc.manual_seed(5)
    assert F.dropout(x, 0.5).tolist() == runs[0][0]


def test_reading_back_falls_back_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    model = network(CUDA)
    inner = plain(model, adam(model))

    @tlc.compile
    def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        loss = inner(x, y)
        return loss if loss.item() > -1 else -loss

    losses, state, _, _ = trained(plain, 6, False)
    programs.seed(CUDA, 1)
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        found = [step(tensor(CUDA, i, 8, 6), labels(CUDA, i, 8)).item() for i in range(6)]
    np.testing.assert_allclose(found, losses, rtol=1e-3, atol=1e-4)
    assert_same(state_of(model), state, **NEAR)
    assert len(caplog.records) == 1 and "'item'" in caplog.records[0].message


def test_errors_that_only_cupy_knows_fall_back(caplog: pytest.LogCaptureFixture) -> None:
    positive = tlc.compile(lambda x: x[x > 0].sum())
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        for i in range(4):
            x = tensor(CUDA, i, 50)
            values = host(x)
            assert positive(x).item() == pytest.approx(values[values > 0].sum(), rel=1e-5)
    assert len(caplog.records) == 1


def test_a_replay_costs_the_host_little() -> None:
    """Far less than the step by itself: the limit is loose, for machines that do other things."""
    _, _, step, _ = trained(plain, 4, True)
    x, y = tensor(CUDA, 0, 8, 6), labels(CUDA, 0, 8)
    for _ in range(3):
        step(x, y)
    best = 1.0
    for _ in range(20):
        tlc.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(10):
            step(x, y)
        best = min(best, (time.perf_counter() - begin) / 10)
    print(f"host time of a replay: {best * 1e6:.1f} us")
    assert best < 100e-6
