"""Chains of pointwise calls in captured steps: as one call, and with the bits of the eager step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy import chains, tiles
from tensorflow_lite_clone.core.flags import flags
from tests.cuda import programs
from tests.cuda.programs import host

F = tlc.nn.functional


def tensor(seed: int, *shape: int) -> tlc.Tensor:
    return programs.tensor("cpu", seed, *shape)


@pytest.fixture(autouse=True, params=[1, 2], ids=["one thread", "two threads"])
def small_tiles(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Tiles of a few hundred elements, so that small arrays have several, in two threads."""
    monkeypatch.setattr(chains, "LEAST", 64)
    for name in ("_SHARED", "_CACHED", "_SMALL"):
        monkeypatch.setattr(tiles, name, 100)
    monkeypatch.setattr(tiles, "_LIGHT", 300)
    monkeypatch.setattr(flags, "threads", request.param)


def program(compiled: Any) -> str:
    (site,) = compiled._sites.values()
    (form,) = site.forms
    text: str = form._graph.program.text
    return text


def gelu(x: tlc.Tensor) -> tlc.Tensor:
    return 0.5 * x * (1 + (0.79788456 * (x + 0.044715 * x**3)).tanh())


def layer_norm(x: tlc.Tensor, w: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt() * w + b


def arithmetic(a: Any, b: Any, c: Any, d: Any) -> tlc.Tensor:
    return (a * b + c) * d - a / (b * b + 0.5)


def swiglu(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    return a * a.sigmoid() * F.silu(b)


def chosen(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    return tlc.where(a > b, a.exp(), b.sqrt()).maximum(a) + tlc.where(b > 0, 0.0, b.abs())


def in_place(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    y = a * b
    y += a
    y.mul_(2).sub_(b)
    return y.relu() + y


def kinds(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    return (a.double() * 3 + b).float() * (a > 0).float() + (10 * b).int().clamp(-3, 3) * a


def along_axes(x: tlc.Tensor, scale: tlc.Tensor, shift: tlc.Tensor) -> tlc.Tensor:
    """As batch norm has them, and a column."""
    return (x * scale[:, None, None] + shift[None, :, None, None]).tanh() * x[..., :1]


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "gelu": (gelu, [(40, 23)]),
    "layer norm": (layer_norm, [(40, 23), (23,), (23,)]),
    "arithmetic": (arithmetic, [(931,)] * 4),
    "gated": (swiglu, [(5, 7, 31)] * 2),
    "chosen": (chosen, [(911,)] * 2),
    "in place": (in_place, [(30, 31)] * 2),
    "kinds": (kinds, [(30, 31)] * 2),
    "along axes": (along_axes, [(6, 4, 8, 9), (4,), (4,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_the_eager_step(name: str) -> None:
    function, shapes = CASES[name]
    inputs = [tensor(i, *shape).requires_grad_() for i, shape in enumerate(shapes)]
    with tlc.no_grad():  # rare values among them
        inputs[0].view(-1)[:4] = tlc.tensor([np.nan, np.inf, -np.inf, -0.0])

    def step() -> tlc.Tensor:
        for x in inputs:
            x.grad = None
        y = function(*inputs)
        (y * y).sum().backward()
        return y.detach()

    def run(call: Callable[[], tlc.Tensor]) -> list[np.ndarray]:
        found = [host(call()) for _ in range(4)]
        return [*found, *[host(x.grad) for x in inputs]]

    compiled = tlc.compile(step, fullgraph=True)
    for one, other in zip(run(compiled), run(step), strict=True):
        assert one.tobytes() == other.tobytes()
    assert "Chain_1(" in program(compiled)
