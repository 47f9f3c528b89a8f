"""Kullback-Leibler divergences: every pair against PyTorch, look-up of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.distributions.against_torch import raises, same
from tests.distributions.families import FAMILIES, PROBS, SCALE
from tests.distributions.test_families import attempt, maker

# Several distributions of each family, so that pairs overlap in all ways.
FURTHER: dict[str, list[Callable[[Any, Any], Any]]] = {
    "Bernoulli": [
        lambda D, t: D.Bernoulli(t([[0.0, 0.4, 1.0], [0.0, 1.0, 0.5]])),
        # Of the same shape, as PyTorch's masks do not broadcast.
        lambda D, t: D.Bernoulli(t([[0.5, 0.0, 0.3], [0.0, 0.5, 0.5]])),
        lambda D, t: D.Bernoulli(t([[1.0, 1.0, 0.0], [0.2, 0.0, 1.0]])),
    ],
    "Categorical": [
        lambda D, t: D.Categorical(t([[0.0, 0.4, 1.0], [0.3, 0.0, 0.0]])),
        lambda D, t: D.Categorical(t([0.0, 0.4, 1.0])),
    ],
    "OneHotCategorical": [lambda D, t: D.OneHotCategorical(t([0.0, 0.4, 1.0]))],
    "Uniform": [
        lambda D, t: D.Uniform(t([0.0, -1.0, 0.2]), t([[1.0], [3.0]])),
        lambda D, t: D.Uniform(t(-5.0), t(5.0)),
    ],
    "Pareto": [
        lambda D, t: D.Pareto(t([0.01, 1.0, 3.0]), t([[2.0], [4.5]])),
        lambda D, t: D.Pareto(t(0.05), t(1.5)),
    ],
    "Independent": [
        lambda D, t: D.Independent(D.Normal(t([1.0, 0.0, 3.0]), t(SCALE)), 1),
        lambda D, t: D.Independent(D.Normal(t([1.0, 0.0, 3.0]), t(SCALE)), 2),
    ],
    "Geometric": [lambda D, t: D.Geometric(t(PROBS).flip(-1))],
}


def members(kind: str) -> list[Callable[[Any, Any], Any]]:
    """Functions that make distributions of the class `kind`."""
    named = [family.build for family in FAMILIES if family.name.partition("_")[0] == kind]
    return named + FURTHER.get(kind, [])


def known() -> list[tuple[str, str]]:
    """PyTorch's pairs of families that the table has."""
    pairs = [(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY]
    return [(p, q) for p, q in pairs if members(p) and members(q)]


def test_pairs_are_pytorchs() -> None:
    ours = {(p.__name__, q.__name__) for p, q in tlc.distributions.kl._KL_REGISTRY}
    assert set(known()) <= ours
    assert ours <= {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}
    assert len(known()) >= 45


@pytest.mark.parametrize(("p", "q"), known())
def test_values(p: str, q: str) -> None:
    for first in members(p):
        for second in members(q):

            def script(lib: Any, first: Any = first, second: Any = second) -> Any:
                t = maker(lib, "float64")
                pair = first(lib.distributions, t), second(lib.distributions, t)
                return attempt(lambda: lib.distributions.kl_divergence(*pair))

            same(script, rtol=1e-7, atol=1e-9)


def finite_gradients(lib: Any, p: str, q: str) -> Any:
    leaves = []

    def t(data: Any) -> Any:
        leaf = lib.tensor(data, dtype=lib.float64, requires_grad=True)
        leaves.append(leaf)
        return leaf

    pair = members(p)[0](lib.distributions, t), members(q)[0](lib.distributions, t)
    result = lib.distributions.kl_divergence(*pair)
    result = result[result.isfinite()].sum()
    return list(lib.autograd.grad(result, leaves, allow_unused=True))


@pytest.mark.parametrize(("p", "q"), known())
def test_gradients(p: str, q: str) -> None:
    same(lambda lib: attempt(lambda: finite_gradients(lib, p, q)), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", ["Normal", "Bernoulli", "Exponential", "ContinuousBernoulli"])
def test_bregman_divergence(name: str) -> None:
    """The general formula of exponential families agrees with the particular one."""
    t, D = maker(tlc, "float64"), tlc.distributions
    general = D.kl._KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]
    p = members(name)[0](D, t)
    q = p.expand((2, 2, 3))  # the same, of another shape
    assert general(p, q).abs().max() < 1e-6
    batch = p.expand((2, 3))
    arguments = {key: getattr(batch, key).flip(-1) for key in batch.arg_constraints}
    arguments.pop("logits", None)
    other = type(p)(**arguments)
    difference = general(batch, other) - D.kl_divergence(batch, other)
    assert difference.abs().max() < (1e-3 if name == "ContinuousBernoulli" else 1e-10)


def test_families_without_a_pair() -> None:
    raises(lambda lib: lib.distributions.kl_divergence(*_pair(lib, "Normal", "Cauchy")))
    raises(lambda lib: lib.distributions.kl_divergence(*_pair(lib, "Normal", "Bernoulli")))
    raises(lambda lib: lib.distributions.kl_divergence(*_pair(lib, "LogNormal", "HalfNormal")))


def _pair(lib: Any, p: str, q: str) -> tuple[Any, Any]:
    t = maker(lib, "float32")
    return members(p)[0](lib.distributions, t), members(q)[0](lib.distributions, t)


def test_closest_pair_serves() -> None:
    def script(lib: Any) -> Any:
        D = lib.distributions

        class Base(D.Distribution):
            arg_constraints: dict[str, Any] = {}

        class Derived(Base):
            pass

        class Last(Derived):
            pass

        before = dict(D.kl._KL_REGISTRY)
        try:
            D.register_kl(Base, Base)(lambda p, q: "base")
            results = [D.kl_divergence(Last(), Derived())]
            D.register_kl(Derived, Base)(lambda p, q: "left")
            results += [D.kl_divergence(Last(), Derived()), D.kl_divergence(Base(), Derived())]
            D.register_kl(Base, Derived)(lambda p, q: "right")
            results += [D.kl_divergence(Base(), Last()), D.kl_divergence(Last(), Last())]
        finally:
            D.kl._KL_REGISTRY.clear()
            D.kl._KL_REGISTRY.update(before)
            D.kl._KL_MEMOIZE.clear()
        return results

    assert same(script) == ["base", "left", "base", "right", "left"]


def test_only_classes_are_registered() -> None:
    with pytest.raises(TypeError, match="Expected type_p to be a class but got 3"):
        tlc.distributions.register_kl(3, tlc.distributions.Normal)
    with pytest.raises(TypeError, match="Expected type_q to be a class"):
        tlc.distributions.register_kl(tlc.distributions.Normal, "Normal")
