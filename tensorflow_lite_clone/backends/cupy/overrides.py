"""The ops that kernels serve: importing a family registers its overrides."""

from __future__ import annotations

from tensorflow_lite_clone.backends.cupy import (  # noqa: F401
    activation,
    amp,
    attention,
    batch_norm,
    convolution,
    cross_entropy,
    dropout,
    embedding,
    fake_quantize,
    group_norm,
    layer_norm,
    layout_convert,
    linear,
    optimizer,
    optimizer_rules,
    pooling,
    recurrent,
    softmax,
)
