"""Products of half floats with something added: rounded once, as in PyTorch."""

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x, y, b: torch.nn.functional.linear(x[0], y[0].T, b),
        lambda torch, x, y, b: torch.nn.functional.linear(x, y[0].T, b),
        lambda torch, x, y, b: torch.addmm(b, x[0], y[0]),
        lambda torch, x, y, b: torch.baddbmm(b, x, y),
    ],
)
def test_the_sum_is_rounded_once(call, dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((2, 40, 64), (2, 64, 32), 32)]
    found = [
        call(library, *[library.tensor(array).to(getattr(library, dtype)) for array in arrays])
        for library in (torch, tlc)
    ]
    expected, result = [each.double().numpy() for each in found]
    # float16 may be rounded from sums that differ in the last bit of float32: few do
    assert (expected != result).mean() < 0.01
