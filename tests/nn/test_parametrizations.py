"""`nn.utils.parametrizations`: orthogonal, spectrally and weight-normalised layers."""

from __future__ import annotations

import warnings

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import LIBRARIES, near, raises, same, train
from tests.tensor.expressions import lines

ORTHOGONAL = [
    {"orthogonal_map": name, "use_trivialization": start}
    for name in ("matrix_exp", "cayley", "householder")
    for start in (True, False)
]
SHAPES = [(3, 4), (4, 3), (3, 3)]


def seeded(lib, layer, *args, **options):
    """A layer of these arguments drawn from seed 0."""
    lib.manual_seed(0)
    return getattr(lib.nn, layer)(*args, **options)


def inputs(lib, *shape):
    count = lib.Size(shape).numel()
    return lib.linspace(-1, 1, count).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", ORTHOGONAL)
def test_orthogonal(options, shape):
    def run(lib):
        layer = seeded(lib, "Linear", *shape)
        lib.nn.utils.parametrizations.orthogonal(layer, **options)
        before = layer.weight
        state = {k: v for k, v in layer.state_dict().items() if "base" not in k}
        result = train(lib, layer, inputs(lib, 5, shape[0]))[0]
        weight = layer.weight
        rows, columns = weight.shape
        gram = weight @ weight.T if rows < columns else weight.T @ weight
        return layer, before, state, list(layer.state_dict()), result, weight, gram

    near(run, 2e-4, 3e-5)  # the columns that complete a base follow from decompositions


def test_orthogonal_batches_and_defaults():
    def run(lib):
        layer = seeded(lib, "Conv2d", 2, 2, 3)
        lib.nn.utils.parametrizations.orthogonal(layer)
        weight = layer.weight
        plain = seeded(lib, "Linear", 3, 4)
        lib.nn.utils.parametrizations.orthogonal(plain)
        return layer, weight, weight @ weight.mT, plain.weight

    near(run, 1e-4, 1e-5)


def test_orthogonal_complex():
    def run(lib):
        layer = lib.nn.Module()
        x = lib.arange(9.0).reshape(3, 3)
        layer.register_buffer("weight", lib.complex(x.cos(), x.sin() * 2))
        lib.nn.utils.parametrizations.orthogonal(layer)
        return lib.view_as_real(layer.weight @ layer.weight.mH)

    near(run, 1e-4, 1e-5)


@pytest.mark.parametrize("options", [o for o in ORTHOGONAL if o["use_trivialization"]])
@pytest.mark.parametrize("shape", SHAPES)
def test_assigning_to_an_orthogonal_weight(options, shape):
    def run(lib):
        layer = seeded(lib, "Linear", *shape)
        lib.nn.utils.parametrizations.orthogonal(layer, **options)
        target = seeded(lib, "Linear", *shape).weight.detach()
        q = lib.linalg.qr(target if shape[0] <= shape[1] else target.T).Q
        layer.weight = q if shape[0] <= shape[1] else q.T
        assigned = layer.weight
        layer.weight = target
        return assigned - (q if shape[0] <= shape[1] else q.T), layer.weight

    near(run, 1e-4, 1e-5)


def test_weight_norm():
    def run(lib):
        utils = lib.nn.utils.parametrizations
        layers = []
        for dim in (0, 1, -2, None, -1):
            layers.append(utils.weight_norm(seeded(lib, "Linear", 3, 4), dim=dim))
        conv = utils.weight_norm(seeded(lib, "ConvTranspose1d", 3, 4, 2), dim=1)
        trained = [train(lib, layer, inputs(lib, 5, 3)) for layer in layers]
        return layers, trained, train(lib, conv, inputs(lib, 2, 3, 5))

    near(run)


def test_weight_norm_takes_the_older_state():
    def run(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            older = lib.nn.utils.weight_norm(seeded(lib, "Linear", 3, 4))
        newer = lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 4))
        newer.load_state_dict(older.state_dict())
        return newer.weight, newer.state_dict()

    near(run)


