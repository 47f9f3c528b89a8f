"""Steps of LSTM and GRU cells on the GPU: packs and tails, layouts, every dtype."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu

pytestmark = needs_gpu

# (leading axes), hidden: whole packs, tails, one element, several blocks, no batch
SHAPES = [((2,), 8), ((3,), 5), ((1,), 1), ((70,), 64), ((33,), 130), ((), 16), ((2, 3), 8)]


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return 2 * np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "offset"])
@pytest.mark.parametrize("lead, hidden", SHAPES)
def test_lstm(lead: tuple, hidden: int, layout: str) -> None:
    if layout == "transposed" and not lead:
        return
    gates = Laid(drawn(*lead, 4 * hidden), layout)
    c, gh, gc = (drawn(*lead, hidden, seed=seed) for seed in (1, 2, 3))
    check("lstm_cell_step", (gates, c), {})
    check("lstm_cell_step", (gates, Laid(c, layout)), {})
    check("lstm_cell_step_backward", (gh, Laid(gc, layout), gates, c, drawn(*lead, hidden)), {})


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "offset"])
@pytest.mark.parametrize("lead, hidden", SHAPES)
def test_gru(lead: tuple, hidden: int, layout: str) -> None:
    if layout == "transposed" and not lead:
        return
    x = Laid(drawn(*lead, 3 * hidden), layout)
    y = drawn(*lead, 3 * hidden, seed=4)
    h, g = (drawn(*lead, hidden, seed=seed) for seed in (1, 2))
    check("gru_cell_step", (x, y, h), {})
    check("gru_cell_step_backward", (Laid(g, layout), x, y, h), {})


def test_extremes() -> None:
    """Saturated gates, and gradients that were expanded."""
    gates = np.array([[-300.0, 300.0, -90.0, 90.0, 0, 1, -1, 50] * 4])
    c = np.array([[0, 1, -1, 30.0, -30.0, 1e3, -1e3, 2]])
    check("lstm_cell_step", (gates, c), {})
    check("lstm_cell_step_backward", (c, c, gates, c, c), {})
    check("gru_cell_step", (gates[:, :24], gates[:, 8:], c), {})
    many = np.repeat(c, 5, 0)
    check("gru_cell_step_backward",
          (Laid(many, "expanded"), np.repeat(gates[:, :24], 5, 0), np.repeat(gates[:, 8:], 5, 0),
           many), {})  # fmt: skip


def test_no_rows() -> None:
    check("lstm_cell_step", (drawn(0, 32), drawn(0, 8)), {})
    check("gru_cell_step_backward", (drawn(0, 8), drawn(0, 24), drawn(0, 24), drawn(0, 8)), {})
