"""`nn.utils.spectral_norm`, by a hook before forward, beside PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import LIBRARIES, near, raises, train


def normed(lib, *sizes, layer="Linear", **options):
    lib.manual_seed(0)
    return lib.nn.utils.spectral_norm(getattr(lib.nn, layer)(*sizes), **options)


@pytest.mark.parametrize(
    ("layer", "sizes", "shape", "options"),
    [
        ("Linear", (3, 4), (5, 3), {}),
        ("Linear", (3, 4), (5, 3), {"dim": 1, "n_power_iterations": 3}),
        ("Linear", (3, 4), (5, 3), {"name": "bias", "eps": 1e-3}),
        ("Conv2d", (2, 3, 3), (1, 2, 4, 4), {}),
        ("ConvTranspose2d", (2, 3, 3), (1, 2, 4, 4), {}),
    ],
)
def test_training(layer, sizes, shape, options):
    def run(lib):
        module = normed(lib, *sizes, layer=layer, **options)
        (hook,) = module._forward_pre_hooks.values()
        names = [name for name, _ in module.named_parameters()]
        state = module.state_dict()
        x = lib.linspace(-1, 1, lib.Size(shape).numel()).reshape(shape)
        weight = getattr(module, hook.name)
        return vars(hook), names, weight, state, state._metadata, train(lib, module, x)

    near(run)


def test_removal():
    def run(lib):
        layer = normed(lib, 3, 4)
        layer(lib.ones(1, 3))
        lib.nn.utils.remove_spectral_norm(layer)
        hooks = len(layer._forward_pre_hooks), len(layer._state_dict_hooks)
        return layer, layer.state_dict(), layer.state_dict()._metadata, hooks

    near(run)


def test_removed_spectral_norm_loads_other_state_dicts():
    # In PyTorch the check of what is loaded stays behind, and refuses.
    layer = tlc.nn.utils.remove_spectral_norm(normed(tlc, 3, 4))
    other = tlc.nn.Linear(3, 4)
    layer.load_state_dict(other.state_dict())
    assert layer.weight.tolist() == other.weight.tolist()


def test_errors():
    raises(lambda lib: lib.nn.utils.spectral_norm(normed(lib, 3, 4)))
    raises(lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2), "nope"))
    raises(lambda lib: normed(lib, 3, 4, n_power_iterations=0))
    raises(lambda lib: lib.nn.utils.remove_spectral_norm(lib.nn.Linear(2, 2)))


@pytest.mark.parametrize(
    ("change", "compare"),
    [
        ("none", near),
        ("old", near),
        ("old, no metadata", near),
        ("no v", raises),
        ("nothing of it", raises),
    ],
)
def test_older_states(change, compare):
    def run(lib):
        layer = normed(lib, 3, 4)
        layer(lib.ones(1, 3))
        saved = layer.state_dict()
        state = OrderedDict(saved)
        if change != "old, no metadata":
            state._metadata = copy.deepcopy(saved._metadata)
        if change != "none":
            del state["weight_v"]
        if change.startswith("old"):
            state["weight"] = layer.weight.detach()
            if hasattr(state, "_metadata"):
                del state._metadata[""]["spectral_norm"]
        if change == "nothing of it":
            state = {"bias": state["bias"]}
        other = lib.nn.utils.spectral_norm(lib.nn.Linear(3, 4))
        other.load_state_dict(state)
        return other.state_dict()

    compare(run)


def test_copies():
    for lib in LIBRARIES:
        layer = normed(lib, 3, 4).eval()
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert other(lib.ones(1, 3)).tolist() == layer(lib.ones(1, 3)).tolist()
            assert other.state_dict()._metadata == layer.state_dict()._metadata


def test_state_goes_from_library_to_library(tmp_path):
    for source, target in (LIBRARIES, LIBRARIES[::-1]):
        layers = [normed(lib, 3, 4) for lib in (source, target)]
        layers[0](source.ones(1, 3))
        source.save(layers[0].state_dict(), tmp_path / "state.pt")
        layers[1].load_state_dict(target.load(tmp_path / "state.pt"))
        outputs = [layer.eval()(lib.ones(1, 3)) for lib, layer in zip((source, target), layers)]
        assert outputs[0].tolist()[0] == pytest.approx(outputs[1].tolist()[0], rel=1e-5)