def test_assigning_to_a_normalised_weight():
    def run(lib):
        utils = lib.nn.utils.parametrizations
        layers = [utils.weight_norm(seeded(lib, "Linear", 3, 4))]
        layers.append(utils.spectral_norm(seeded(lib, "Linear", 3, 4)))
        for layer in layers:
            layer.weight = inputs(lib, 4, 3)
        return [(layer.weight, layer.state_dict()) for layer in layers]

    near(run)


@pytest.mark.parametrize(
    ("layer", "sizes", "shape", "options"),
    [
        ("Linear", (3, 4), (5, 3), {}),
        ("Linear", (3, 4), (5, 3), {"dim": -1, "n_power_iterations": 3}),
        ("Linear", (3, 4), (5, 3), {"name": "bias", "eps": 1e-3}),
        ("Conv2d", (2, 3, 3), (1, 2, 4, 4), {}),
        ("ConvTranspose2d", (2, 3, 3), (1, 2, 4, 4), {}),
        ("ConvTranspose2d", (2, 3, 3), (1, 2, 4, 4), {"dim": 0}),
    ],
)
def test_spectral_norm(layer, sizes, shape, options):
    def run(lib):
        module = seeded(lib, layer, *sizes)
        lib.nn.utils.parametrizations.spectral_norm(module, **options)
        before = module.state_dict()
        return module, dict(before), train(lib, module, inputs(lib, *shape))

    near(run)


def test_spectral_norm_is_still_in_evaluation():
    for lib in LIBRARIES:
        layer = lib.nn.utils.parametrizations.spectral_norm(seeded(lib, "Linear", 3, 4)).eval()
        assert layer.weight.tolist() == layer.weight.tolist()
        before = layer.parametrizations.weight[0]._u.tolist()
        layer(lib.ones(1, 3))
        assert layer.parametrizations.weight[0]._u.tolist() == before


def test_removal_keeps_the_weight():
    def run(lib):
        utils = lib.nn.utils
        results = []
        for form in ("orthogonal", "weight_norm", "spectral_norm"):
            layer = seeded(lib, "Linear", 3, 4).eval()
            getattr(utils.parametrizations, form)(layer)
            utils.parametrize.remove_parametrizations(layer, "weight")
            results.append((layer, layer.state_dict()))
        return results

    near(run)


def test_state_goes_from_library_to_library(tmp_path):
    for source, target in (LIBRARIES, LIBRARIES[::-1]):
        for form in ("orthogonal", "weight_norm", "spectral_norm"):
            layers = []
            for seed, lib in enumerate((source, target)):
                lib.manual_seed(seed)
                layer = lib.nn.Linear(3, 4)
                layers.append(getattr(lib.nn.utils.parametrizations, form)(layer).eval())
            source.save(layers[0].state_dict(), tmp_path / "state.pt")
            layers[1].load_state_dict(target.load(tmp_path / "state.pt"))
            expected = tlc.tensor(layers[0].weight.tolist())
            found = tlc.tensor(layers[1].weight.tolist())
            assert found.allclose(expected, atol=1e-6)


@lines(
    """
    P.orthogonal(linear(), "nope")
    P.orthogonal(linear(), "bias")
    P.orthogonal(linear(), orthogonal_map="nope")
    P.orthogonal(unitary(), orthogonal_map="householder")
    setattr(P.orthogonal(linear()), "weight", torch.ones(2, 2))
    setattr(P.orthogonal(linear(), "weight", "cayley", use_trivialization=False), "weight", W)
    P.spectral_norm(linear(), "nope")
    P.spectral_norm(linear(), n_power_iterations=0)
    P.spectral_norm(linear(), dim=2)
    P.spectral_norm(linear(), dim=-3)
    P.weight_norm(linear(), "nope")
    P.weight_norm(linear(), dim=2)
    """
)
def test_errors(expression):
    def run(lib):
        def unitary():
            module = lib.nn.Module()
            module.register_buffer("weight", lib.ones(2, 2) + 0j)
            return module

        names = {
            "torch": lib,
            "P": lib.nn.utils.parametrizations,
            "W": lib.ones(3, 3),
            "linear": lambda: lib.nn.Linear(3, 3),
            "unitary": unitary,
        }
        return eval(expression, names)

    raises(run)


def test_names():
    same(lambda lib: sorted(lib.nn.utils.parametrizations.__all__))
