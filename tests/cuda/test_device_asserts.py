"""Values out of range are told when the host next waits for the device, and the work goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import needs_gpu

pytestmark = needs_gpu
F = tlc.nn.functional
# (x of (3, 4), places of a shape that fits): one place is out of range
READS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "both": lambda x, i: x[i, i],
    "slices between": lambda x, i: x[None, i, 1:3],
    "index_select": lambda x, i: x.index_select(0, i),
    "other axis": lambda x, i: x.index_select(1, i),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i * 4),
    "embedding": lambda x, i: F.embedding(i, x),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "index_put": lambda x, i: x.index_put((i,), x[0]),
    "accumulate": lambda x, i: x.index_put((i,), x[0], accumulate=True),
    "put": lambda x, i: x.put(i * 4, x[0, :2]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], x[:2, :1]),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x[:2, :1]),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x[:2, :1], "amax"),
    "write": lambda x, i: x.__setitem__(i, 1.0),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:2, :3], i),
    "cross_entropy of pictures": lambda x, i: F.cross_entropy(x[:2, :3, None], i[:, None]),
    "nll_loss": lambda x, i: F.nll_loss(x[:2, :3], i),
}


def places(*values: int) -> Any:
    return tlc.tensor(values, device="cuda")


@pytest.mark.parametrize("name", READS)
def test_out_of_range(name: str) -> None:
    x = tlc.arange(12.0, device="cuda").reshape(3, 4)
    READS[name](x, places(2, 0))
    tlc.cuda.synchronize()
    READS[name](x, places(0, 1000))  # raises nothing yet
    with pytest.raises(tlc.AcceleratorError, match="device-side assert triggered: .* out of b"):
        tlc.cuda.synchronize()
    tlc.cuda.synchronize()  # told once
    assert x[places(2, 0)].shape == (2, 4)


@pytest.mark.parametrize("name", ["index_select", "embedding", "gather", "nll_loss", "scatter"])
def test_these_do_not_count_from_the_end(name: str) -> None:
    x = tlc.arange(12.0, device="cuda").reshape(3, 4)
    READS[name](x, places(0, -1))
    with pytest.raises(tlc.AcceleratorError, match="-1 is out of bounds"):
        tlc.cuda.synchronize()


def test_device_faults_are_raised_by_every_wait() -> None:
    x = tlc.zeros(3, device="cuda")
    stream, event = tlc.cuda.Stream(), tlc.cuda.Event()
    waits = [
        lambda: x.sum().item(),
        x.cpu,
        x.tolist,
        lambda: bool(x[0] > 1),
        lambda: repr(x),
        event.synchronize,
        tlc.cuda.current_stream().synchronize,
        stream.synchronize,
    ]
    for wait in waits:
        x[places(3)]
        event.record()
        stream.wait_event(event)
        with pytest.raises(tlc.AcceleratorError, match="index 3 .* size 3"):
            wait()


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "between 0 and 1": lambda x: F.binary_cross_entropy(x + 2, x),
    "p_in >= 0": tlc.bernoulli,
    "invalid Poisson rate": tlc.poisson,
    "an entry < 0": lambda x: (x + 1.2).multinomial(1),
    "sum of probabilities": lambda x: (x * 0).multinomial(2, replacement=True),
}


@pytest.mark.parametrize("message", NUMBERS)
def test_numbers(message: str) -> None:
    x = tlc.tensor([0.5, -1.5], device="cuda")
    NUMBERS[message](x)
    with pytest.raises(tlc.AcceleratorError, match=message):
        tlc.cuda.synchronize()


def test_in_a_graph() -> None:
    table, place = tlc.arange(6.0, device="cuda").reshape(3, 2), places(1)
    graph = tlc.cuda.CUDAGraph()
    table[place], table[:, places(0, 1)]
    with tlc.cuda.graph(graph):
        row = table[place]
        column = table[:, place]
    graph.replay()
    assert row.tolist() == [[2, 3]] and column.tolist() == [[1], [3], [5]]
    place.fill_(7)
    graph.replay()
    with pytest.raises(tlc.AcceleratorError, match="index 7"):
        tlc.cuda.synchronize()
    place.fill_(0)
    graph.replay()
    assert row.tolist() == [[0, 1]]
