"""`nn.attention.flex_attention` beside PyTorch."""

from __future__ import annotations

import math
import warnings
from importlib import import_module

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import failed, near, raises, same
from tests.tensor.expressions import lines

# PyTorch compiles the functions of scores otherwise, for seconds, even where it has no kernel.
import_module("torch.nn.attention.flex_attention")._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def scope(lib):
    flex = import_module(f"{lib.__name__}.nn.attention.flex_attention")

    def block_mask(mask_mod, B=None, H=None, q=20, kv=28, BLOCK_SIZE=(4, 8), **options):
        return flex.create_block_mask(
            mask_mod, B, H, q, kv, device="cpu", BLOCK_SIZE=BLOCK_SIZE, **options
        )

    def parts(mask):
        tensors = [
            getattr(mask, f"{full}{side}_{what}")
            for full in ("", "full_")
            for side in ("kv", "q")
            for what in ("num_blocks", "indices")
        ]
        numbers = [mask.shape, mask.numel(), mask.sparsity(), mask.seq_lengths, mask.BLOCK_SIZE]
        return [tensors, numbers, mask.to_dense(), str(mask), repr(mask)]

    def dense(mod, B=1, H=1, q=4, kv=4):
        return flex.create_mask(mod, B, H, q, kv, device="cpu")

    def qkv(heads=4, kv_heads=4, q_len=8, kv_len=8, size=6, batch=2):
        lib.manual_seed(0)
        return (
            lib.randn(batch, heads, q_len, size),
            lib.randn(batch, kv_heads, kv_len, size),
            lib.randn(batch, kv_heads, kv_len, size + 1),
        )

    def attend(*mods, inputs=None, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return flex.flex_attention(*(inputs or qkv()), *mods, **options)

    documents = lib.tensor([0] * 5 + [1] * 6 + [2] * 9)
    slopes = lib.tensor([0.5, 0.25, 0.125, 0.0625])
    return {
        "torch": lib,
        "flex": flex,
        "T": lambda *values: lib.tensor(values, dtype=lib.int32),
        "causal": lambda b, h, q, k: q >= k,
        "late": lambda b, h, q, k: q > k,
        "near": lambda b, h, q, k: q - k < 3,
        "by_head": lambda b, h, q, k: (q + h) % 2 >= k % (b + 1),
        "same_document": lambda b, h, q, k: documents[q] == documents[k % 20],
        "alibi": lambda s, b, h, q, k: s - slopes[h] * (q - k).abs(),
        "cap": lambda s, b, h, q, k: (s / 2).tanh() * 2,
        "masked": lambda s, b, h, q, k: lib.where(q >= k, s, -math.inf),
        "AuxRequest": flex.AuxRequest,
        "BlockMask": flex.BlockMask,
        **{f.__name__: f for f in (block_mask, parts, dense, qkv, attend)},
    }


def script(expression):
    return lambda lib: eval(expression, scope(lib))


@lines(
    """
    parts(block_mask(causal))
    parts(block_mask(causal, 2, 3))
    parts(block_mask(by_head, 2, 3, BLOCK_SIZE=8))
    parts(block_mask(same_document, 1, 2))
    parts(block_mask(flex.noop_mask))
    parts(block_mask(causal, BLOCK_SIZE=128))
    parts(block_mask(late, separate_full_blocks=False))
    parts(block_mask(by_head, 2, 3)._adjust(9, 28))
    parts(block_mask(causal, 2, 3).to("cpu"))
    parts(BlockMask.from_kv_blocks(T([[1, 2]]), T([[[0, 1], [1, 0]]]), BLOCK_SIZE=4))
    parts(BlockMask.from_kv_blocks(T(1, 2), T([0, 1], [1, 0]), T(1, 0), T([1, 0], [0, 1])))
    repr(BlockMask.from_kv_blocks(T(1, 2), T([0, 1], [1, 0]), compute_q_blocks=False))
    block_mask(causal, 2, 3).to_string(limit=2), block_mask(causal, 2, 3).to_string(limit=6)
    block_mask(causal).to_string(grid_size=(3, 2)), block_mask(causal).to_string(grid_size=-1)
    block_mask(causal, q=200, kv=200).to_string(), block_mask(causal, q=90, kv=90).to_string(5)
    [block_mask(by_head, 2, 3)[i].to_dense() for i in (0, -1, (1, 2), (0, slice(1, 3)), (1, -1))]
    [block_mask(by_head, 2, 3)[i].shape for i in (0, -1, (1, 2), (0, slice(1, 3)), 7)]
    block_mask(by_head, 2, 3)[0, :, 1:3].kv_indices
    dense(causal, 2, None, 3, 4), dense(masked), dense(flex.noop_mask), dense(alibi)
    dense(flex.and_masks(causal, near), q=6, kv=6), dense(flex.or_masks(late, near), q=6, kv=6)
    dense(flex.and_masks()), dense(flex.or_masks())
    AuxRequest(), AuxRequest(lse=True)._asdict(), flex.AuxOutput()
    sorted(flex.__all__)
    """
)
def test_masks(expression):
    assert not failed(same(script(expression)))


@lines(
    """
    attend()
    attend(alibi)
    attend(cap)
    attend(masked)
    attend(alibi, block_mask(causal, q=8, kv=8))
    attend(None, block_mask(causal, 2, 4, q=8, kv=8))
    attend(block_mask=block_mask(by_head, 2, 4, q=8, kv=8), return_lse=True)
    attend(block_mask=block_mask(late, q=8, kv=8), return_lse=True)
    attend(block_mask=block_mask(same_document, q=8, kv=8), return_aux=AuxRequest(lse=True))[0]
    attend(return_aux=AuxRequest(lse=True))[1].lse
    attend(scale=2, kernel_options={"BLOCK_M": 32})
    attend(alibi, inputs=qkv(kv_heads=2, kv_len=11), enable_gqa=True, return_lse=True)
    attend(inputs=qkv(q_len=5, kv_len=3, size=1))
    attend(inputs=[x.double() for x in qkv()], return_lse=True)
    attend(None, block_mask(by_head, 2, q=8, kv=8), inputs=(qkv()[0], *[x[:1] for x in qkv()[1:]]))
    """
)
def test_attention(expression):
    near(script(expression))


@lines(
    """
    block_mask(lambda *a: 3)
    block_mask(lambda b, h, q: q)
    dense(lambda b, h: b)
    flex.and_masks(3)
    flex.or_masks(3)
    BlockMask.from_kv_blocks(T(1, 2), T(0, 1))
    BlockMask.from_kv_blocks(T(1, 2), T([0, 1], [1, 0]), T(1, 0))
    attend(inputs=qkv(kv_heads=2))
    attend(inputs=qkv(kv_heads=3), enable_gqa=True)
    attend(inputs=[x[0] for x in qkv()])
    attend(inputs=(qkv()[0], *qkv(size=7)[1:]))
    attend(inputs=(qkv()[0], *qkv(batch=1)[1:]))
    attend(None, block_mask(causal, q=8, kv=8), inputs=(qkv()[0], *qkv(batch=1)[1:]))
    attend(None, block_mask(causal, q=9, kv=8))
    attend(None, block_mask(causal, q=4, kv=9))
    attend(return_lse=True, return_aux=AuxRequest())
    """
)
def test_errors(expression):
    raises(script(expression))


def written_out(q, k, v, bias, masked):
    """What `test_gradients` calls, for PyTorch, which has no gradients of it on a CPU."""
    keys, values = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = q @ keys.mT / math.sqrt(6) * bias[:, None, None]
    if not masked:
        return scores.softmax(-1) @ values
    below = torch.ones(5, 7, dtype=torch.bool).tril(-1)
    return scores.masked_fill(~below, -1e30).softmax(-1) * below @ values


def called(q, k, v, bias, masked):
    flex = import_module("tensorflow_lite_clone.nn.attention.flex_attention")
    mask = flex.create_block_mask(lambda b, h, i, j: i > j, None, None, 5, 7, device="cpu")
    mods = (lambda s, b, h, i, j: s * bias[h]), mask if masked else None
    return flex.flex_attention(q, k, v, *mods, enable_gqa=True)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients(masked):
    gradients = []
    for lib, attend in ((tlc, called), (torch, written_out)):
        lib.manual_seed(0)
        q = lib.randn(2, 4, 5, 6, requires_grad=True)
        k, v = (lib.randn(2, 2, 7, 6, requires_grad=True) for _ in range(2))
        bias = lib.randn(4, requires_grad=True)
        attend(q, k, v, bias, masked).pow(2).sum().backward()
        gradients.append([x.grad for x in (q, k, v, bias)])
    for here, there in zip(*gradients):
        assert tlc.tensor(there.tolist()).allclose(here, rtol=1e-4, atol=1e-5)


def test_largest_scores():
    # PyTorch has them on a GPU only.
    flex = import_module("tensorflow_lite_clone.nn.attention.flex_attention")
    q, k, v = scope(tlc)["qkv"]()
    aux = flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(max_scores=True))[1]
    assert aux.lse is None
    assert aux.max_scores.allclose((q @ k.mT / math.sqrt(6)).amax(-1))


def test_half_precision():
    def run(lib):
        names = scope(lib)
        inputs = [x.half() for x in names["qkv"]()]
        output, lse = names["attend"](names["alibi"], inputs=inputs, return_lse=True)
        return output, lse

    near(run, rtol=1e-2, atol=2e-3)  # products in float16


def test_a_slice_has_no_function():
    for lib in (tlc, torch):
        mask = eval("block_mask(causal, 2, 3)[0, 1]", scope(lib))
        with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
            mask.mask_mod(0, 0, 0, 0)


def test_shorter_sequences():
    # PyTorch crops the lists of blocks as they stand, and so keeps what is not there any more.
    names = scope(tlc)
    causal, block_mask = names["causal"], names["block_mask"]
    cropped, made = block_mask(causal)._adjust(9, 10), block_mask(causal, q=12, kv=16)
    assert cropped.shape == (1, 1, 9, 10)
    assert cropped.to_dense().tolist() == made.to_dense().tolist()


def test_warning():
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        flex = import_module("tensorflow_lite_clone.nn.attention.flex_attention")
        flex.flex_attention(*scope(tlc)["qkv"](), return_lse=True)
