"""One measurement of the groups for a GPU, and the pairs of forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Case(NamedTuple):
    """One measurement: a callable, and the bytes it must move at least (0: not bound by memory)."""

    name: str
    call: Callable[[], object]
    bytes: int = 0


def both(lib: Any, name: str, x: Any, forward: Callable[[Any], Any], *moved: int) -> Iterator:
    """Forward without a graph, and backward alone, of a function of one tensor."""
    yield Case(f"{name} forward", lambda: without_graph(lib, forward, x), moved[0])
    w = x.detach().clone().requires_grad_()
    y = forward(w)
    g = lib.randn(y.shape, device=y.device, dtype=y.dtype)

    def backward() -> None:
        lib.autograd.grad(y, w, g, retain_graph=True)

    yield Case(f"{name} backward", backward, moved[1])


def without_graph(lib: Any, forward: Callable[[Any], Any], x: Any) -> None:
    with lib.no_grad():
        forward(x)
