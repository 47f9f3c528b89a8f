"""Linear layers on few rows on the GPU: packs and tails, layouts, and which kernel serves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tensorflow_lite_clone.dispatch import hooks
from tests.kernels.gpu import Laid, check, needs_gpu

pytestmark = needs_gpu

# rows, inputs, outputs: the MNIST network's layers, tails everywhere, one element, several trips
SHAPES = [
    (32, 784, 256), (32, 256, 128), (32, 128, 10), (1, 1, 1), (7, 5, 3), (33, 4, 9), (64, 1030, 17),
    (9, 2052, 31), (128, 36, 130),
]  # fmt: skip
OURS = {"linear_forward", "linear_backward_input", "linear_backward_weight", "linear_backward"}


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.fixture
def launched() -> Iterator[list[str]]:
    """The names of the kernels that ran."""
    names: list[str] = []

    def launching(name: str, *rest: object):
        names.append(name.split("<")[0])
        return lambda: None

    hooks.on_launch.append(launching)
    yield names
    hooks.on_launch.remove(launching)


@pytest.mark.parametrize("rows, inputs, outputs", SHAPES)
def test_linear_of_few_rows_matches_generic(
    rows: int, inputs: int, outputs: int, launched: list[str]
) -> None:
    x, w, b = drawn(rows, inputs), drawn(outputs, inputs, seed=1), drawn(outputs, seed=2)
    g = drawn(rows, outputs, seed=3)
    for bias in (None, b):
        check("linear", (x, w, bias), {})
    check("linear", (x[None], w, b), {})
    check("linear", (x[0], w, b), {})
    check("linear_backward_input", (g, w), {})
    check("linear_backward_input", (g[0], w), {})
    check("linear_backward_weight", (g, x), {})
    check("linear_backward_weight", (g[None], x[None]), {})
    check("linear_backward", (g, x, w), {}, ["float32"])
    check("linear_backward", (g[None], x[None], w), {}, ["float32"])
    check("linear_backward", (g[0], x[0], w), {}, ["float32"])
    assert set(launched) >= OURS


@pytest.mark.parametrize("layout", ["transposed", "sliced", "offset"])
def test_linear_of_any_layout_matches_generic(layout: str) -> None:
    x, w, g = drawn(6, 16), drawn(12, 16, seed=1), drawn(6, 12, seed=2)
    check("linear", (Laid(x, layout), w, w[:, 0]), {})
    check("linear", (x, Laid(w, layout), None), {})
    check("linear_backward_input", (Laid(g, layout), w), {})
    check("linear_backward_input", (g, Laid(w, layout)), {})
    check("linear_backward_weight", (Laid(g, layout), x), {})
    check("linear_backward_weight", (g, Laid(x, layout)), {})
    if layout == "offset":  # others are declined
        check("linear_backward", (Laid(g, layout), Laid(x, layout), w), {}, ["float32"])


def test_linear_of_many_rows_uses_cublas(launched: list[str]) -> None:
    x, w, g = drawn(129, 16), drawn(12, 16, seed=1), drawn(129, 12, seed=2)
    check("linear", (x, w, w[:, 0]), {})
    check("linear_backward_input", (g, w), {})
    check("linear_backward_weight", (g, x), {})
    assert not OURS & set(launched)


def test_linear_input_gradient_of_large_weights_uses_cublas(launched: list[str]) -> None:
    """Where each way of sharing the work loses, as measured."""
    x, w, g = drawn(8, 520), drawn(520, 520, seed=1), drawn(8, 520, seed=2)
    check("linear_backward_input", (g, w), {}, ["float32"])
    assert not OURS & set(launched)
    check("linear", (x, w, None), {}, ["float32"])
    check("linear_backward_weight", (g, x), {}, ["float32"])
    assert set(launched) >= {"linear_forward", "linear_backward_weight"}


def test_linear_with_more_outputs_than_grid_rows_matches_generic(launched: list[str]) -> None:
    """A grid has 65535 rows of blocks of 8 outputs."""
    x, w, g = drawn(1, 4), drawn(530_000, 4, seed=1), drawn(1, 530_000, seed=2)
    check("linear", (x, w, None), {}, ["float32"])
    check("linear_backward_weight", (g, x), {}, ["float32"])
    assert set(launched) >= {"linear_forward", "linear_backward_weight"}


def test_linear_of_no_rows_is_empty() -> None:
    w = drawn(3, 4)
    check("linear", (drawn(0, 4), w, w[:, 0]), {})
    check("linear_backward_input", (drawn(0, 3), w), {})
    check("linear_backward_weight", (drawn(0, 3), drawn(0, 4)), {})
