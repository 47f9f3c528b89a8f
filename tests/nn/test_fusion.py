"""`nn.utils.fusion`, and the smaller tools of `nn.utils`, beside PyTorch."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.nn.against_torch import failed, near, raises, same
from tests.tensor.expressions import lines

CONVOLUTIONS = [
    ("Conv1d", (4, 3, 2), {}),
    ("Conv2d", (4, 2, 3), {"groups": 2, "bias": False}),
    ("Conv3d", (4, 3, 1), {}),
    ("ConvTranspose2d", (4, 3, 2), {}),
]


def pair(lib, layer, sizes, options, channels, **batch_options):
    """A layer and a normalisation of its outputs, both in evaluation mode."""
    lib.manual_seed(0)
    module = getattr(lib.nn, layer)(*sizes, **options).eval()
    norm = f"BatchNorm{layer[-2]}d" if layer != "Linear" else "BatchNorm1d"
    bn = getattr(lib.nn, norm)(channels, **batch_options).eval()
    bn.running_mean.copy_(lib.linspace(-1, 1, channels))
    bn.running_var.copy_(lib.linspace(0.5, 2, channels))
    if bn.affine:
        with lib.no_grad():
            bn.weight.copy_(lib.linspace(2, -1, channels))
            bn.bias.copy_(lib.linspace(0, 1, channels))
    return module, bn


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("layer", "sizes", "options"), CONVOLUTIONS)
def test_convolutions(layer, sizes, options, affine):
    def run(lib):
        conv, bn = pair(lib, layer, sizes, options, sizes[1], affine=affine)
        transpose = "Transpose" in layer
        fused = lib.nn.utils.fuse_conv_bn_eval(conv, bn, transpose=transpose)
        x = lib.linspace(-1, 1, 4 * 4 ** int(layer[-2])).reshape(1, 4, *[4] * int(layer[-2]))
        assert (fused(x) - bn(conv(x))).abs().max() < 1e-5
        assert fused is not conv and not fused.training
        return fused, fused.state_dict(), fused.weight, fused.bias

    near(run)


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias):
    def run(lib):
        linear, bn = pair(lib, "Linear", (3, 4), {"bias": bias}, 4)
        one = pair(lib, "Linear", (3, 4), {"bias": bias}, 1)
        fused = lib.nn.utils.fuse_linear_bn_eval(linear, bn)
        frozen = lib.nn.utils.fuse_linear_bn_eval(linear.double().requires_grad_(False), bn)
        x = lib.linspace(-1, 1, 12).reshape(4, 3)
        assert (fused(x) - bn(linear.float()(x))).abs().max() < 1e-5
        broad = lib.nn.utils.fuse_linear_bn_eval(*one).bias
        return fused, fused.weight, fused.bias, frozen.weight, frozen.bias, broad

    near(run)


@lines(
    """
    U.fuse_conv_bn_weights(W.half(), None, v, v + 1, 1e-5, None, None)
    U.fuse_conv_bn_weights(W, v.double(), v, v + 1, 0.1, v, v)
    U.fuse_conv_bn_weights(W[:, :, 0], v, v, v + 1, 0.1, v, None, transpose=False)
    U.fuse_conv_bn_weights(W.transpose(0, 1), v, v, v + 1, 0.1, None, v, True)
    U.fuse_linear_bn_weights(W[:, :, 0, 0], None, v, v + 1, 1e-5, v, v)
    """
)
def test_weights(expression):
    def run(lib):
        W = lib.linspace(-1, 1, 24).reshape(4, 3, 2, 1)
        return eval(expression, {"U": lib.nn.utils, "W": W, "v": lib.linspace(0, 1, 4)})

    near(run)


def test_fuse_bn_eval_invalid_modules_raise():
    def fuse(lib, layer="Conv2d", sizes=(4, 3, 2), channels=3, change=lambda c, b: None, **options):
        module, bn = pair(lib, layer, sizes, {}, channels, **options)
        change(module, bn)
        name = "linear" if layer == "Linear" else "conv"
        return getattr(lib.nn.utils, f"fuse_{name}_bn_eval")(module, bn)

    def forget(module, bn):
        bn.running_mean = None

    raises(lambda lib: fuse(lib, change=lambda c, b: c.train()))
    raises(lambda lib: fuse(lib, change=lambda c, b: b.train()))
    raises(lambda lib: fuse(lib, change=forget))
    raises(lambda lib: fuse(lib, "Linear", (3, 4), 3))
    raises(lambda lib: fuse(lib, "Linear", (3, 4), 4, lambda c, b: c.train()))


def test_memory_formats():
    def run(lib):
        layers = ("Conv2d", "ConvTranspose2d", "Conv3d", "ConvTranspose3d")
        results = []
        for convert, layout in (
            (lib.nn.utils.convert_conv2d_weight_memory_format, lib.channels_last),
            (lib.nn.utils.convert_conv3d_weight_memory_format, lib.channels_last_3d),
        ):
            net = lib.nn.Sequential(*[getattr(lib.nn, layer)(2, 3, 3) for layer in layers])
            weights = [layer.weight for layer in net]
            assert convert(net, layout) is net
            assert all(layer.weight is w for layer, w in zip(net, weights))
            results.append([w.stride() for w in weights])
        return results

    assert not failed(same(run))


def test_skip_init():
    def run(lib):
        lib.manual_seed(0)
        layer = lib.nn.utils.skip_init(lib.nn.Linear, 3, 4, bias=False, dtype=lib.float64)
        return layer, str(layer.weight.dtype), str(layer.weight.device), lib.rand(3)

    assert not failed(same(run))
    raises(lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU))
    raises(lambda lib: lib.nn.utils.skip_init(lib.nn.Sequential, lib.nn.Linear(2, 2)))


def test_stateless():
    def run(lib):
        layer, call = lib.nn.Linear(2, 2), lib.nn.utils.stateless.functional_call
        state = {"weight": lib.ones(2, 2), "bias": lib.zeros(2)}
        outputs = [
            call(layer, state, lib.ones(1, 2)),
            call(layer, state, None, {"input": lib.ones(2)}),
        ]
        return outputs, layer.weight is state["weight"]

    assert not failed(same(run))
    raises(
        lambda lib: lib.nn.utils.stateless.functional_call(
            lib.nn.Linear(2, 2), {"w": lib.ones(2, 2)}, lib.ones(1, 2), strict=True
        )
    )


def test_the_old_name_of_clipping():
    def run(lib):
        weight = lib.nn.Parameter(lib.ones(3))
        (weight * lib.arange(3.0)).sum().backward()
        return lib.nn.utils.clip_grad_norm(weight, 1.0), weight.grad

    near(run)


def per_sample(lib):
    return import_module(f"{lib.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_per_sample(reduction):
    def run(lib):
        nn = lib.nn
        lib.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
        net[3].bias.requires_grad_(False)
        x = lib.linspace(-1, 1, 27).reshape(3, 1, 3, 3).requires_grad_()
        y = per_sample(lib)(net, loss_reduction=reduction)(x)
        getattr(y.pow(2).sum(1), reduction)().backward()
        found = [getattr(p, "grad_sample", None) for p in net.parameters()]
        return y, x.grad, found, [p.grad for p in net.parameters()]

    near(run)


def test_gradients_per_sample_of_several_inputs():
    def run(lib):
        class Sum(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = lib.nn.Linear(2, 2)

            def forward(self, a, b, scale=1):
                return self.linear(a) + self.linear(b) * scale

        lib.manual_seed(0)
        net = Sum()
        x = lib.arange(6.0).reshape(3, 2)
        y = per_sample(lib)(net)(x, b=x + 1, scale=3)
        y.sum().backward()
        return y, [p.grad_sample for p in net.parameters()]

    near(run)


def test_gradients_per_sample_of_what_does_not_fit():
    def call(lib, *args, net=None, **options):
        return per_sample(lib)(net or lib.nn.Linear(2, 2), **options)(*args)

    def twice(lib):
        net = lib.nn.Linear(2, 2)
        net.weight.data.fill_(1)
        call(lib, lib.ones(3, 2), net=net).sum().backward()
        try:
            call(lib, lib.ones(3, 2), net=net)
        except RuntimeError as error:
            raise RuntimeError(str(error)[:120]) from None

    raises(twice)
    raises(lambda lib: call(lib, lib.ones(3, 2), loss_reduction="x"))
    raises(lambda lib: call(lib, lib.ones(3, 2), batch_size="x"))
    raises(lambda lib: call(lib, lib.ones(3, 2), batch_size=4))
    raises(lambda lib: call(lib, 3))
    raises(lambda lib: per_sample(lib)(3))
    raises(lambda lib: call(lib, lib.ones(3, 2), lib.ones(2, 2)))
