"""Tools on parameters and gradients, as ``torch.nn.utils``."""

from __future__ import annotations

from tensorflow_lite_clone.nn.utils import parametrize, rnn
from tensorflow_lite_clone.nn.utils.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from tensorflow_lite_clone.nn.utils.convert_parameters import (
    parameters_to_vector,
    vector_to_parameters,
)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]
