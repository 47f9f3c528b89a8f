"""torch.cuda.CUDAGraph and make_graphed_callables, on the tape device."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tests.tape_backend  # noqa: F401  the device
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core import dynamic_scalar
from tensorflow_lite_clone.core.errors import CaptureError
from tensorflow_lite_clone.dispatch import capture, hooks
from tests.cuda.programs import adam, assert_same, host, labels, network, seed, state_of, tensor

nn, F = tlc.nn, tlc.nn.functional


def graph_of(function: Any) -> Any:
    made = tlc.cuda.CUDAGraph(device="tape")
    with tlc.cuda.graph(made):
        function()
    return made


def test_a_capture_executes_nothing_and_a_replay_everything() -> None:
    x, total = tlc.ones(3).to("tape"), tlc.zeros(3).to("tape")
    graph = graph_of(lambda: total.add_(x * 2))
    assert total.tolist() == [0.0] * 3
    for _ in range(3):
        graph.replay()
    assert total.tolist() == [6.0] * 3
    x.fill_(5.0)
    graph.replay()
    assert total.tolist() == [16.0] * 3


def test_random_numbers_are_new_at_every_replay() -> None:
    noise = tlc.zeros(8).to("tape")
    graph = graph_of(lambda: noise.copy_(F.dropout(tlc.ones(8, device="tape"), 0.5)))
    seed("tape", 3)
    drawn = []
    for _ in range(4):
        graph.replay()
        drawn.append(tuple(noise.tolist()))
    assert len(set(drawn)) > 1


def test_a_live_number_is_read_at_every_replay() -> None:
    rate = [1.0]
    out = tlc.zeros(()).to("tape")
    backend = out._storage.backend

    def work() -> None:
        number: Any = dynamic_scalar.dynamic_scalar(lambda: rate[0])
        backend.write(out._storage.array, number.device_value)

    graph = graph_of(work)
    for value in (2.0, 3.0):
        rate[0] = value
        graph.replay()
        assert out.item() == value
    assert dynamic_scalar.recorder is None


def test_a_number_that_was_frozen_is_warned_of() -> None:
    rate = [1.0]
    x = tlc.ones(()).to("tape")
    graph = graph_of(lambda: x.mul_(dynamic_scalar.dynamic_scalar(lambda: rate[0])))
    graph.replay()
    rate[0] = 2.0
    with pytest.warns(UserWarning, match="has changed since"):
        graph.replay()
    graph.replay()
    assert x.item() == 1.0


def test_capture_refuses_synchronization_and_ends() -> None:
    x = tlc.ones(3).to("tape")
    graph = tlc.cuda.CUDAGraph(device="tape")
    for ask, word in (
        (lambda: x.sum().item(), "'item'"),
        (lambda: x.tolist(), "'tolist'"),
        (lambda: tlc.tensor([1.0, 2.0], device="tape"), "'tensor'"),
        (lambda: x.cpu(), "'cpu'"),
    ):
        with pytest.raises(CaptureError, match=word), tlc.cuda.graph(graph):
            ask()
        assert capture.state.graph is None and not hooks.around_op
        assert not tlc.cuda.is_current_stream_capturing()
    assert issubclass(CaptureError, RuntimeError)
    assert x.sum().item() == 3.0
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with tlc.cuda.graph(graph):  # the object is as good as new
        x.mul_(2)
        assert tlc.cuda.is_current_stream_capturing()
    graph.replay()
    assert x.tolist() == [2.0] * 3


def test_other_threads_are_not_bound_by_a_capture() -> None:
    x = tlc.ones(3)
    found = []
    graph = tlc.cuda.CUDAGraph(device="tape")
    with tlc.cuda.graph(graph):
        thread = threading.Thread(target=lambda: found.append((x + 1).sum().item()))
        thread.start()
        thread.join()
    assert found == [6.0]


def test_captures_are_not_nested() -> None:
    graph, other = (tlc.cuda.CUDAGraph(device="tape") for _ in range(2))
    with pytest.raises(RuntimeError, match="captured in this thread already"):  # noqa: SIM117
        with tlc.cuda.graph(graph):
            with tlc.cuda.graph(other):
                pass
    assert capture.state.graph is None and not hooks.around_op


def test_a_graph_is_captured_once() -> None:
    graph = graph_of(lambda: None)
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin()
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.replay()
    with tlc.cuda.graph(graph, pool=graph.pool()):
        pass
    graph.replay()


def test_a_graph_is_drawn(tmp_path: Path) -> None:
    graph = graph_of(lambda: None)
    graph.enable_debug_mode()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")


def test_devices_without_graphs() -> None:
    with pytest.raises(RuntimeError, match="captured in graphs"):
        tlc.cuda.CUDAGraph(device="cpu")


# ---- make_graphed_callables


def run(graphed: bool) -> dict[str, np.ndarray]:
    model = network("tape")
    optimizer = adam(model)
    call = model
    if graphed:
        state = {name: value.clone() for name, value in model.state_dict().items()}
        sample = tensor("tape", 0, 8, 6)
        call = tlc.cuda.make_graphed_callables(model, (sample,))
        assert call is model
        model.load_state_dict(state)  # the warm-up has moved the running statistics
    seed("tape", 1)
    for i in range(10):
        optimizer.zero_grad()
        F.cross_entropy(call(tensor("tape", i, 8, 6)), labels("tape", i, 8)).backward()
        optimizer.step()
    model.eval()
    found = state_of(model)
    found["evaluated"] = host(call(tensor("tape", 50, 3, 6)))
    return found


def test_a_graphed_module_trains_as_before_and_is_itself_in_evaluation() -> None:
    assert_same(run(True), run(False))


def test_graphed_functions_in_a_row() -> None:
    w = tensor("tape", 5, 3).requires_grad_()
    samples = tuple((tensor("tape", i, 3).requires_grad_(),) for i in range(2))
    backend: Any = backends.load("tape")
    backend.graphs.captured.clear()
    square, twice = tlc.cuda.make_graphed_callables(
        (lambda x: (x * x, x + 1), lambda x: x * 2), samples
    )
    assert len(backend.graphs.captured) == 4
    for i in range(3):
        x = tensor("tape", 10 + i, 3).requires_grad_()
        w.grad = None
        one, other = square(x * w)
        (twice(one) + other).sum().backward()
        value = host(x) * host(w)
        np.testing.assert_allclose(host(x.grad), (4 * value + 1) * host(w), rtol=1e-5)
        np.testing.assert_allclose(host(w.grad), (4 * value + 1) * host(x), rtol=1e-5)


def test_results_of_the_last_call_are_overwritten_and_backward_says_so() -> None:
    layer = tlc.cuda.make_graphed_callables(nn.Linear(3, 3).to("tape"), (tensor("tape", 0, 2, 3),))
    one = layer(tensor("tape", 1, 2, 3)).sum()
    layer(tensor("tape", 2, 2, 3))
    with pytest.raises(RuntimeError, match="called again before the backward"):
        one.backward()


def test_make_graphed_callables_invalid_arguments_raise() -> None:
    make = tlc.cuda.make_graphed_callables
    x = tensor("tape", 0, 2, 3)
    hooked = nn.Linear(3, 3).to("tape")
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        make(hooked, (x,))
    buffered = nn.Module()
    buffered.register_buffer("b", tlc.ones(1).to("tape").requires_grad_())
    with pytest.raises(RuntimeError, match="only parameters may be trainable"):
        make(buffered, (x,))
    with pytest.raises(TypeError, match="only Tensors"):
        make(lambda x, n: x * n, (x, 2))
    w = tensor("tape", 1, 2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="not have been used"):
        make(lambda x, w: x * 2, (tensor("tape", 1, 2, 3).requires_grad_(), w))
    make(lambda x, w: x * 2, (tensor("tape", 1, 2, 3).requires_grad_(), w), allow_unused_input=True)
    graphed = make(lambda x: x * 2, (x,))
    with pytest.raises(RuntimeError, match="another shape"):
        graphed(tensor("tape", 0, 5, 3))


def test_second_derivatives_are_refused() -> None:
    x = tensor("tape", 0, 3).requires_grad_()
    square = tlc.cuda.make_graphed_callables(lambda x: x * x, (x.detach().requires_grad_(),))
    (g,) = tlc.autograd.grad(square(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="twice|does not require grad"):
        g.sum().backward()
