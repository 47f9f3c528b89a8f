"""Modules that quantize their inputs at every call, from the range that these then have."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn.quantized.dynamic import modules
from tensorflow_lite_clone.ao.nn.quantized.dynamic.modules import (
    GRU,
    LSTM,
    GRUCell,
    Linear,
    LSTMCell,
    RNNCell,
)

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell", "modules"]
