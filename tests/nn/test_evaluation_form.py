"""Attention in evaluation, where PyTorch has a fused form: zeros at padded places, strides."""

from __future__ import annotations

import math
import warnings

import pytest

from tests.nn.against_torch import near, same

AT_END = [[False, False, True], [False, True, True]]
AT_START = [[True, False, False], [False, True, True]]

#: Padding and, of the encoder and its layer, what is not as usual.
CASES = {
    "padding at the end": (AT_END, {}, {}),
    "padding at the start": (AT_START, {}, {}),
    "padding at the start, not looked at": (AT_END, {"mask_check": False}, {}),
    "no padding": ([[False] * 3] * 2, {}, {}),
    "without nested tensors": (AT_END, {"enable_nested_tensor": False}, {}),
    "norms first": (AT_END, {}, {"norm_first": True}),
    "gelu": (AT_END, {}, {"activation": "gelu"}),
    "one head": (AT_END, {}, {"nhead": 1}),
    "no biases": (AT_END, {}, {"bias": False}),
    "batches second": (AT_END, {}, {"batch_first": False}),
}


@pytest.mark.parametrize("final", ["plain", "norm", "additive", "training", "gradient", "mask"])
@pytest.mark.parametrize("name", CASES)
def test_padded_places_of_an_encoder(name, final):
    padded, options, of_layer = CASES[name]

    def script(lib):
        warnings.simplefilter("ignore")  # PyTorch's, of its own forms
        nn = lib.nn
        lib.manual_seed(0)
        settings = {"nhead": 2, "dropout": 0.0, "batch_first": True, **of_layer}
        layer = nn.TransformerEncoderLayer(8, dim_feedforward=16, **settings)
        norm = nn.LayerNorm(8) if final == "norm" else None
        encoder = nn.TransformerEncoder(layer, 2, norm=norm, **options).train(final == "training")
        padding = lib.tensor(padded)
        if final == "additive":
            padding = lib.zeros(2, 3).masked_fill(padding, -math.inf)
        mask = lib.zeros(3, 3, dtype=padding.dtype) if final == "mask" else None
        x = lib.randn(2, 3, 8) if settings["batch_first"] else lib.randn(3, 2, 8)
        with lib.set_grad_enabled(final == "gradient"):
            return encoder(x, mask=mask, src_key_padding_mask=padding)

    near(script, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_strides_of_attention(alike, weights):
    def script(lib):
        attention = lib.nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x, y = lib.ones(2, 3, 8), lib.ones(2, 4, 8)
        strides = [attention(x, x if alike else y, x if alike else y, need_weights=weights)[0]]
        with lib.no_grad():
            strides += attention(x, x if alike else y, x if alike else y, need_weights=weights)[:1]
        return [output.stride() for output in strides]

    same(script)
