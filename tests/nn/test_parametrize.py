"""`nn.utils.parametrize`: parameters computed from others, beside PyTorch."""

from __future__ import annotations

import copy
import pickle

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import LIBRARIES, failed, near, raises, same, train
from tests.tensor.expressions import lines


def maps(lib):
    """Parametrizations to register, by name."""

    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    class Double(lib.nn.Module):
        def forward(self, x):
            return 2 * x

    class Halves(lib.nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 4, 3 * x / 4

    class Undecided(Double):
        def right_inverse(self, x):
            raise NotImplementedError

    class Any(lib.nn.Module):
        """Does what it is told."""

        def __init__(self, forward=lambda *x: x[0], inverse=lambda x: x):
            super().__init__()
            self.there, self.back = forward, inverse

        def forward(self, *x):
            return self.there(*x)

        def right_inverse(self, x):
            return self.back(x)

    return {c.__name__: c for c in (Symmetric, Double, Halves, Undecided, Any)}


def square(lib):
    """A linear layer with known weights."""
    layer = lib.nn.Linear(3, 3)
    with lib.no_grad():
        layer.weight.copy_(lib.arange(9.0).reshape(3, 3) / 8)
        layer.bias.copy_(lib.arange(3.0))
    return layer


def scope(lib):
    P = lib.nn.utils.parametrize
    words = maps(lib)

    def put(*parametrizations, layer=None, name="weight", **options):
        layer = square(lib) if layer is None else layer
        for entry in parametrizations:
            entry = words[entry]() if isinstance(entry, str) else entry
            P.register_parametrization(layer, name, entry, **options)
        return layer

    def state(layer):
        names = [name for name, _ in layer.named_parameters()]
        return layer, layer.weight, layer.state_dict(), names, type(layer)

    def assign(layer, value):
        layer.weight = value
        return state(layer)

    def remove(layer, name="weight", **options):
        return state(P.remove_parametrizations(layer, name, **options))

    def reset(first, inverse, value):
        layer = put(first)
        first.back = inverse
        return assign(layer, value)

    return {
        **words,
        "torch": lib,
        "P": P,
        "I": lib.eye(3),
        "linear": lambda: square(lib),
        **{f.__name__: f for f in (put, state, assign, remove, reset)},
    }


def script(expression):
    return lambda lib: eval(expression, scope(lib))


@lines(
    """
    state(put("Symmetric"))
    state(put("Double"))
    state(put("Halves"))
    state(put("Undecided"))
    state(put("Symmetric", "Double"))
    state(put("Halves", "Symmetric", "Undecided"))
    state(put("Symmetric", layer=linear().requires_grad_(False)))
    state(put("Halves", layer=linear().requires_grad_(False)))
    state(put("Double", name="bias", layer=put("Symmetric")))
    state(put(Any(lambda x: x[0]), unsafe=True))
    state(put(Any(lambda x: x.double()), unsafe=True))
    put("Double").parametrizations.weight.unsafe
    put("Double", Any(lambda x: x[0]), unsafe=True).parametrizations.weight.unsafe
    put("Halves").parametrizations.weight.ntensors
    put("Halves").parametrizations.weight.is_tensor
    put("Double", layer=linear().eval()).parametrizations.weight[0].training
    assign(put("Symmetric"), I)
    assign(put("Halves"), I)
    assign(put("Halves", "Symmetric"), I + 1)
    assign(put(Any()), I[0])
    remove(put("Symmetric"))
    remove(put("Symmetric"), leave_parametrized=False)
    remove(put("Halves"))
    remove(put("Halves", layer=linear().requires_grad_(False)))
    remove(put("Symmetric", "Double"))
    remove(put("Double", name="bias", layer=put("Symmetric")))
    remove(put(Any(lambda x: x[0]), unsafe=True))
    P.is_parametrized(linear()), P.is_parametrized(linear(), "weight"), P.is_parametrized(3)
    P.is_parametrized(put("Double")), P.is_parametrized(put("Double"), "bias")
    P.type_before_parametrizations(put("Double")), P.type_before_parametrizations(linear())
    state(P.transfer_parametrizations_and_params(put("Symmetric"), linear()))
    state(P.transfer_parametrizations_and_params(put("Halves"), linear()))
    P.transfer_parametrizations_and_params(put("Symmetric"), torch.nn.ReLU()).state_dict()
    state(P.transfer_parametrizations_and_params(put("Double"), put("Symmetric")))
    state(P.transfer_parametrizations_and_params(put("Double"), linear(), "weight"))
    state(P.transfer_parametrizations_and_params(linear(), put("Symmetric")))
    state(put("Symmetric", layer=linear().double()).float())
    """
)
def test_parametrize_matches_pytorch(expression):
    assert not failed(same(script(expression)))


@lines(
    """
    put("Double", name="nope")
    put("Double", name="parametrizations", layer=put("Double"))
    put(lambda x: x)
    P.ParametrizationList([], torch.ones(2))
    put(Any(lambda x: 3))
    put(Any(lambda x: x.double()))
    put(Any(lambda x: x[0]))
    put(Any(inverse=lambda x: 3))
    put(Any(inverse=lambda x: x.double()))
    put(Any(inverse=lambda x: x[0]))
    put(Any(inverse=lambda x: [3]))
    put(Any(inverse=lambda x: [x, 3]))
    put("Double", Any(lambda x: 3))
    put("Double", Any(lambda x: x.double()))
    put("Double", Any(lambda x: x[0]))
    put("Double", Any(inverse=lambda x: 3))
    put("Double", Any(inverse=lambda x: x.double()))
    put("Double", Any(inverse=lambda x: x[0]))
    put("Double", "Halves")
    assign(put("Double"), I)
    assign(put("Symmetric"), torch.nn.Parameter(I))
    reset(Any(), lambda x: 3, I)
    reset(Any(), lambda x: x.double(), I)
    reset(Any(inverse=lambda x: (x, x)), lambda x: x, I)
    reset(Any(inverse=lambda x: (x, x)), lambda x: (x,), I)
    reset(Any(inverse=lambda x: (x, x)), lambda x: (x, x.double()), I)
    remove(linear())
    remove(put("Double"), "bias")
    remove(put("Halves"), leave_parametrized=False)
    P.transfer_parametrizations_and_params(put("Double"), linear(), "bias")
    """
)
def test_errors(expression):
    def run(lib):
        try:
            return script(expression)(lib)
        except TypeError as error:  # what is passed on from a parametrization's own call
            raise TypeError(type(error).__name__) from None

    raises(run)


def test_a_buffer_stays_one():
    def run(lib):
        layer = square(lib)
        layer.register_buffer("scale", lib.ones(2, 2))
        P = lib.nn.utils.parametrize
        P.register_parametrization(layer, "scale", maps(lib)["Symmetric"]())
        before = [name for name, _ in layer.named_buffers()], layer.state_dict()
        P.remove_parametrizations(layer, "scale")
        return before, [name for name, _ in layer.named_buffers()], layer.scale

    same(run)


def test_training():
    def run(lib):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Linear(3, 3), lib.nn.Tanh(), lib.nn.Linear(3, 3))
        for layer, names in ((net[0], ("Symmetric",)), (net[2], ("Halves", "Symmetric"))):
            for name in names:
                lib.nn.utils.parametrize.register_parametrization(
                    layer, "weight", maps(lib)[name]()
                )
        return train(lib, net, lib.linspace(-1, 1, 12).reshape(4, 3))

    near(run)


