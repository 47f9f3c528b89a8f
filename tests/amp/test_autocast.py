"""Autocast: which dtype each op runs in is PyTorch's choice; gradients; nesting; the cache."""

from __future__ import annotations

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import same
from tests.device import DEVICE

EXPRESSIONS = """
    a @ a
    torch.mm(a, a)
    torch.bmm(a[None], a[None])
    torch.addmm(a, a, a)
    torch.baddbmm(a[None], a[None], a[None])
    torch.mv(a, a[0])
    torch.nn.functional.linear(a, a, a[0])
    torch.nn.functional.linear(b, a, a[0])
    torch.nn.functional.conv1d(a[None], a[:, :, None])
    torch.nn.functional.conv_transpose1d(a[None], a[:, :, None])
    torch.nn.functional.scaled_dot_product_attention(a[None], a[None], a[None])
    torch.nn.functional.mse_loss(b, b)
    torch.nn.functional.l1_loss(b, b)
    torch.nn.functional.smooth_l1_loss(b, b)
    torch.nn.functional.cross_entropy(b, torch.arange(4))
    torch.nn.functional.nll_loss(b, torch.arange(4))
    torch.nn.functional.binary_cross_entropy_with_logits(b, b.sigmoid())
    a + b
    b * 2
    a.relu()
    b.relu()
    torch.cat([a, b])
    torch.stack([a, b])
    torch.addcmul(a, b, a)
    (a.double() @ a.double())
    (a @ a) @ a
    torch.einsum('ij,jk->ik', a, a)
""".strip().splitlines()
# On CUDA PyTorch's list of ops that run in float32 is longer: written down here, from its pages.
WIDE_ON_CUDA = """
    softmax log_softmax layer_norm group_norm exp log log2 log10 log1p expm1 pow rsqrt reciprocal
    sum prod cumsum cumprod norm softplus tan sinh cosh acos asin
""".split()


def inputs(lib):
    a = lib.arange(16.0).reshape(4, 4) / 16
    return a, a.to(lib.bfloat16)


@parameterized.expand([(text.strip(),) for text in EXPRESSIONS])
@pytest.mark.skipif(DEVICE == "cuda", reason="the lists of the CPU; those of CUDA are below")
def test_dtypes_are_pytorchs(text):
    def script(lib):
        a, b = inputs(lib)
        with lib.autocast("cpu"):
            return eval(text, {"torch": lib, "a": a, "b": b})

    same(script, rtol=2e-2, atol=1e-2)


@pytest.mark.cuda
@pytest.mark.parametrize("name", WIDE_ON_CUDA)
def test_wide_ops_on_cuda(name):
    x = tlc.rand(4, 4, device="cuda", dtype=tlc.float16) * 0.5 + 0.1
    F = tlc.nn.functional
    calls = {
        "softmax": lambda: F.softmax(x, 1),
        "log_softmax": lambda: F.log_softmax(x, 1),
        "layer_norm": lambda: F.layer_norm(x, (4,)),
        "group_norm": lambda: F.group_norm(x, 2),
        "pow": lambda: x**2,
        "prod": lambda: x.prod(),
        "cumsum": lambda: x.cumsum(0),
        "cumprod": lambda: x.cumprod(0),
        "norm": lambda: x.norm(),
        "softplus": lambda: F.softplus(x),
    }
    with tlc.autocast("cuda"):
        assert calls.get(name, lambda: getattr(tlc, name)(x))().dtype is tlc.float32
        assert (x @ x.float()).dtype is tlc.float16
        assert F.conv1d(x.float()[None], x.float()[:, :, None]).dtype is tlc.float16


def test_gradients_arrive_in_the_parameters_dtype():
    layer = tlc.nn.Linear(4, 4).to(DEVICE)
    x = tlc.randn(3, 4, device=DEVICE)
    with tlc.autocast(x.device.type, dtype=tlc.bfloat16):
        y = layer(x)
        z = layer(y)
    assert y.dtype is z.dtype is tlc.bfloat16
    z.float().sum().backward()
    assert layer.weight.grad.dtype is tlc.float32 and bool((layer.weight.grad != 0).any())


def test_casts_of_parameters_are_made_once():
    from tensorflow_lite_clone.ops.decorators.autocast import state

    layer = tlc.nn.Linear(4, 4).to(DEVICE)
    x = tlc.randn(3, 4, device=DEVICE)
    with tlc.autocast(x.device.type):
        layer(layer(x))
        assert len(state.cache) == 2
        with tlc.autocast(x.device.type, enabled=False):
            assert layer(x).dtype is tlc.float32
        assert len(state.cache) == 2
    assert not state.cache
    with tlc.autocast(x.device.type, cache_enabled=False):
        layer(x)
        assert not state.cache


def test_blocks_decorators_and_questions():
    def script(lib):
        found = [lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu")]
        with lib.autocast("cpu", dtype=lib.float16):
            found += [lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu")]
            with lib.amp.autocast("cpu", enabled=False):
                found.append(lib.is_autocast_enabled("cpu"))
            found.append(lib.is_autocast_enabled("cuda"))

        @lib.autocast("cpu")
        def inside():
            return lib.get_autocast_dtype("cpu"), lib.is_autocast_enabled("cpu")

        found += [inside(), lib.is_autocast_enabled("cpu"), lib.amp.is_autocast_available("cpu")]
        return [str(entry).replace("tensorflow_lite_clone", "torch") for entry in found]

    same(script)


def test_refused():
    with pytest.raises(RuntimeError, match="device_type 'tpu'"):
        tlc.autocast("tpu")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tlc.autocast(3)


def test_custom_functions():
    class Product(tlc.autograd.Function):
        @staticmethod
        @tlc.amp.custom_fwd(device_type=DEVICE)
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            ctx.dtype = (x @ w).dtype
            return x @ w

        @staticmethod
        @tlc.amp.custom_bwd(device_type=DEVICE)
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            assert (x @ w).dtype is ctx.dtype is tlc.bfloat16
            return g @ w.T, x.T @ g

    x = tlc.randn(3, 3, device=DEVICE, requires_grad=True)
    with tlc.autocast(x.device.type, dtype=tlc.bfloat16):
        y = Product.apply(x, x)
    y.float().sum().backward()
    assert x.grad.dtype is tlc.float32
