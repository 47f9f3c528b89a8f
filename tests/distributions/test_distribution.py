"""The base class, wrappers, parameters and the small tools, against PyTorch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.distributions.against_torch import raises, same
from tests.distributions.test_families import attempt

NAN = float("nan")

# Constructors that raise: (torch.distributions, torch) -> a distribution.
WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "negative scale": lambda D, t: D.Normal(0.0, -1.0),
    "negative scales": lambda D, t: D.Normal(t.zeros(2), t.tensor([1.0, -1.0])),
    "nan": lambda D, t: D.Normal(t.tensor([NAN]), 1.0),
    "text": lambda D, t: D.Normal("a", 1.0),
    "none": lambda D, t: D.Normal(None, 1.0),
    "list": lambda D, t: D.Normal([0.0], 1.0),
    "shapes": lambda D, t: D.Normal(t.zeros(2), t.ones(3)),
    "half normal": lambda D, t: D.HalfNormal(t.tensor([-1.0])),
    "half Cauchy": lambda D, t: D.HalfCauchy(0.0),
    "log normal": lambda D, t: D.LogNormal(0, -1),
    "uniform": lambda D, t: D.Uniform(1, 0),
    "uniform point": lambda D, t: D.Uniform(t.tensor([0.0, 1.0]), 1.0),
    "exponential": lambda D, t: D.Exponential(-1.0),
    "laplace": lambda D, t: D.Laplace(0.0, 0.0),
    "gumbel": lambda D, t: D.Gumbel(0.0, -1),
    "pareto scale": lambda D, t: D.Pareto(-1.0, 1.0),
    "pareto alpha": lambda D, t: D.Pareto(1.0, -1.0),
    "weibull": lambda D, t: D.Weibull(-1.0, 2.0),
    "kumaraswamy": lambda D, t: D.Kumaraswamy(-1.0, 2),
    "generalized pareto": lambda D, t: D.GeneralizedPareto(0.0, -1.0, 0.5),
    "von Mises": lambda D, t: D.VonMises(0.0, -1.0),
    "bernoulli": lambda D, t: D.Bernoulli(2.0),
    "bernoulli logits": lambda D, t: D.Bernoulli(logits=t.tensor(NAN)),
    "bernoulli without": lambda D, t: D.Bernoulli(),
    "bernoulli twice": lambda D, t: D.Bernoulli(0.3, 0.4),
    "geometric zero": lambda D, t: D.Geometric(t.tensor([0.0, 0.1])),
    "geometric": lambda D, t: D.Geometric(1.5),
    "geometric without": lambda D, t: D.Geometric(),
    "categorical": lambda D, t: D.Categorical(t.tensor([-1.0, 2.0])),
    "categorical zeros": lambda D, t: D.Categorical(t.zeros(2)),
    "categorical number": lambda D, t: D.Categorical(t.tensor(1.0)),
    "categorical logit": lambda D, t: D.Categorical(logits=t.tensor(1.0)),
    "categorical without": lambda D, t: D.Categorical(),
    "categorical float": lambda D, t: D.Categorical(3.0),
    "one hot number": lambda D, t: D.OneHotCategorical(t.tensor(1.0)),
    "relaxed without": lambda D, t: D.RelaxedBernoulli(t.tensor(1.0)),
    "relaxed": lambda D, t: D.RelaxedBernoulli(t.tensor(1.0), -0.3),
    "relaxed one hot": lambda D, t: D.RelaxedOneHotCategorical(t.tensor(1.0)),
    "continuous": lambda D, t: D.ContinuousBernoulli(-0.1, validate_args=True),
    "continuous unchecked": lambda D, t: D.ContinuousBernoulli(-0.1, validate_args=False),
    "continuous without": lambda D, t: D.ContinuousBernoulli(),
    "logistic normal": lambda D, t: D.LogisticNormal(t.zeros(2), -t.ones(2)),
    "independent": lambda D, t: D.Independent(D.Normal(t.zeros(3), 1.0), 2),
    "transform": lambda D, t: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
    "transforms": lambda D, t: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]),
    "transform of vectors": lambda D, t: D.TransformedDistribution(
        D.Normal(0.0, 1.0), [D.StickBreakingTransform()]
    ),
    "mixture": lambda D, t: D.MixtureSameFamily(3, D.Normal(t.zeros(2), 1)),
    "components": lambda D, t: D.MixtureSameFamily(D.Categorical(t.ones(2)), 3),
    "mixture sizes": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t.ones(3)), D.Normal(t.zeros(2), 1)
    ),
    "mixture batches": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t.ones(5, 3)), D.Normal(t.zeros(4, 3), 1)
    ),
    "validation": lambda D, t: D.Distribution.set_default_validate_args(3),
    "expand": lambda D, t: D.Normal(t.zeros(2), 1.0).expand((3, 4)),
    "expand by a number": lambda D, t: D.Normal(t.zeros(2), 1.0).expand(2),
    "sample by a number": lambda D, t: D.Normal(t.zeros(2), 1.0).sample(3),
    "no icdf": lambda D, t: D.Independent(D.Normal(t.zeros(2), 1.0), 1).icdf(t.ones(2)),
    "support of vectors": lambda D, t: D.Independent(D.Bernoulli(t.ones(2)), 1).enumerate_support(),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    raises(lambda lib: WRONG[name](lib.distributions, lib))


RIGHT: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda D, t: D.Normal(0, True).loc,
    "number and tensor": lambda D, t: D.Normal(2, t.ones(2, dtype=t.float64)).loc,
    "two dtypes": lambda D, t: D.Normal(t.zeros(2, dtype=t.float64), t.ones(2)).scale,
    "integers": lambda D, t: D.Normal(t.tensor(0), t.tensor(1)),
    "geometric unchecked": lambda D, t: D.Geometric(0.0, validate_args=False),
    "half Cauchy of a number": lambda D, t: D.HalfCauchy(1.0, validate_args=False).log_prob(2),
    "clamped": lambda D, t: D.ContinuousBernoulli(1.3).probs,
    "limits": lambda D, t: D.ContinuousBernoulli(0.3, lims=(0.2, 0.6)).mean,
    "count of a batch": lambda D, t: [
        D.Binomial(t.tensor([3.0, 4.0]), 0.5).batch_shape,
        D.NegativeBinomial(t.tensor([3.0, 4.0]), logits=0.5).batch_shape,
    ],
    "integer values": lambda D, t: D.Normal(0.0, 1.0).log_prob(t.tensor([1, 2])),
    "integer counts": lambda D, t: D.Geometric(0.3).log_prob(t.tensor([1, 2])),
    "integer rows": lambda D, t: D.Categorical(t.tensor([1, 2])).log_prob(t.tensor([0, 1])),
    "values broadcast": lambda D, t: D.Categorical(t.ones(3)).log_prob(t.tensor([[0, 1], [2, 1]])),
    "impossible event": lambda D, t: D.Categorical(logits=t.tensor([1.0, -float("inf")])).entropy(),
    "one hot by a mixture": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t.ones(2)), D.OneHotCategorical(t.tensor([[0.2, 0.8], [0.5, 0.5]]))
    ).log_prob(t.tensor([0.0, 1.0])),
    "temperatures": lambda D, t: D.RelaxedBernoulli(
        t.tensor([0.5, 0.3]), t.tensor([0.3, 0.4])
    ).sample((2,)),
    "transposed rows": lambda D, t: _of_transposed(D, t.arange(1.0, 21).reshape(5, 4).T),
    "no batch": lambda D, t: D.LogisticNormal(0.3, 1.0).sample(),
    "reshaped": lambda D, t: (
        D.TransformedDistribution(
            D.Normal(t.zeros(2, 3), 1.0),
            [D.ExpTransform(), D.AffineTransform(0.0, 2.0, 1), D.ReshapeTransform((3,), (3, 1))],
        )
        .expand((5, 2))
        .log_prob(t.ones(2, 3, 1))
    ),
    "no transforms": lambda D, t: D.TransformedDistribution(D.Normal(t.zeros(2), 1.0), []).support,
    "not monotone": lambda D, t: attempt(
        lambda: D.TransformedDistribution(D.Uniform(0.0, 1.0), D.AbsTransform()).cdf(t.tensor(0.3))
    ),
    "base of a Gumbel": lambda D, t: D.Gumbel(t.zeros(2), 1.0).base_dist.high,
    "log survival": lambda D, t: D.GeneralizedPareto(0.0, 1.0, 0.3).log_survival_function(
        t.tensor([0.0, 2.0, 30.0])
    ),
    "log cdf": lambda D, t: D.GeneralizedPareto(0.0, 1.0, -0.3).log_cdf(t.tensor([0.0, 2.0, 3.0])),
    "perplexity": lambda D, t: D.Categorical(t.ones(7)).perplexity(),
    "extended shape": lambda D, t: D.Independent(D.Normal(t.zeros(4, 2), 1.0), 1)._extended_shape(
        (3,)
    ),
    "both parameters": lambda D, t: _both_parameters(D.Bernoulli(t.tensor([0.3, 0.4]))),
    "parameters kept": lambda D, t: _both_parameters(D.Categorical(t.ones(2)).expand((3,))),
    "mixture text": lambda D, t: repr(
        D.MixtureSameFamily(D.Categorical(t.ones(2)), D.Normal(t.zeros(2), 1.0))
    ),
}


def _of_transposed(D: Any, rows: Any) -> Any:
    """Samples are drawn in the order of memory where PyTorch does so."""
    made = [D.Categorical(rows), D.Normal(rows, 1.0), D.Bernoulli(rows / 30), D.Gumbel(rows, rows)]
    return [distribution.sample(shape) for distribution in made for shape in ((), (2,))]


def _both_parameters(distribution: Any) -> Any:
    """The parameters that are there before and after one is read, which keeps it."""
    before = _parameters(distribution)
    distribution.logits  # noqa: B018 (kept once it was read)
    return before, _parameters(distribution), repr(distribution)


def _parameters(distribution: Any) -> list[str]:
    return sorted(name for name in vars(distribution) if not name.startswith("_"))


@pytest.mark.parametrize("name", RIGHT)
def test_results(name: str) -> None:
    same(lambda lib: RIGHT[name](lib.distributions, lib))


def test_base_class() -> None:
    def script(lib: Any) -> Any:
        class Empty(lib.distributions.Distribution):
            pass

        unchecked = Empty(validate_args=False)
        words = "arg_constraints support mean mode variance stddev batch_shape event_shape"
        found = [attempt(lambda w=w: getattr(unchecked, w)) for w in words.split()]
        value = lib.zeros(2)
        found += [
            attempt(lambda n=n: getattr(unchecked, n)(value)) for n in ("log_prob", "cdf", "icdf")
        ]
        for name in "enumerate_support entropy perplexity sample rsample __repr__".split():
            found.append(attempt(getattr(unchecked, name)))
        found.append(attempt(lambda: Empty()))  # warns that there are no constraints
        found.append(attempt(lambda: unchecked.expand((2,))))
        return found

    same(script)


def test_without_support() -> None:
    def script(lib: Any) -> Any:
        class Bare(lib.distributions.Distribution):
            arg_constraints: dict[str, Any] = {}

        return Bare()._validate_sample(lib.zeros(2))  # warns

    same(script)


def test_own_constructor_needs_own_expand() -> None:
    def script(lib: Any) -> Any:
        class Shifted(lib.distributions.Normal):
            def __init__(self, loc: Any) -> None:
                super().__init__(loc, 1.0)

        return Shifted(0.0).expand((2,))

    assert "must also define a custom .expand() method" in raises(script)


def test_dependent_and_lazy_parameters() -> None:
    def script(lib: Any) -> Any:
        D = lib.distributions

        class More(D.Normal):
            arg_constraints = {
                "loc": D.constraints.real,
                "unknown": D.constraints.dependent,
                "precision": D.constraints.positive,
            }

            @D.utils.lazy_property
            def precision(self) -> Any:
                return -1 / self.scale  # never checked, as it is not given

        first = More(0.0, lib.tensor(2.0, requires_grad=True))
        with lib.no_grad():
            wanted = first.precision.requires_grad
        return repr(first), wanted, first.precision is first.precision

    same(script)


def test_parameters_stay_themselves() -> None:
    def script(lib: Any) -> Any:
        D, weight = lib.distributions, lib.nn.Parameter(lib.tensor(-1.0))
        with lib.no_grad():
            bernoulli = D.Bernoulli(logits=weight)
            probs = bernoulli.probs  # has a gradient nevertheless
        return [
            D.Normal(weight, 1.0).mean is weight,
            probs.requires_grad,
            D.Normal(weight, lib.ones(2)).mean.requires_grad,
            attempt(lambda: D.Normal(0.0, weight)),
        ]

    same(script)


def test_pickle() -> None:
    """Also with inverse transforms, which PyTorch's lose."""
    D = tlc.distributions
    for distribution in (
        D.Normal(0.0, 1.0),
        D.Gumbel(0.0, 1.0),
        D.LogisticNormal(tlc.zeros(2), 1.0),
        D.MixtureSameFamily(D.Categorical(tlc.ones(2)), D.Normal(tlc.zeros(2), 1.0)),
    ):
        copy = pickle.loads(pickle.dumps(distribution))
        value = distribution.sample()
        assert copy.log_prob(value).tolist() == distribution.log_prob(value).tolist()
        assert repr(copy) == repr(distribution)


