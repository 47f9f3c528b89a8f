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

    functional = lib.nn.functional
    identity, norm = lib.nn.Identity(), lib.nn.LayerNorm(8)
    labels = lib.tensor([1, 2, 3, 4])
    yield "a.view(2, 4).transpose(0, 1)", lambda: a.view(2, 4).transpose(0, 1)
    yield "x @ x.T", lambda: x @ x.T
    yield "relu(x)", lambda: functional.relu(x)
    yield "softmax(x, -1)", lambda: functional.softmax(x, -1)
    yield "LayerNorm(8)", lambda: norm(x)
    yield "cross_entropy(x, labels)", lambda: functional.cross_entropy(x, labels)
    yield "Identity()", lambda: identity(x)

    def nothing():
        with lib.no_grad():
            pass

    yield "with no_grad()", nothing

    adam = lib.optim.AdamW(linear.parameters(), lr=0.0)
    grads = [(p, lib.rand(p.shape)) for p in linear.parameters()]

    def with_grads(call):
        def run():
            for parameter, grad in grads:
                parameter.grad = grad
            call()

        return run

    yield "zero_grad of 2 parameters", with_grads(optimizer.zero_grad)
    yield "SGD step of 2 parameters", with_grads(optimizer.step)
    yield "AdamW step of 2 parameters", with_grads(adam.step)
