"""Attention in small blocks and by several threads, against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import served

CASES = {
    "plain": ((3, 4, 9, 5), (3, 4, 11, 5), {}),
    "large scores": ((3, 4, 9, 5), (3, 4, 11, 5), {"times": 30.0}),
    "causal": ((3, 4, 70, 5), (3, 4, 70, 5), {"is_causal": True}),
    "causal, large scores": ((2, 70, 5), (2, 70, 5), {"is_causal": True, "times": 30.0}),
    "causal, more rows": ((2, 90, 3), (2, 20, 3), {"is_causal": True}),
    "causal, more keys": ((2, 20, 3), (2, 90, 3), {"is_causal": True}),
    "hidden": ((2, 3, 9, 5), (2, 3, 11, 5), {"mask": "bool"}),
    "added": ((2, 3, 9, 5), (2, 3, 11, 5), {"mask": "float"}),
    "grouped": ((2, 6, 9, 5), (2, 3, 11, 5), {"enable_gqa": True}),
    "grouped, causal": ((2, 6, 70, 5), (2, 2, 70, 5), {"enable_gqa": True, "is_causal": True}),
    "no heads": ((40, 5), (50, 5), {}),
}


@pytest.mark.parametrize("block", [1, 400, 1 << 16])
@pytest.mark.parametrize("name", CASES)
def test_attention_in_blocks_matches_generic(monkeypatch, name, block):
    monkeypatch.setattr(tuning, "attention_block", block)
    monkeypatch.setattr(tuning, "attention_small", 1)
    monkeypatch.setattr(tuning, "attention_per_thread", 16)
    monkeypatch.setattr(flags, "threads", 3)
    before = served["attention", "numpy"], served["attention_backward", "numpy"]
    queries, keys, options = CASES[name]
    options = dict(options)
    times, mask = options.pop("times", 1.0), options.pop("mask", None)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) * times for shape in (queries, keys, keys)]
    if mask == "bool":
        options["attn_mask"] = rng.random((queries[-2], keys[-2])) < 0.7
    elif mask == "float":
        options["attn_mask"] = rng.standard_normal((queries[-2], keys[-2]))
    g = rng.standard_normal(queries)

    def results(lib):
        inputs = [lib.tensor(x).requires_grad_() for x in arrays]
        given = {n: lib.tensor(x) if n == "attn_mask" else x for n, x in options.items()}
        out = lib.nn.functional.scaled_dot_product_attention(*inputs, **given)
        out.backward(lib.tensor(g))
        return [x.detach().numpy() for x in (out, *[x.grad for x in inputs])]

    for ours, theirs in zip(results(tlc), results(torch)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
    after = served["attention", "numpy"], served["attention_backward", "numpy"]
    assert after == (before[0] + 1, before[1] + 1)
