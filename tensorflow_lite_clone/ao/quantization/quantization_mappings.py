"""Which module takes the place of which."""

from __future__ import annotations

from typing import Any, NoReturn

from tensorflow_lite_clone.ao.nn.quantized import dynamic
from tensorflow_lite_clone.nn.modules import linear, rnn, sparse
from tensorflow_lite_clone.nn.modules.module import Module


class _NotQuantized(Module):
    """Stands for the quantized form of a module that has none here."""

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> NoReturn:
        """Always NotImplementedError."""
        raise NotImplementedError(
            f"{type(mod).__name__} is not quantized: linear and recurrent modules are"
        )


DYNAMIC: dict[type[Module], Any] = {
    linear.Linear: dynamic.Linear,
    linear.NonDynamicallyQuantizableLinear: dynamic.Linear,
    rnn.LSTM: dynamic.LSTM,
    rnn.GRU: dynamic.GRU,
    rnn.LSTMCell: dynamic.LSTMCell,
    rnn.GRUCell: dynamic.GRUCell,
    rnn.RNNCell: dynamic.RNNCell,
    sparse.Embedding: _NotQuantized,
    sparse.EmbeddingBag: _NotQuantized,
}


def get_default_dynamic_quant_module_mappings() -> dict[type[Module], Any]:
    """Class of modules -> class of their dynamically quantized forms, in a new dictionary."""
    return dict(DYNAMIC)
