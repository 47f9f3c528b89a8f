"""Host overhead: operations on eight floats, where the arithmetic itself costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

NAME = "overhead"


def cases(lib) -> Iterator[tuple[str, Callable[[], object]]]:
    """Named callables over one library, `torch` or ours."""
    a, b = lib.rand(8), lib.rand(8)
    w = lib.rand(8, requires_grad=True)
    yield "a + b", lambda: a + b
    yield "a + b with a graph", lambda: w + b
    yield "a * 2", lambda: a * 2
    yield "w * 2 with a graph", lambda: w * 2
    yield "exp(a)", lambda: a.exp()
    yield "a.sum()", lambda: a.sum()
    yield "a[2:5]", lambda: a[2:5]
    yield "a.reshape(2, 4)", lambda: a.reshape(2, 4)

    def chain():
        w.grad = None
        ((w * 2 + 1).sum()).backward()

    yield "((w*2+1).sum()).backward()", chain

    linear = lib.nn.Linear(8, 8)
    x = lib.rand(4, 8)
    yield "Linear(8, 8) forward", lambda: linear(x)

    def train():
        optimizer.zero_grad()
        linear(x).sum().backward()
        optimizer.step()

    optimizer = lib.optim.SGD(linear.parameters(), lr=0.0)
    yield "Linear(8, 8) training step", train
