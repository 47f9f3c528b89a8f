"""Checkpoints under autocast: the second run computes in the dtypes of the first."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn
import tensorflow_lite_clone.utils.checkpoint
from tests.autograd.against_torch import raises, same
from tests.device import DEVICE

pytestmark = pytest.mark.skipif(
    DEVICE != "cpu", reason="PyTorch's side runs on the CPU, whose lists are not another device's"
)


def loss_of(lib, reentrant, forward, inside=False, **options):
    """A loss, its gradients and the dtypes of both runs; `backward` is outside of the block."""
    lib.manual_seed(0)
    first, second = lib.nn.Linear(6, 5), lib.nn.Linear(5, 3)
    x = lib.randn(4, 6, requires_grad=True)
    seen = []

    def run(x):
        y = forward(lib, first, second, x)
        seen.append((str(y.dtype), lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu")))
        return y

    with lib.autocast("cpu", **options):
        y = lib.utils.checkpoint.checkpoint(run, x, use_reentrant=reentrant)
        loss = y.float().square().mean()
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    seen.append((lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu")))
    return loss.item(), x.grad, first.weight.grad, second.bias.grad, seen


def layers(lib, first, second, x):
    return second(first(x).relu())


def with_a_block_inside(lib, first, second, x):
    with lib.autocast("cpu", enabled=False):
        x = first(x.float())
    with lib.autocast("cpu", dtype=lib.float16):
        return second(x)


def with_dropout(lib, first, second, x):
    return second(lib.nn.functional.dropout(first(x), 0.5))


def nested(lib, first, second, x):
    inner = lib.utils.checkpoint.checkpoint(first, x, use_reentrant=False)
    return second(inner.sin())


@pytest.mark.parametrize("forward", [layers, with_a_block_inside, with_dropout, nested])
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_backward(forward, reentrant, inside):
    same(lambda lib: loss_of(lib, reentrant, forward, inside), rtol=3e-2, atol=5e-3)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize(
    "options", [{"dtype": "float16"}, {"enabled": False}, {"cache_enabled": False}]
)
def test_settings_are_those_of_the_first_run(reentrant, options):
    def script(lib):
        named = {k: getattr(lib, v) if isinstance(v, str) else v for k, v in options.items()}
        return loss_of(lib, reentrant, layers, **named)

    same(script, rtol=3e-2, atol=5e-3)


@pytest.mark.parametrize("reentrant", [False, True])
def test_backward_under_another_autocast(reentrant):
    def script(lib):
        x = lib.ones(3, 3, requires_grad=True)
        seen = []

        def run(x):
            seen.append([lib.is_autocast_enabled(kind) for kind in ("cpu", "cuda")])
            return x @ x

        y = lib.utils.checkpoint.checkpoint(run, x, use_reentrant=reentrant)
        with lib.autocast("cpu"):
            y.sum().backward()
            after = lib.is_autocast_enabled("cpu")
        return y, x.grad, seen, after

    same(script)


@pytest.mark.parametrize("reentrant", [False, True])
def test_sequential(reentrant):
    def script(lib):
        lib.manual_seed(1)
        model = lib.nn.Sequential(*[lib.nn.Linear(4, 4) for _ in range(4)])
        x = lib.randn(2, 4, requires_grad=True)
        with lib.autocast("cpu"):
            y = lib.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=reentrant)
        y.float().sum().backward()
        return y.dtype, x.grad, [p.grad for p in model.parameters()]

    same(script, rtol=3e-2, atol=5e-3)


def test_checkpoints_share_parameters():
    def script(lib):
        lib.manual_seed(1)
        layer = lib.nn.Linear(4, 4)
        x = lib.randn(2, 4, requires_grad=True)
        with lib.autocast("cpu"):
            y = layer(x)
            for _ in range(2):
                y = lib.utils.checkpoint.checkpoint(layer, y.sin(), use_reentrant=False)
        y.float().sum().backward()
        return x.grad, layer.weight.grad

    same(script, rtol=3e-2, atol=1e-2)


def test_selective():
    def script(lib):
        contexts = lib.utils.checkpoint.create_selective_checkpoint_contexts
        x = lib.ones(3, 3, requires_grad=True)
        with lib.autocast("cpu"):
            y = lib.utils.checkpoint.checkpoint(
                lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=lambda: contexts([])
            )
        y.float().sum().backward()
        return y.dtype, x.grad

    same(script, rtol=3e-2, atol=1e-2)


def test_arguments_that_do_not_go_together():
    def script(lib, **options):
        x = lib.ones(2, requires_grad=True)
        return lib.utils.checkpoint.checkpoint(lambda x: x * x, x, **options)

    raises(lambda lib: script(lib, use_reentrant=True, debug=True))
    raises(
        lambda lib: script(lib, use_reentrant=True, context_fn=lambda: lib.autocast("cpu")),
    )
    raises(
        lambda lib: script(lib, use_reentrant=False, determinism_check="always"),
        "determinism_check should be one of",
    )


@pytest.mark.parametrize("check", ["default", "none"])
def test_determinism_check(check):
    def script(lib):
        x = lib.ones(2, requires_grad=True)
        sizes = iter([2, 1])

        def run(x):
            return x * x[: next(sizes)].exp()

        y = lib.utils.checkpoint.checkpoint(run, x, use_reentrant=False, determinism_check=check)
        y.sum().backward()

    words = {"default": ("different metadata",), "none": ("shape", "size")}
    same(script, words=words[check])


def test_random_numbers_of_nested_arguments():
    def script(lib):
        lib.manual_seed(3)
        x = lib.ones(20, requires_grad=True)

        def run(pair, *, more):
            return lib.nn.functional.dropout(pair[0] * more["x"], 0.5)

        y = lib.utils.checkpoint.checkpoint(run, (x, 1), more={"x": x}, use_reentrant=False)
        y.sum().backward()
        return y, x.grad

    same(script)


def test_states_of_all_device_types_are_kept():
    before = []
    with tlc.autocast("cpu"), tlc.autocast("cuda", dtype=tlc.bfloat16):
        x = tlc.ones(2, 2, requires_grad=True)

        def run(x):
            before.append([tlc.get_autocast_dtype(kind) for kind in ("cpu", "cuda")])
            before.append([tlc.is_autocast_enabled(kind) for kind in ("cpu", "cuda")])
            return x @ x

        y = tlc.utils.checkpoint.checkpoint(run, x, use_reentrant=False)
    y.float().sum().backward()
    assert before[:2] == before[2:] == [[tlc.bfloat16] * 2, [True] * 2]
