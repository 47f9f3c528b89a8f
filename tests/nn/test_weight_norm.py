"""`nn.utils.weight_norm`, by a hook before forward, beside PyTorch."""

from __future__ import annotations

import copy
import pickle

import pytest

from tests.nn.against_torch import LIBRARIES, near, raises, same, train

pytestmark = pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")


def normed(lib, *sizes, layer="Linear", **options):
    lib.manual_seed(0)
    return lib.nn.utils.weight_norm(getattr(lib.nn, layer)(*sizes), **options)


@pytest.mark.parametrize("dim", [0, 1, -1, -2, None])
def test_training(dim):
    def run(lib):
        layer = normed(lib, 3, 4, dim=dim)
        (hook,) = layer._forward_pre_hooks.values()
        names = [name for name, _ in layer.named_parameters()]
        x = lib.linspace(-1, 1, 15).reshape(5, 3)
        return vars(hook), names, layer.weight, layer.state_dict(), train(lib, layer, x)

    near(run)


def test_convolutions_and_recurrent_layers():
    def run(lib):
        conv = normed(lib, 2, 3, 3, layer="ConvTranspose2d", dim=1)
        gru = normed(lib, 2, 3, layer="GRU", name="weight_hh_l0")
        x = lib.linspace(-1, 1, 32).reshape(1, 2, 4, 4)
        return train(lib, conv, x), gru(lib.ones(4, 1, 2))[0], list(gru.state_dict())

    near(run)


def test_two_parameters():
    def run(lib):
        layer = lib.nn.utils.weight_norm(normed(lib, 3, 4), "bias", None)
        state = layer.state_dict()
        lib.nn.utils.remove_weight_norm(layer)
        removed = layer.weight, list(layer.state_dict()), len(layer._forward_pre_hooks)
        return layer, state, removed, train(lib, layer, lib.ones(2, 3))

    near(run)


def test_the_warning():
    same(lambda lib: lib.nn.utils.weight_norm(lib.nn.Linear(2, 2)))


def test_errors():
    raises(lambda lib: lib.nn.utils.weight_norm(normed(lib, 3, 4)))
    raises(lambda lib: lib.nn.utils.weight_norm(lib.nn.Linear(2, 2), "nope"))
    raises(lambda lib: lib.nn.utils.weight_norm(lib.nn.Linear(2, 2), dim=2))
    raises(lambda lib: lib.nn.utils.remove_weight_norm(lib.nn.Linear(2, 2)))
    raises(lambda lib: copy.deepcopy(normed(lib, 3, 4)))


def test_copies_by_pickle():
    for lib in LIBRARIES:
        layer = normed(lib, 3, 4)
        with lib.no_grad():
            layer(lib.ones(1, 3))  # its weight is then no part of a graph
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert other(lib.ones(1, 3)).tolist() == layer(lib.ones(1, 3)).tolist()
            assert list(other.state_dict()) == ["bias", "weight_g", "weight_v"]


def test_state_goes_from_library_to_library(tmp_path):
    for source, target in (LIBRARIES, LIBRARIES[::-1]):
        layers = [normed(lib, 3, 4) for lib in (source, target)]
        with source.no_grad():
            layers[0].weight_g.mul_(2)
        source.save(layers[0].state_dict(), tmp_path / "state.pt")
        layers[1].load_state_dict(target.load(tmp_path / "state.pt"))
        outputs = [layer(lib.ones(1, 3)) for lib, layer in zip((source, target), layers)]
        assert outputs[0].tolist()[0] == pytest.approx(outputs[1].tolist()[0], rel=1e-5)
