"""torch.cuda.CUDAGraph, graph and make_graphed_callables on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.errors import CaptureError
from tests.cuda.programs import adam, assert_same, host, labels, network, plain, state_of, tensor

pytestmark = pytest.mark.cuda
nn, F = tlc.nn, tlc.nn.functional
CUDA = "cuda:0"


def graph_of(function: Any, **options: Any) -> Any:
    """A graph of a function that ran once before: its kernels are compiled."""
    function()
    made = tlc.cuda.CUDAGraph()
    with tlc.cuda.graph(made, **options):
        function()
    return made


def test_a_capture_executes_nothing_and_a_replay_everything() -> None:
    x, total = tlc.ones(3, device=CUDA), tlc.zeros(3, device=CUDA)
    graph = graph_of(lambda: total.add_(x * 2))
    assert total.tolist() == [2.0] * 3
    for _ in range(3):
        graph.replay()
    assert total.tolist() == [8.0] * 3
    x.fill_(5.0)
    graph.replay()
    assert total.tolist() == [18.0] * 3


def test_a_chain_whose_memory_is_used_again() -> None:
    x = tensor(CUDA, 0, 64, 64)
    out = tlc.empty(64, 64, device=CUDA)

    def chain() -> None:
        y = x
        for _ in range(50):
            y = (y @ x).tanh()
        out.copy_(y)

    graph = graph_of(chain)
    for seed in range(3):
        x.copy_(tensor(CUDA, seed, 64, 64) / 8)
        graph.replay()
        found = host(out)
        noise = [tlc.full((64, 64), 1e9, device=CUDA) for _ in range(20)]  # others' memory
        chain()
        np.testing.assert_allclose(found, host(out), rtol=1e-4, atol=1e-5)
        del noise


def test_memory_that_was_freed_in_a_capture_belongs_to_the_graph() -> None:
    x, out = tlc.ones(1 << 16, device=CUDA), tlc.zeros(1 << 16, device=CUDA)
    graph = graph_of(lambda: out.copy_(x.exp().log() + 1))
    held = [tlc.full((1 << 16,), 7.0, device=CUDA) for _ in range(8)]
    graph.replay()
    np.testing.assert_allclose(host(out), 2.0, rtol=1e-5)
    for value in held:
        assert float(value.min()) == float(value.max()) == 7.0


def test_random_numbers_are_new_at_every_replay() -> None:
    x, out = tlc.ones(256, device=CUDA), tlc.zeros(256, device=CUDA)
    graph = graph_of(lambda: out.copy_(F.dropout(x, 0.5)))
    drawn = []
    for _ in range(4):
        graph.replay()
        drawn.append(tuple(out.tolist()))
    assert len(set(drawn)) == 4


def test_graphs_share_a_pool() -> None:
    pool = tlc.cuda.graph_pool_handle()
    x, out = tlc.ones(8, device=CUDA), tlc.zeros(8, device=CUDA)
    one = graph_of(lambda: out.copy_((x + 1) * 2), pool=pool)
    two = graph_of(lambda: out.add_((x + 2) * 3), pool=one.pool())
    assert one.pool() is two.pool() is pool
    for _ in range(2):
        one.replay()
        two.replay()
        assert out.tolist() == [13.0] * 8


@pytest.mark.parametrize("what", ["item", "tolist", "mask", "cpu", "tensor", "synchronize"])
def test_capture_refuses_synchronization_and_process_continues(what: str) -> None:
    x = tlc.ones(4, device=CUDA)
    (x + 1).mul_(2)
    asks: dict[str, Any] = {
        "item": lambda: x.sum().item(),
        "tolist": lambda: x.tolist(),
        "mask": lambda: x[x > 0],
        "cpu": lambda: x.cpu(),
        "tensor": lambda: tlc.tensor([1.0, 2.0], device=CUDA),
        "synchronize": lambda: tlc.cuda.synchronize(),
    }
    graph = tlc.cuda.CUDAGraph()
    with pytest.raises(RuntimeError) as caught, tlc.cuda.graph(graph):
        y = x + 1
        asks[what]()
        y.mul_(2)
    if what != "mask":
        assert isinstance(caught.value, CaptureError)
        assert f"'{what}'" in str(caught.value)
    assert not tlc.cuda.is_current_stream_capturing()
    # sorts and reductions look at the runtime's last error
    assert x.sort()[0].tolist() == [1.0] * 4 and float(x.sum()) == 4.0
    with tlc.cuda.graph(graph):
        x.mul_(2)
        assert tlc.cuda.is_current_stream_capturing()
    graph.replay()
    assert x.tolist() == [2.0] * 4


def test_the_default_stream_cannot_be_captured() -> None:
    graph = tlc.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    stream = tlc.cuda.Stream()
    x = tlc.ones(2, device=CUDA)
    x.add_(1)
    x.zero_()
    tlc.cuda.synchronize()
    with tlc.cuda.stream(stream):
        graph.capture_begin()
        x.add_(1)
        graph.capture_end()
        graph.replay()
    stream.synchronize()
    assert x.tolist() == [1.0, 1.0]
    other = graph_of(lambda: x.add_(1), stream=stream)
    other.replay()
    assert x.tolist() == [3.0, 3.0]


def test_a_capture_takes_the_memory_of_its_work_alone() -> None:
    """A stream that no product has run on gets no workspace for products."""
    x = tlc.ones(1024, device=CUDA)
    stream = tlc.cuda.Stream()
    before = tlc.cuda.memory_allocated()
    graph = graph_of(lambda: x.add_(1), stream=stream)
    assert tlc.cuda.memory_allocated() - before < 1 << 20
    y = tlc.ones(64, 64, device=CUDA)
    out = tlc.empty(64, 64, device=CUDA)
    product = graph_of(lambda: out.copy_(y @ y), stream=stream)
    graph.replay(), product.replay()
    assert out.sum().item() == 64.0**3


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown capture error mode"):
        graph_of(lambda: None, capture_error_mode="strict")
    graph_of(lambda: None, capture_error_mode="relaxed")


def test_a_graph_is_drawn(tmp_path: Any) -> None:
    x = tlc.ones(3, device=CUDA)
    graph = graph_of(lambda: x.add_(1))
    graph.debug_dump(tmp_path / "graph.dot")
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.replay()


def test_a_whole_step_by_hand() -> None:
    """Capture with static inputs, as PyTorch's documentation does it."""

    def run(captured: bool) -> dict[str, np.ndarray]:
        model = network(CUDA)
        model[3].p = 0.0
        optimizer = adam(model)
        step = plain(model, optimizer)
        x, y = tensor(CUDA, 0, 8, 6), labels(CUDA, 0, 8)
        graph = graph_of(lambda: step(x, y)) if captured else step(x, y)
        for i in range(1, 30):
            x.copy_(tensor(CUDA, i, 8, 6))
            y.copy_(labels(CUDA, i, 8))
            if i == 10:
                optimizer.param_groups[0]["lr"] = 0.002
            if captured:
                graph.replay()
            else:
                step(x, y)
        return state_of(model)

    assert_same(run(True), run(False), rtol=2e-3, atol=2e-4)


