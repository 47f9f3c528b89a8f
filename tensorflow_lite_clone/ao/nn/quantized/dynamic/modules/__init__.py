"""The modules, in files as PyTorch has them."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn.quantized.dynamic.modules.linear import Linear
from tensorflow_lite_clone.ao.nn.quantized.dynamic.modules.rnn import (
    GRU,
    LSTM,
    GRUCell,
    LSTMCell,
    RNNCell,
)

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]
