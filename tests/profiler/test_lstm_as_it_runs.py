"""What watches a program leaves an LSTM the one op that it otherwise is."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, profiler, viz
from tensorflow_lite_clone.dispatch.table import served
from tensorflow_lite_clone.utils.flop_counter import FlopCounterMode


def step() -> None:
    tlc.manual_seed(0)
    out, _ = nn.LSTM(3, 4)(tlc.ones(5, 2, 3))
    out.sum().backward()


def profiled() -> None:
    with profiler.profile() as found:
        step()
    names = [event.name for event in found.events()]
    assert names.count("lstm_sequence") == 1 and "lstm_cell_step" not in names


def counted() -> None:
    with FlopCounterMode(display=False):
        step()


def checked() -> None:
    with tlc.autograd.detect_anomaly():
        step()


def drawn() -> None:
    tlc.manual_seed(0)
    viz.forward(nn.LSTM(3, 4), tlc.ones(5, 2, 3))


@pytest.mark.filterwarnings("ignore:Anomaly")
@pytest.mark.parametrize("watched", [step, profiled, counted, checked, drawn])
def test_one_op(watched) -> None:
    before = served["lstm_sequence", "numpy"]
    watched()
    assert served["lstm_sequence", "numpy"] == before + 1
