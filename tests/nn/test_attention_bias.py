"""`nn.attention.bias`: causal masks of sequences of different lengths, beside PyTorch."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.nn.against_torch import failed, near, raises, same
from tests.tensor.expressions import lines


def names(lib):
    module = import_module(f"{lib.__name__}.nn.attention.bias")
    return {"torch": lib, **{name: getattr(module, name) for name in module.__all__}}


@lines(
    """
    repr(causal_upper_left(3, 4)), repr(causal_lower_right(3, 4)), repr(causal_lower_right(4, 3))
    causal_upper_left(4, 3)._materialize(), causal_lower_right(2, 2)._materialize("cpu")
    [int(v) for v in CausalVariant], CausalBias(CausalVariant(2), 3, 4).variant.name
    causal_upper_left(3, 4).seq_len_q, causal_upper_left(3, 4).seq_len_kv
    """
)
def test_masks(expression):
    assert not failed(same(lambda lib: eval(expression, names(lib))))


@pytest.mark.parametrize("lengths", [(3, 5), (5, 3), (4, 4)])
@pytest.mark.parametrize("corner", ["causal_upper_left", "causal_lower_right"])
def test_attention(corner, lengths):
    def run(lib):
        lib.manual_seed(0)
        q = lib.randn(2, 4, lengths[0], 8, requires_grad=True)
        k, v = (lib.randn(2, 4, lengths[1], 8, requires_grad=True) for _ in range(2))
        bias = names(lib)[corner](*lengths)
        output = lib.nn.functional.scaled_dot_product_attention(q, k, v, bias)
        output.pow(2).sum().backward()
        return output, q.grad, k.grad, v.grad

    near(run, rtol=1e-4, atol=1e-5)  # sums of squares


@lines(
    """
    causal_upper_left(3)
    causal_lower_right(3, 4, 5)
    CausalBias(3, 1, 2)
    """
)
def test_errors(expression):
    raises(lambda lib: eval(expression, names(lib)))
