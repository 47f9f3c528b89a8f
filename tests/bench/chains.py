"""Rows for functions of several words each, as programs write them that have no op for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.bench.cpu_kernels import PARTS, uniform
from tests.bench.rows import Row

GROUP = "chains"
SQUARE, SCORES = (2048, 2048), (4096, 1024)


def gelu(lib: Any, x: Any) -> Any:
    return 0.5 * x * (1 + lib.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def arithmetic(lib: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    return (a * b + c) * d - e / f


def layer_norm(lib: Any, x: Any, w: Any, b: Any) -> Any:
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt() * w + b


def gated(lib: Any, x: Any, y: Any) -> Any:
    return x * x.sigmoid() * y


def _work(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], backward: bool, lib: Any,
    wrap: Any = None,
) -> tuple[Callable[..., Any], tuple]:  # fmt: skip
    """A call without a graph, or one with its graph and all gradients, of inputs above zero."""
    lib.manual_seed(0)
    inputs = [uniform(lib, *shape) + 1 for shape in shapes]
    call = (wrap or (lambda it: it))(partial(function, lib))

    def forward(*inputs: Any) -> Any:
        with lib.no_grad():
            return call(*inputs)

    if not backward:
        return forward, tuple(inputs)
    g = uniform(lib, *shapes[0])
    for x in inputs:
        x.requires_grad_()

    def both() -> None:
        for x in inputs:
            x.grad = None
        call(*inputs).backward(g)

    return both, ()


def _rows(
    key: str, title: str, function: Callable[..., Any], *shapes: tuple[int, ...]
) -> dict[str, Row]:
    return {
        f"{GROUP}-{key}-{part}": Row(
            f"{title} {part}", partial(_work, function, shapes, part != PARTS[0]), is_step=True,
            group=f"{GROUP}-{part}",
        )
        for part in PARTS
    }  # fmt: skip


ROWS = {
    **_rows("gelu", "GELU by hand 4M", gelu, SQUARE),
    **_rows("arithmetic", "(a b + c) d - e/f 4M", arithmetic, *[SQUARE] * 6),
    **_rows("layer-norm", "LayerNorm by hand 4096x1024", layer_norm, SCORES, (1024,), (1024,)),
    **_rows("gated", "x sigmoid(x) y 4M", gated, SQUARE, SQUARE),
}