def test_the_parameter_stays_the_same_object():
    for lib in LIBRARIES:
        layer = square(lib)
        weight = layer.weight
        P = lib.nn.utils.parametrize
        P.register_parametrization(layer, "weight", maps(lib)["Symmetric"]())
        assert layer.parametrizations.weight.original is weight
        P.remove_parametrizations(layer, "weight")
        assert layer.weight is weight


def test_cached():
    for lib in LIBRARIES:
        P = lib.nn.utils.parametrize
        layer = P.register_parametrization(square(lib), "weight", maps(lib)["Double"]())
        assert layer.weight is not layer.weight
        with P.cached():
            first = layer.weight
            with P.cached():
                assert layer.weight is first
            assert layer.weight is first
        assert layer.weight is not first
        assert not P._cache


def test_copies_live_on():
    for lib in LIBRARIES:
        P = lib.nn.utils.parametrize
        layer = P.register_parametrization(square(lib), "weight", maps(lib)["Symmetric"]())
        other = copy.deepcopy(layer)
        assert type(other) is type(layer)
        with lib.no_grad():
            other.weight = lib.zeros(3, 3)
        assert layer.weight.sum() != 0 and other.weight.sum() == 0
    # In PyTorch the copy would lose its weight here.
    P = tlc.nn.utils.parametrize
    layer = P.register_parametrization(square(tlc), "weight", maps(tlc)["Symmetric"]())
    other = copy.deepcopy(layer)
    P.remove_parametrizations(layer, "weight")
    assert other.weight.tolist() == layer.weight.tolist()


@pytest.mark.parametrize("save", [pickle.dumps, copy.copy])
def test_pickling_is_refused(save):
    def run(lib):
        P = lib.nn.utils.parametrize
        save(P.register_parametrization(square(lib), "weight", lib.nn.Identity()))

    raises(run)


def test_torch_save_is_refused(tmp_path):
    def run(lib):
        P = lib.nn.utils.parametrize
        layer = P.register_parametrization(square(lib), "weight", lib.nn.Identity())
        lib.save(layer, tmp_path / "layer.pt")

    raises(run)


def test_state_goes_from_library_to_library(tmp_path):
    for source, target in (LIBRARIES, LIBRARIES[::-1]):
        layers = []
        for lib in (source, target):
            layer = square(lib)
            lib.nn.utils.parametrize.register_parametrization(
                layer, "weight", maps(lib)["Halves"]()
            )
            layers.append(layer)
        with source.no_grad():
            layers[0].weight = source.eye(3)
        source.save(layers[0].state_dict(), tmp_path / "state.pt")
        layers[1].load_state_dict(target.load(tmp_path / "state.pt"))
        assert layers[1].weight.tolist() == layers[0].weight.tolist()


def test_recurrent_layers():
    def run(lib):
        lib.manual_seed(0)
        layer = lib.nn.GRU(2, 3)
        P = lib.nn.utils.parametrize
        P.register_parametrization(layer, "weight_ih_l0", maps(lib)["Double"]())
        with P.cached():
            output, _ = layer(lib.ones(4, 1, 2))
            output.sum().backward()
        return output, layer.parametrizations.weight_ih_l0.original.grad

    near(run)


def test_a_call_with_other_originals():
    def run(lib):
        layer = square(lib)
        lib.nn.utils.parametrize.register_parametrization(layer, "weight", maps(lib)["Double"]())
        state = {"parametrizations.weight.original": lib.eye(3)}
        return lib.func.functional_call(layer, state, lib.ones(1, 3)), layer.weight

    same(run)
