"""Matrix products run in the operands' dtype: in forwards, and in every gradient.

A composite whose override declines runs the primitives that its body names. If it were widened as
a whole, the products of a two-byte model would take several times as long on a GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends, nn
from tensorflow_lite_clone.dispatch.op import TABLE, multiplies_matrices
from tests.device import DEVICE

F = nn.functional
LARGE = 1024 if DEVICE == "cuda" else 96  # beyond what small kernels serve there


@contextmanager
def products() -> Iterator[set[str]]:
    """The names of the dtypes of all operands of matrix products inside the block."""
    seen: set[str] = set()
    if DEVICE == "cuda":
        from tensorflow_lite_clone.backends.cupy.gemm_plan import plans  # needs CuPy

        plans.clear()  # one is made for every new kind of product
        yield seen
        seen.update(np.dtype(key[0]).name for key in plans)
        return
    namespace = backends.load(DEVICE).F
    plain = namespace.matmul

    def matmul(x: Any, y: Any) -> Any:
        seen.update((x.dtype.name, y.dtype.name))
        return plain(x, y)

    namespace.matmul = matmul
    try:
        yield seen
    finally:
        namespace.matmul = plain


def _leaf(*shape: int, dtype: Any) -> Any:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return tlc.tensor(values, device=DEVICE).to(dtype).requires_grad_(True)


def _attention(size: int, dtype: Any, **options: Any) -> Any:
    q, k, v = [_leaf(2, 4, size, 16, dtype=dtype) for _ in range(3)]
    return F.scaled_dot_product_attention(q, k, v, **options)


def _masked_attention(size: int, dtype: Any) -> Any:
    mask = _leaf(size, size, dtype=dtype)
    return _attention(size, dtype, attn_mask=mask)


def _grouped_attention(size: int, dtype: Any) -> Any:
    q, k = _leaf(2, 4, size, 16, dtype=dtype), _leaf(2, 2, size, 16, dtype=dtype)
    return F.scaled_dot_product_attention(q, k, k, enable_gqa=True, is_causal=True)


def _convolution(size: int, dtype: Any, function: Any = F.conv2d, **options: Any) -> Any:
    x, w = _leaf(2, 4, size, size, dtype=dtype), _leaf(4, 4, 3, 3, dtype=dtype)
    return function(x, w, _leaf(4, dtype=dtype), **options)


def _lstm(size: int, dtype: Any) -> Any:
    layer = nn.LSTM(size, size, 2, device=DEVICE, dtype=dtype)
    return layer(_leaf(5, 3, size, dtype=dtype))[0]


def _gru(size: int, dtype: Any) -> Any:
    layer = nn.GRU(size, size, device=DEVICE, dtype=dtype)
    return layer(_leaf(5, 3, size, dtype=dtype))[0]


def _language_model(size: int, dtype: Any) -> Any:
    tokens = tlc.arange(6, device=DEVICE) % 5
    weight = _leaf(5, size, dtype=dtype)
    return F.linear(F.embedding(tokens, weight), weight)  # tied, as in GPT-2


def _bilinear(size: int, dtype: Any) -> Any:
    x, y, w = _leaf(3, size, dtype=dtype), _leaf(3, 4, dtype=dtype), _leaf(2, size, 4, dtype=dtype)
    return F.bilinear(x, y, w, _leaf(2, dtype=dtype))


def _mean_square(x: Any) -> Any:
    return (x.float() ** 2).mean()


def _addmm(size: int, dtype: Any, **scales: Any) -> Any:
    x, y, z = [_leaf(size, size, dtype=dtype) for _ in range(3)]
    return tlc.addmm(x, y, z, **scales)


def _baddbmm(size: int, dtype: Any) -> Any:
    x, y, z = [_leaf(2, size, size, dtype=dtype) for _ in range(3)]
    return tlc.baddbmm(x, y, z, beta=0.5, alpha=2)


CASES: dict[str, Callable[[int, Any], Any]] = {
    "linear": lambda n, d: F.linear(*[_leaf(n, n, dtype=d) for _ in range(2)], _leaf(n, dtype=d)),
    "linear_without_bias": lambda n, d: F.linear(_leaf(2, n, n, dtype=d), _leaf(4, n, dtype=d)),
    "conv": _convolution,
    "conv_strided": lambda n, d: _convolution(n, d, stride=2, padding=1),
    "conv_transpose": lambda n, d: _convolution(n, d, F.conv_transpose2d, stride=2),
    "attention": _attention,
    "attention_causal": lambda n, d: _attention(n, d, is_causal=True),
    "attention_dropout": lambda n, d: _attention(n, d, dropout_p=0.3),
    "attention_masked": _masked_attention,
    "attention_grouped": _grouped_attention,
    "lstm": _lstm,
    "gru": _gru,
    "embedding": _language_model,
    "bilinear": _bilinear,
    "addmm": _addmm,
    "addmm_scaled": lambda n, d: _addmm(n, d, beta=0.5, alpha=0.3),
    "baddbmm": _baddbmm,
    "matmul": lambda n, d: _leaf(2, 3, n, 4, dtype=d) @ _leaf(4, n, dtype=d),
    "einsum": lambda n, d: tlc.einsum(
        "bik,bjk->bij", _leaf(2, n, 4, dtype=d), _leaf(2, 3, 4, dtype=d)
    ),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [8, LARGE])
@pytest.mark.parametrize("name", CASES)
def test_backward_multiplies_in_the_operands_dtype(name: str, size: int, dtype: str) -> None:
    with products() as seen:
        _mean_square(CASES[name](size, getattr(tlc, dtype))).backward()
    assert seen <= {dtype}
    assert seen or DEVICE != "strict"  # elsewhere some are no products of matrices


class _Block(nn.Module):
    """A block of GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """(batch, length, width) in and out."""
        parts = self.qkv(self.first(x)).chunk(3, dim=-1)
        q, k, v = [p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


@pytest.mark.parametrize("width", [32, 256])
def test_a_transformer_block_multiplies_no_float32(width: int) -> None:
    model = nn.Sequential(_Block(width, 4), _Block(width, 4)).to(DEVICE)
    x = _leaf(2, 16, width, dtype=tlc.float32)
    if DEVICE == "strict":  # autocast does not know the device
        model, x = model.bfloat16(), x.bfloat16()
    with products() as seen:
        with nullcontext() if DEVICE == "strict" else tlc.autocast(DEVICE, tlc.bfloat16):
            loss = _mean_square(model(x))
        loss.backward()
    assert seen <= {"bfloat16"}
    assert all(p.grad.dtype is p.dtype for p in model.parameters())


def test_the_text_of_a_body_says_whether_it_multiplies() -> None:
    importlib.import_module("tensorflow_lite_clone.optim")  # its steps are entries as well
    found = {name for name, entry in TABLE.items() if multiplies_matrices(entry)}
    assert {"linear_backward", "conv_transpose", "attention_backward", "lstm_sequence"} <= found
    assert "muon_step" in found
    assert found.isdisjoint({"softmax_backward", "layer_norm", "gelu_backward", "lstm_cell_step"})
    assert "adam_step" not in found
