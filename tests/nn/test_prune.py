"""`nn.utils.prune` beside PyTorch: the same masks from the same seeds."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch.nn.utils.prune  # noqa: F401  (binds it)

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn.utils.prune  # noqa: F401  (binds it)
from tests.nn.against_torch import LIBRARIES, failed, near, raises, same, train
from tests.tensor.expressions import lines


def scope(lib):
    prune = lib.nn.utils.prune

    class Alternate(prune.BasePruningMethod):
        """Prunes every other entry of those it sees."""

        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    class Odd(Alternate):
        PRUNING_TYPE = "odd"

    class NoDim(Alternate):
        PRUNING_TYPE = "structured"

    def linear(*sizes):
        lib.manual_seed(0)
        return lib.nn.Linear(*(sizes or (3, 4)))

    def conv():
        lib.manual_seed(0)
        return lib.nn.Conv2d(2, 3, 2)

    def after(layer, *steps):
        """The layer after these functions of `prune`, each a name and arguments."""
        for step, *args in steps:
            *args, options = args if isinstance(args[-1], dict) else [*args, {}]
            getattr(prune, step)(layer, *args, **options)
        hooks = layer._forward_pre_hooks.values()
        kinds = [
            [type(m).__name__ for m in getattr(hook, "_pruning_methods", ())] for hook in hooks
        ]
        names = [name for name, _ in layer.named_parameters()]
        return layer, layer.weight, layer.state_dict(), names, kinds, prune.is_pruned(layer)

    def globally(method, importance=None, before=(), **options):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
        for step, *args in before:
            getattr(prune, step)(net[0], *args)
        pairs = [(net[0], "weight"), (net[2], "weight"), (net[2], "bias")]
        scores = None if importance is None else {pairs[0]: importance}
        prune.global_unstructured(pairs, getattr(prune, method), scores, **options)
        return net.state_dict(), net(lib.ones(1, 3)), prune.is_pruned(net)

    def container(*names):
        methods = []
        for name in names:
            method = Alternate()
            method._tensor_name = name
            methods.append(method)
        result = prune.PruningContainer(*methods[:1])
        for method in methods[1:]:
            result.add_pruning_method(method)
        return result

    return {
        "torch": lib,
        "prune": prune,
        "Alternate": Alternate,
        "Odd": Odd,
        "NoDim": NoDim,
        "S": lib.arange(12.0).reshape(4, 3),
        **{f.__name__: f for f in (linear, conv, after, globally, container)},
    }


def script(expression):
    return lambda lib: eval(expression, scope(lib))


@lines(
    """
    after(linear(), ("identity", "weight"))
    after(linear(), ("random_unstructured", "weight", 0.4))
    after(linear(), ("random_unstructured", "weight", 5), ("random_unstructured", "weight", 0.5))
    after(linear(), ("random_unstructured", "weight", 0))
    after(linear(), ("random_unstructured", "weight", 1.0))
    after(linear(), ("l1_unstructured", "weight", 4))
    after(linear(), ("l1_unstructured", "weight", 0.4), ("l1_unstructured", "weight", 0.4))
    after(linear(), ("l1_unstructured", "weight", 4, S))
    after(linear(), ("l1_unstructured", "weight", 4, {"importance_scores": -S}))
    after(linear(), ("random_structured", "weight", 2, 0))
    after(linear(), ("random_structured", "weight", 0.5, -1))
    after(linear(), ("random_structured", "weight", 0, -1))
    after(linear(), ("random_structured", "weight", 4, 0))
    after(linear(), ("ln_structured", "weight", 0.5, 2, 0))
    after(linear(), ("ln_structured", "weight", 1, 1, 1))
    after(linear(), ("ln_structured", "weight", 1, float("inf"), -1))
    after(linear(), ("ln_structured", "weight", 0.3, -float("inf"), 1))
    after(linear(), ("ln_structured", "weight", 0.3, 0, 1))
    after(linear(), ("ln_structured", "weight", 1, 2, 0, S))
    after(linear(), ("ln_structured", "weight", 3, 2, 0), ("ln_structured", "weight", 1, 2, 1))
    after(linear(), ("random_unstructured", "weight", 5), ("ln_structured", "weight", 1, 2, 0))
    after(linear(), ("ln_structured", "weight", 2, 2, 0), ("l1_unstructured", "weight", 2))
    after(linear(), ("custom_from_mask", "weight", S > 5))
    after(linear(), ("l1_unstructured", "weight", 5), ("custom_from_mask", "weight", S % 2))
    after(linear(), ("identity", "weight"), ("custom_from_mask", "bias", S[:, 0] > 4))
    after(linear(), ("l1_unstructured", "weight", 5), ("remove", "weight"))
    after(linear(), ("l1_unstructured", "weight", 5), ("identity", "bias"), ("remove", "weight"))
    after(linear().requires_grad_(False), ("l1_unstructured", "weight", 5))
    after(linear().double(), ("ln_structured", "weight", 1, 2, 0))
    after(conv(), ("ln_structured", "weight", 1, 2, 1))
    after(conv(), ("random_structured", "weight", 1, 3), ("l1_unstructured", "weight", 0.3))
    globally("L1Unstructured", amount=0.4)
    globally("L1Unstructured", importance=S / 10, amount=7)
    globally("L1Unstructured", before=[("random_unstructured", "weight", 6)], amount=7)
    globally("RandomUnstructured", amount=7)
    globally("Identity")
    Alternate().prune(torch.ones(5)), Alternate().prune(S, S > 4)
    prune.L1Unstructured(0.5).prune(S, importance_scores=-S), prune.LnStructured(1, 2).prune(S)
    prune.RandomStructured(2).dim, prune.LnStructured(0.5, 1).n, prune.RandomUnstructured(3).amount
    [m.PRUNING_TYPE for m in (prune.Identity, prune.LnStructured, prune.CustomFromMask)]
    len(container("a")), len(container("a", "a")), container("a", "a")[1]._tensor_name
    len(prune.PruningContainer()), [type(m).__name__ for m in container("weight", "weight")]
    sorted(n for n in dir(prune) if "validate" in n or "compute" in n)
    """
)
def test_prune_matches_pytorch(expression):
    assert not failed(same(script(expression)))


@lines(
    """
    prune.random_unstructured(linear(), "weight", -0.1)
    prune.random_unstructured(linear(), "weight", 1.5)
    prune.random_unstructured(linear(), "weight", -1)
    prune.random_unstructured(linear(), "weight", 13)
    prune.random_unstructured(linear(), "weight", "x")
    prune.random_unstructured(linear(), "nope", 1)
    prune.l1_unstructured(linear(), "weight", None)
    prune.l1_unstructured(linear(), "weight", 2, torch.ones(2))
    prune.random_structured(linear(), "weight", 5, 0)
    prune.random_structured(linear(), "weight", 1, 2)
    prune.random_structured(linear(), "weight", 1, -3)
    prune.random_structured(linear(), "bias", 1, 0)
    prune.ln_structured(linear(), "weight", 1, 2, 2)
    prune.ln_structured(linear(), "bias", 1, 2, 0)
    prune.custom_from_mask(linear(), "weight", torch.ones(3))
    prune.remove(linear(), "weight")
    prune.remove(prune.identity(linear(), "bias"), "weight")
    prune.BasePruningMethod()
    Alternate().prune(torch.ones(5), importance_scores=torch.ones(2))
    Odd.apply(prune.identity(linear(), "weight"), "weight")
    container("weight").add_pruning_method(3)
    globally("RandomStructured", amount=1)
    globally("L1Unstructured", amount=40)
    prune.global_unstructured(3, prune.L1Unstructured, amount=1)
    prune.global_unstructured([(linear(), "weight")], prune.L1Unstructured, 3, amount=1)
    """
)
def test_errors(expression):
    raises(script(expression))


def test_errors_that_name_objects():
    for lib in LIBRARIES:
        names = scope(lib)
        with pytest.raises(
            ValueError, match="Can only add pruning methods acting on the parameter"
        ):
            names["container"]("weight", "bias")
        pruned = lib.nn.utils.prune.identity(lib.nn.Linear(2, 2), "weight")
        with pytest.raises(AttributeError, match="dim"):
            names["NoDim"].apply(pruned, "weight")


def test_a_failure_leaves_the_module_as_it_was():
    for lib in LIBRARIES:
        layer = scope(lib)["linear"]()
        with pytest.raises(ValueError):
            lib.nn.utils.prune.l1_unstructured(layer, "weight", 13)
        assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_training():
    def run(lib):
        prune = lib.nn.utils.prune
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Linear(3, 8), lib.nn.Tanh(), lib.nn.Linear(8, 3))
        x = lib.linspace(-1, 1, 12).reshape(4, 3)
        prune.random_unstructured(net[0], "weight", 0.3)
        first = train(lib, net, x)
        prune.ln_structured(net[0], "weight", 2, 2, 0)
        prune.l1_unstructured(net[2], "weight", 0.5)
        second = train(lib, net.train(), x)
        grad = net[0].weight_orig.grad
        for layer in (net[0], net[2]):
            prune.remove(layer, "weight")
        return first, second, grad, net, net.state_dict(), train(lib, net.train(), x)

    near(run)


def test_a_recurrent_layer():
    def run(lib):
        lib.manual_seed(0)
        layer = lib.nn.LSTM(2, 3)
        lib.nn.utils.prune.l1_unstructured(layer, "weight_hh_l0", 0.5)
        output, _ = layer(lib.ones(4, 1, 2))
        output.sum().backward()
        return output, layer.weight_hh_l0_orig.grad, list(layer.state_dict())

    near(run)


def test_the_parameter_stays_the_same_object():
    for lib in LIBRARIES:
        layer = lib.nn.Linear(3, 4)
        weight = layer.weight
        lib.nn.utils.prune.l1_unstructured(layer, "weight", 2)
        assert layer.weight_orig is weight
        lib.nn.utils.prune.remove(layer, "weight")
        assert layer.weight is weight


def test_copies():
    for lib in LIBRARIES:
        layer = lib.nn.utils.prune.l1_unstructured(lib.nn.Linear(3, 4), "weight", 2)
        with lib.no_grad():
            layer(lib.ones(1, 3))  # its weight is then no part of a graph
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert other(lib.ones(1, 3)).tolist() == layer(lib.ones(1, 3)).tolist()
            assert list(other.state_dict()) == ["bias", "weight_orig", "weight_mask"]


def test_state_goes_from_library_to_library(tmp_path):
    for source, target in (LIBRARIES, LIBRARIES[::-1]):
        layers = []
        for seed, lib in enumerate((source, target)):
            lib.manual_seed(seed)
            layers.append(lib.nn.utils.prune.random_unstructured(lib.nn.Linear(3, 4), "weight", 5))
        source.save(layers[0].state_dict(), tmp_path / "state.pt")
        layers[1].load_state_dict(target.load(tmp_path / "state.pt"))
        assert layers[1].weight_mask.tolist() == layers[0].weight_mask.tolist()
        layers[1](target.ones(1, 3))
        assert layers[1].weight.tolist() == layers[0].weight.tolist()


def test_pairs_may_come_from_an_iterator():
    # PyTorch reads them twice, and finds none the second time.
    net = tlc.nn.Linear(3, 4)
    tlc.nn.utils.prune.global_unstructured(
        iter([(net, "weight")]), tlc.nn.utils.prune.L1Unstructured, amount=3
    )
    assert int(net.weight_mask.sum()) == 9
