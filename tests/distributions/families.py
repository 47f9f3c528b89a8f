"""Distributions to test: how to make one of each family, and values of its support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Build = Callable[[Any, Callable[[Any], Any]], Any]

LOC = [0.0, -1.5, 2.0]
SCALE = [[0.5], [2.0]]
PROBS = [[0.05, 0.3, 0.7], [0.5, 0.9, 0.25]]
LOGITS = [[-3.0, 0.0, 1.0], [0.5, 2.0, -0.3]]
ROWS = [[[0.2, 0.3, 0.5], [1.0, 2.0, 3.0]], [[0.6, 0.1, 0.1], [4.0, 0.5, 0.5]]]
REALS = [[[-2.0]], [[-0.3]], [[0.0]], [[0.7]], [[3.1]]]
POSITIVE = [[[0.01]], [[0.4]], [[1.0]], [[2.5]]]
UNIT = [[[0.02]], [[0.35]], [[0.5]], [[0.97]]]
SIMPLEX = [[0.2, 0.3, 0.5], [0.05, 0.9, 0.05]]


@dataclass(frozen=True)
class Family:
    """One distribution: `build(torch.distributions, t)`, where `t` makes tensors of lists."""

    name: str
    build: Build
    values: Any  # of the support; nested lists

    def __str__(self) -> str:
        return self.name


def simple(name: str, values: Any, **parameters: Any) -> Family:
    """A family whose constructor takes the parameters as they stand."""
    words = "_".join([name, *(["logits"] if "logits" in parameters else [])])

    def build(D: Any, t: Any) -> Any:
        return getattr(D, name)(**{key: t(value) for key, value in parameters.items()})

    return Family(words, build, values)


def mixture(D: Any, t: Any) -> Any:
    """Three normal components in each of two mixtures."""
    return D.MixtureSameFamily(D.Categorical(t(PROBS)), D.Normal(t(LOC), t(SCALE)))


def vector_mixture(D: Any, t: Any) -> Any:
    """Two components over vectors of three."""
    components = D.Independent(D.Normal(t(LOC), t(SCALE)), 1)
    return D.MixtureSameFamily(D.Categorical(logits=t([0.3, -1.0])), components)


def shifted(D: Any, t: Any) -> Any:
    """A decreasing map, which broadcasts the base."""
    return D.TransformedDistribution(
        D.Normal(t(LOC), t(1.5)), [D.AffineTransform(t(SCALE), t(-2.0)), D.ExpTransform()]
    )


def broken_sticks(D: Any, t: Any) -> Any:
    """A transform of vectors."""
    return D.TransformedDistribution(D.Normal(t([0.3, -0.5]), t(SCALE)), D.StickBreakingTransform())


FAMILIES = [
    simple("Normal", REALS, loc=LOC, scale=SCALE),
    simple("LogNormal", POSITIVE, loc=LOC, scale=SCALE),
    simple("HalfNormal", POSITIVE, scale=SCALE),
    simple("Cauchy", REALS, loc=LOC, scale=SCALE),
    simple("HalfCauchy", POSITIVE, scale=SCALE),
    simple("Laplace", REALS, loc=LOC, scale=SCALE),
    simple("Gumbel", REALS, loc=LOC, scale=SCALE),
    simple("Exponential", POSITIVE, rate=SCALE),
    simple("Uniform", [[[0.6]], [[0.9]]], low=[0.5, 0.1, -3.0], high=[[1.0], [2.5]]),
    simple("Pareto", [[[2.5]], [[7.0]]], scale=[0.5, 1.0, 2.4], alpha=[[0.7], [3.5]]),
    simple("Weibull", POSITIVE, scale=[0.5, 1.0, 2.4], concentration=[[0.7], [3.5]]),
    simple(
        "GeneralizedPareto",
        [[[2.1]], [[2.6]]],
        loc=[0.5, 2.0, -1.0],
        scale=[[2.5], [4.0]],
        concentration=[0.3, -0.4, 0.0],
    ),
    simple("Kumaraswamy", UNIT, concentration1=[0.5, 1.5, 3.0], concentration0=SCALE),
    simple("ContinuousBernoulli", UNIT, probs=[[0.05, 0.3, 0.7], [0.5, 0.4995, 0.999]]),
    simple("ContinuousBernoulli", UNIT, logits=LOGITS),
    simple("VonMises", REALS, loc=LOC, concentration=[[0.4], [20.0]]),
    simple("Bernoulli", [[[0.0]], [[1.0]]], probs=PROBS),
    simple("Bernoulli", [[[0.0]], [[1.0]]], logits=LOGITS),
    simple("Geometric", [[[0.0]], [[1.0]], [[6.0]]], probs=PROBS),
    simple("Geometric", [[[0.0]], [[1.0]], [[6.0]]], logits=LOGITS),
    simple("Categorical", [[[0.0]], [[1.0]], [[2.0]]], probs=ROWS),
    simple("Categorical", [[[0.0]], [[1.0]], [[2.0]]], logits=ROWS),
    simple("OneHotCategorical", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], probs=ROWS),
    simple("OneHotCategorical", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], logits=ROWS),
    simple("OneHotCategoricalStraightThrough", [[1.0, 0.0, 0.0]], probs=ROWS),
    simple("RelaxedBernoulli", UNIT, temperature=0.7, probs=PROBS),
    simple("RelaxedBernoulli", UNIT, temperature=2.0, logits=LOGITS),
    simple("RelaxedOneHotCategorical", SIMPLEX, temperature=0.7, probs=ROWS),
    simple("RelaxedOneHotCategorical", SIMPLEX, temperature=2.0, logits=ROWS),
    Family(
        "LogitRelaxedBernoulli",
        lambda D, t: D.relaxed_bernoulli.LogitRelaxedBernoulli(t(0.7), t(PROBS)),
        REALS,
    ),
    Family(
        "ExpRelaxedCategorical",
        lambda D, t: D.relaxed_categorical.ExpRelaxedCategorical(t(0.7), logits=t(ROWS)),
        [[-1.6, -0.7, -1.2], [-0.1, -3.0, -2.0]],
    ),
    simple("LogisticNormal", SIMPLEX, loc=[0.3, -0.5], scale=SCALE),
    Family("Independent", lambda D, t: D.Independent(D.Normal(t(LOC), t(SCALE)), 1), REALS),
    Family("MixtureSameFamily", mixture, [[-2.0], [0.3], [4.0]]),
    Family("MixtureSameFamily_vectors", vector_mixture, [[0.1, 0.2, -3.0], [1.0, -1.0, 2.0]]),
    Family("TransformedDistribution", shifted, POSITIVE),
    Family("TransformedDistribution_vectors", broken_sticks, SIMPLEX),
]