def test_a_graphed_module_trains_as_before() -> None:
    def run(graphed: bool) -> dict[str, np.ndarray]:
        model = network(CUDA)
        model[3].p = 0.0
        optimizer = adam(model)
        call = model
        if graphed:
            state = {name: value.clone() for name, value in model.state_dict().items()}
            call = tlc.cuda.make_graphed_callables(model, (tensor(CUDA, 0, 8, 6),))
            model.load_state_dict(state)
        for i in range(20):
            optimizer.zero_grad()
            F.cross_entropy(call(tensor(CUDA, i, 8, 6)), labels(CUDA, i, 8)).backward()
            optimizer.step()
        model.eval()
        found = state_of(model)
        found["evaluated"] = host(call(tensor(CUDA, 50, 3, 6)))
        return found

    assert_same(run(True), run(False), rtol=2e-3, atol=2e-4)


def test_graphed_functions_in_a_row() -> None:
    w = tensor(CUDA, 5, 3).requires_grad_()
    samples = tuple((tensor(CUDA, i, 3).requires_grad_(),) for i in range(2))
    square, twice = tlc.cuda.make_graphed_callables(
        (lambda x: (x * x, x + 1), lambda x: x * 2), samples
    )
    for i in range(3):
        x = tensor(CUDA, 10 + i, 3).requires_grad_()
        w.grad = None
        one, other = square(x * w)
        (twice(one) + other).sum().backward()
        value = host(x) * host(w)
        np.testing.assert_allclose(host(x.grad), (4 * value + 1) * host(w), rtol=1e-5)
        np.testing.assert_allclose(host(w.grad), (4 * value + 1) * host(x), rtol=1e-5)


def test_live_numbers_of_many_replays_are_each_their_own() -> None:
    """More replays than the pinned memory has rows, with the host far ahead of the device."""
    from tensorflow_lite_clone.core import dynamic_scalar

    rate = [0.0]
    total, big = tlc.zeros((), device=CUDA), tlc.ones(1 << 22, device=CUDA)

    def work() -> None:
        number: Any = dynamic_scalar.dynamic_scalar(lambda: rate[0])
        big.mul_(1.0)  # keeps the device busy
        total._storage.array += getattr(number, "device_value", total._storage.array)

    graph = graph_of(work)
    total.zero_()
    for i in range(500):
        rate[0] = float(i)
        graph.replay()
    assert total.item() == sum(range(500))


def test_the_first_draw_may_be_captured() -> None:
    """The generator, whose state is written when it is made, is made before the capture."""
    backend = backends.load(CUDA)
    made, backend._generator = backend._generator, None
    try:
        x = tlc.empty(64, device=CUDA)
        graph = tlc.cuda.CUDAGraph()
        with tlc.cuda.graph(graph):
            x.uniform_()
        drawn = set()
        for _ in range(3):
            graph.replay()
            drawn.add(tuple(x.tolist()))
        assert len(drawn) == 3
    finally:
        backend._generator = made
