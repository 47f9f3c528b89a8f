"""Forward and backward of one function, over either library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Call = Callable[[], Any]
Wrap = Callable[[Callable], Callable]


def as_it_is(function: Callable) -> Callable:
    """The function; others compile it."""
    return function


def both(
    lib: Any,
    function: Callable[..., Any],
    *inputs: Any,
    wrap: Wrap | None = None,
    trained: int | None = None,
) -> Iterator[Call]:
    """Forward without a graph, and backward alone, of a function of some tensors.

    Gradients are of the first `trained` inputs, by default of the first one, and of every
    parameter that the function holds. The second call is made when the first is not needed.
    """
    function = (wrap or as_it_is)(function)

    def forward() -> Any:
        with lib.no_grad():
            return function(*inputs)  # a captured result that nobody holds is not computed

    yield forward
    count = trained or 1
    wanted = [x.detach().clone().requires_grad_() for x in inputs[:count]]
    y = function(*wanted, *inputs[count:])
    g = lib.randn_like(y)  # laid out as the result
    yield lambda: lib.autograd.grad(y, wanted, g, retain_graph=True)


def together(
    lib: Any,
    function: Callable[..., Any],
    *inputs: Any,
    trained: int = 1,
    parameters: Iterable[Any] = (),
) -> Iterator[Call]:
    """Forward without a graph, and forward and backward in one, of a function of some tensors.

    Gradients are of the first `trained` inputs and of `parameters`. A backward alone says little
    on a CPU: much of what it does can be done by the forward before it, or put off as a view.
    """

    def forward() -> Any:
        with lib.no_grad():
            return function(*inputs)

    yield forward
    leaves = [x.detach().clone().requires_grad_() for x in inputs[:trained]]
    wanted = [*leaves, *parameters]
    g = lib.randn_like(function(*inputs))
    yield lambda: lib.autograd.grad(function(*leaves, *inputs[trained:]), wanted, g)
