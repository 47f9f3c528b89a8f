"""More cases of the group `kernels`: group norm, dropout, depthwise, embedding, cells, updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.case import Case, both, without_graph

_PARAMETERS = 1 << 25  # elements of the tensors that an optimizer and a scaler work on


def cases(lib: Any) -> Iterator[Case]:
    """Shapes at which the device's memory is what there is to wait for, but for the cell."""
    F = lib.nn.functional
    x = lib.randn(64, 256, 32, 32, device="cuda")
    w, b = lib.randn(256, device="cuda"), lib.randn(256, device="cuda")
    size = 4 * x.numel()
    yield from both(
        lib, "group-norm 64x256x32x32", x, lambda x: F.group_norm(x, 32, w, b), 2 * size, 3 * size
    )
    w = lib.randn(256, 1, 3, 3, device="cuda")
    yield from both(
        lib, "depthwise 3x3 64x256x32x32", x,
        lambda x: F.conv2d(x, w, None, 1, 1, groups=256), 2 * size, 2 * size,
    )  # fmt: skip
    x = lib.randn(8192, 4096, device="cuda")
    size = 4 * x.numel()
    yield from both(lib, "dropout 8192x4096", x, lambda x: F.dropout(x, 0.1), 2 * size, 2 * size)
    yield Case("normal_ 8192x4096", lambda x=x: x.normal_(), size)
    yield Case("random_ 8192x4096", lambda x=x: x.random_(0, 1000), size)
    del x
    yield from _embedding(lib)
    yield from _cell(lib)
    yield from _updates(lib)


def _embedding(lib: Any) -> Iterator[Case]:
    w = lib.randn(50257, 768, device="cuda", requires_grad=True)
    tokens = lib.randint(50257, (16384,), device="cuda")
    rows = 4 * 16384 * 768
    y = lib.nn.functional.embedding(tokens, w)
    g = lib.randn(16384, 768, device="cuda")
    yield Case("embedding 16384 of 50257x768 forward", lambda: without_graph(
        lib, lambda w: lib.nn.functional.embedding(tokens, w), w), 2 * rows)  # fmt: skip
    yield Case(
        "embedding 16384 of 50257x768 backward",
        lambda: lib.autograd.grad(y, w, g, retain_graph=True),
        4 * w.numel() + 3 * rows,
    )


def _cell(lib: Any) -> Iterator[Case]:
    cell = lib.nn.LSTMCell(8, 1024, device="cuda")
    x, h, c = (lib.randn(4096, n, device="cuda") for n in (8, 1024, 1024))
    yield Case("LSTM cell 4096x1024", lambda: without_graph(lib, lambda x: cell(x, (h, c)), x))


def _updates(lib: Any) -> Iterator[Case]:
    p = lib.nn.Parameter(lib.randn(_PARAMETERS, device="cuda"))
    p.grad = lib.randn(_PARAMETERS, device="cuda")
    size = 4 * _PARAMETERS
    adam = lib.optim.AdamW([p], fused=True, capturable=True)
    yield Case("AdamW step of 33.5 M", adam.step, 7 * size)
    scaler = lib.amp.GradScaler("cuda")
    scaler.scale(p.detach()[0])

    def unscale() -> None:
        scaler.unscale_(adam)
        scaler.update()

    yield Case("unscale 33.5 M", unscale, 2 * size)
