"""Modules whose activations are calculated again, or wait in host memory."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.distributed._composable import checkpoint as tlc_checkpoint
from tensorflow_lite_clone.distributed.algorithms._checkpoint import (
    checkpoint_wrapper as tlc_wrappers,
)
from tests.device import DEVICE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it compiles with what is deprecated
    from torch.distributed._composable import checkpoint as torch_checkpoint
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as torch_wrappers

MODULES = {tlc: tlc_wrappers, torch: torch_wrappers}
COMPOSABLE = {tlc: tlc_checkpoint, torch: torch_checkpoint}


def made(lib):
    model = lib.nn.Sequential(
        lib.nn.Linear(3, 4), lib.nn.Sequential(lib.nn.Tanh(), lib.nn.Linear(4, 4)), lib.nn.ReLU()
    )
    with lib.no_grad():
        for number, parameter in enumerate(model.parameters()):
            values = lib.arange(parameter.numel(), dtype=lib.float32).reshape(parameter.shape)
            parameter.copy_(((values + number) * 0.7).sin())
    return model.to(DEVICE) if lib is tlc else model


def trained(lib, model):
    """The result and the gradients of one step, and how often the inner Linear ran."""
    calls = []
    inner = [m for m in model.modules() if isinstance(m, lib.nn.Linear)][-1]
    inner.register_forward_hook(lambda *arguments: calls.append(1))
    x = lib.ones(2, 3).to(DEVICE if lib is tlc else "cpu")
    out = model(x).sum()
    out.backward()
    gradients = {name: p.grad.flatten().tolist() for name, p in model.named_parameters()}
    return out.item(), gradients, len(calls)


WRAPS = {
    "checkpoint": lambda lib, m: MODULES[lib].checkpoint_wrapper(m),
    "reentrant": lambda lib, m: lib.nn.Sequential(
        m[0],
        MODULES[lib].checkpoint_wrapper(m[1:], MODULES[lib].CheckpointImpl.REENTRANT),
    ),
    "without random states": lambda lib, m: MODULES[lib].checkpoint_wrapper(
        m, preserve_rng_state=False
    ),
    "offload": lambda lib, m: MODULES[lib].offload_wrapper(m),
    "offloaded checkpoints": lambda lib, m: MODULES[lib].offload_wrapper(
        MODULES[lib].checkpoint_wrapper(m)
    ),
    "composable": lambda lib, m: COMPOSABLE[lib](m, preserve_rng_state=False),
    "a part": lambda lib, m: lib.nn.Sequential(m[0], COMPOSABLE[lib](m[1]), m[2]),
}


@pytest.mark.parametrize("name", WRAPS)
def test_wrapped_modules_train_as_they_are(name):
    results = []
    for lib in (tlc, torch):
        model = WRAPS[name](lib, made(lib))
        names = list(model.state_dict()), [name for name, _ in model.named_parameters()]
        model.load_state_dict(model.state_dict())
        out, gradients, calls = trained(lib, model)
        plain, expected, _ = trained(lib, made(lib))
        assert out == pytest.approx(plain)
        for values, wanted in zip(gradients.values(), expected.values(), strict=True):
            assert values == pytest.approx(wanted)
        results.append((names, calls, repr(model)))
    assert results[0] == results[1]


def test_a_wrapper_stands_for_its_module():
    for lib in (tlc, torch):
        for kind in ("checkpoint_wrapper", "offload_wrapper"):
            model = made(lib)
            wrapped = getattr(MODULES[lib], kind)(model)
            assert wrapped[0] is model[0] and wrapped.append == model.append
            assert isinstance(wrapped, MODULES[lib].ActivationWrapper)
            with pytest.raises(AttributeError, match="nothing"):
                wrapped.nothing  # noqa: B018


def test_keywords_reach_the_module():
    class Scaled(tlc.nn.Module):
        def forward(self, x, *, scale):
            return x.sin() * scale

    for impl in tlc_wrappers.CheckpointImpl:
        x, scale = [tlc.full((2,), v, requires_grad=True) for v in (0.5, 3.0)]
        tlc_wrappers.checkpoint_wrapper(Scaled(), impl)(x, scale=scale).sum().backward()
        assert x.grad.tolist() == pytest.approx([2.632748] * 2)
        assert scale.grad.tolist() == pytest.approx([0.479426] * 2)


def policies(lib):
    return {
        "check": {"check_fn": lambda m: isinstance(m, lib.nn.Linear)},
        "all": {},
        "lambda": {
            "auto_wrap_policy": lambda module, recurse, nonwrapped_numel: (
                recurse or isinstance(module, lib.nn.Linear)
            )
        },
        "large": {
            "auto_wrap_policy": lambda module, recurse, nonwrapped_numel: nonwrapped_numel >= 17
        },
        "rest": {
            "auto_wrap_policy": lambda module, recurse, nonwrapped_numel: (
                recurse or nonwrapped_numel >= 20
            )
        },
    }


@pytest.mark.parametrize("name", policies(tlc))
def test_modules_of_a_model_are_wrapped_in_their_places(name):
    shown = []
    for lib in (tlc, torch):
        model = made(lib)
        MODULES[lib].apply_activation_checkpointing(model, **policies(lib)[name])
        shown.append(repr(model))
        model = made(lib)
        offload = MODULES[lib].offload_wrapper
        MODULES[lib].apply_activation_checkpointing(
            model, checkpoint_wrapper_fn=offload, **policies(lib)[name]
        )
        shown.append(repr(model).replace("OffloadWrapper", "CheckpointWrapper"))
    assert len(set(shown)) == 1 and "CheckpointWrapper" in shown[0]


def test_a_module_is_checkpointed_in_its_place_once():
    for lib in (tlc, torch):
        model = made(lib)
        assert COMPOSABLE[lib](model) is model and type(model) is lib.nn.Sequential
        with pytest.raises(AssertionError, match="can only be applied to a module once"):
            COMPOSABLE[lib](model)
        with pytest.raises(ValueError, match="Unexpected keyword arguments: more"):
            COMPOSABLE[lib](lib.nn.Linear(2, 2), more=1)
    copied = copy.deepcopy(COMPOSABLE[tlc](made(tlc)))
    plain = made(tlc)
    with tlc.no_grad():
        copied[0].weight.mul_(2)
        plain[0].weight.mul_(2)
    assert trained(tlc, copied)[0] == pytest.approx(trained(tlc, plain)[0])


@pytest.mark.parametrize("pin_memory", [False, True])
def test_saved_values_wait_in_host_memory(pin_memory):
    """With a GPU: packed values lie in (pinned) host memory. On the CPU: as without the context."""
    x = tlc.linspace(0, 1, 8, device=DEVICE).requires_grad_()
    context = tlc.autograd.graph.save_on_cpu(pin_memory=pin_memory)
    pack, unpack = context._hooks
    packed = pack(x.detach())[1]
    assert packed.is_cpu
    if DEVICE == "cuda":
        assert packed.is_pinned() or not pin_memory
    assert unpack(pack(x.detach())).device == x.device
    with context:
        y = (x * x.exp()).sin().sum()
    y.backward()
    z = x.detach().requires_grad_()
    (z * z.exp()).sin().sum().backward()
    assert x.grad.tolist() == z.grad.tolist()