def test_default_of_validation() -> None:
    def script(lib: Any) -> Any:
        D = lib.distributions
        before = D.Distribution._validate_args
        D.Distribution.set_default_validate_args(False)
        try:
            return [D.Normal(0.0, -1.0), attempt(lambda: D.Normal(0.0, -1.0, validate_args=True))]
        finally:
            D.Distribution.set_default_validate_args(before)

    same(script)


def test_sample_n_warns() -> None:
    same(lambda lib: lib.distributions.Normal(0.0, 1.0).sample_n(3))


def test_triangles() -> None:
    def script(lib: Any) -> Any:
        u, mat = lib.distributions.utils, lib.arange(18.0).reshape(2, 3, 3)
        found = [attempt(lambda d=d: u.tril_matrix_to_vec(mat, d)) for d in range(-4, 4)]
        for length in range(1, 8):
            vec = lib.arange(1.0, 2 * length + 1).reshape(2, length)
            for diag in (-2, -1, 0, 1):
                result = attempt(lambda v=vec, d=diag: u.vec_to_tril_matrix(v, d))
                found.append(result if not isinstance(result, tuple) else result[0])
        return found

    same(script)


def test_probabilities() -> None:
    def script(lib: Any) -> Any:
        u, probs = lib.distributions.utils, lib.tensor([0.0, 0.25, 0.75, 1.0])
        return [
            u.clamp_probs(probs),
            u.clamp_probs(probs.double()),
            u.probs_to_logits(probs),
            u.probs_to_logits(probs, is_binary=True),
            u.logits_to_probs(probs),
            u.logits_to_probs(probs, is_binary=True),
            u.broadcast_all(1, 2.0, True),
            u.broadcast_all(1, probs, probs.double().reshape(4, 1)),
            attempt(lambda: u.broadcast_all(probs, "a")),
        ]

    same(script)


def test_names() -> None:
    """All of PyTorch's names for what is here, in the modules where it has them."""
    ours, theirs = tlc.distributions, torch.distributions
    assert set(ours.__all__) <= set(theirs.__all__)
    for name in ours.__all__:
        there = getattr(theirs, name)
        if isinstance(there, type):
            module = there.__module__.rpartition(".")[2]
            __import__(f"tensorflow_lite_clone.distributions.{module}")
            assert getattr(getattr(ours, module), name) is getattr(ours, name)
