"""What distributions know of themselves, against PyTorch: densities, moments, shapes, samples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.distributions.against_torch import TOLERANCE, same
from tests.distributions.families import FAMILIES, Family

PROPERTIES = (
    "batch_shape event_shape mean mode variance stddev support has_rsample has_enumerate_support "
    "arg_constraints param_shape probs logits loc scale temperature"
).split()

families = pytest.mark.parametrize("family", FAMILIES, ids=str)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])

# Wider tolerances: (family, what is computed) as a pattern, the dtype, the tolerance; and why.
WIDER = [
    # Near p = 1/2 a small difference is divided by a small difference.
    (r"ContinuousBernoulli.*", "float32", 1e-2),
    (r"ContinuousBernoulli.*", "float64", 1e-7),
    # PyTorch's Bessel functions are polynomials, exact to 2e-7 and in their quotients to 4e-6.
    (r"VonMises (variance|stddev|log_prob|expand|gradients)", "float64", 5e-6),
]
# Where PyTorch is no oracle: in which dtypes, and why.
NOT_COMPARED = {
    "Kumaraswamy mode": ("float32 float64", "it gives NaN; see test_mode_of_kumaraswamy"),
    "GeneralizedPareto log_prob": ("float64", "it mixes dtypes, which fails"),
    "GeneralizedPareto cdf": ("float64", "it mixes dtypes, which fails"),
}


def tolerance(family: Family, what: str, dtype: str) -> dict[str, float]:
    rtol, atol = TOLERANCE[dtype]
    for pattern, where, bound in WIDER:
        if where == dtype and re.fullmatch(pattern, f"{family.name} {what}"):
            rtol = atol = bound
    return {"rtol": rtol, "atol": atol}


def comparable(family: Family, what: str, dtype: str) -> bool:
    """Whether PyTorch is an oracle here."""
    return dtype not in NOT_COMPARED.get(f"{family.name} {what}", ("",))[0].split()


def maker(lib: Any, dtype: str) -> Callable[[Any], Any]:
    """The function that makes tensors of nested lists."""
    return lambda data: lib.tensor(data, dtype=getattr(lib, dtype))


def built(family: Family, lib: Any, dtype: str = "float64") -> Any:
    return family.build(lib.distributions, maker(lib, dtype))


def attempt(function: Callable[[], Any]) -> Any:
    """The value, or the error, so that one script compares many."""
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


@families
@dtypes
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(family: Family, dtype: str, name: str) -> None:
    if comparable(family, name, dtype):
        same(
            lambda lib: attempt(lambda: getattr(built(family, lib, dtype), name)),
            **tolerance(family, name, dtype),
        )


@families
@dtypes
@pytest.mark.parametrize("name", ["log_prob", "cdf"])
def test_functions_of_values(family: Family, dtype: str, name: str) -> None:
    def script(lib: Any) -> Any:
        value = maker(lib, dtype)(family.values)
        return attempt(lambda: getattr(built(family, lib, dtype), name)(value))

    if comparable(family, name, dtype):
        same(script, **tolerance(family, name, dtype))


@families
@dtypes
@pytest.mark.parametrize("name", ["entropy", "perplexity", "enumerate_support", "__repr__"])
def test_functions_of_nothing(family: Family, dtype: str, name: str) -> None:
    same(
        lambda lib: attempt(getattr(built(family, lib, dtype), name)),
        **tolerance(family, name, dtype),
    )


@families
def test_support_without_the_batch(family: Family) -> None:
    same(lambda lib: attempt(lambda: built(family, lib).enumerate_support(expand=False)))


@families
@dtypes
def test_inverse_cdf(family: Family, dtype: str) -> None:
    def script(lib: Any) -> Any:
        values = maker(lib, dtype)([[[0.05]], [[0.5]], [[0.9]]])
        return attempt(lambda: built(family, lib, dtype).icdf(values))

    same(script, **tolerance(family, "icdf", dtype))


@families
@dtypes
def test_expand(family: Family, dtype: str) -> None:
    def script(lib: Any) -> Any:
        distribution = built(family, lib, dtype)
        expanded = distribution.expand((4, *distribution.batch_shape))
        value = maker(lib, dtype)(family.values)[0]
        results = [
            repr(expanded),
            expanded.batch_shape,
            expanded.event_shape,
            type(expanded),
            attempt(lambda: expanded.mean),
            attempt(expanded.entropy),
            expanded.sample((2,)),
            expanded.support,
            expanded._validate_args,
        ]
        if comparable(family, "log_prob", dtype):
            results.append(attempt(lambda: expanded.log_prob(value)))
        return results

    same(script, **tolerance(family, "expand", dtype))


@families
def test_validation_is_kept_by_expand(family: Family) -> None:
    def script(lib: Any) -> Any:
        distribution = built(family, lib)
        distribution._validate_args = False
        return distribution.expand(distribution.batch_shape)._validate_args

    assert same(script) is False


@families
@dtypes
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)], ids=str)
def test_samples(family: Family, dtype: str, shape: tuple[int, ...]) -> None:
    """The same numbers as PyTorch's for the same seed."""

    def script(lib: Any) -> Any:
        distribution = built(family, lib, dtype)
        sample = distribution.sample(shape)
        assert not sample.requires_grad
        return sample, attempt(lambda: distribution.rsample(shape))

    same(script, **tolerance(family, "sample", dtype))


def gradients(family: Family, lib: Any, use: Callable[[Any], Any]) -> Any:
    """The gradients of a weighted sum of ``use(distribution)`` with regard to all parameters."""
    leaves = []

    def make(data: Any) -> Any:
        leaf = lib.tensor(data, dtype=lib.float64, requires_grad=True)
        leaves.append(leaf)
        return leaf

    result = use(family.build(lib.distributions, make))
    if not result.requires_grad:
        return "no gradient"
    weights = lib.linspace(0.5, 2.0, result.numel(), dtype=lib.float64).reshape(result.shape)
    return list(lib.autograd.grad((result * weights).sum(), leaves, allow_unused=True))


@families
def test_gradients_of_samples(family: Family) -> None:
    def script(lib: Any) -> Any:
        return attempt(lambda: gradients(family, lib, lambda d: d.rsample((3,))))

    same(script, **tolerance(family, "rsample", "float64"))


@families
def test_gradients_of_densities(family: Family) -> None:
    def script(lib: Any) -> Any:
        value = lib.tensor(family.values, dtype=lib.float64)
        return attempt(lambda: gradients(family, lib, lambda d: d.log_prob(value)))

    if comparable(family, "log_prob", "float64"):
        same(script, **tolerance(family, "gradients", "float64"))


@families
@pytest.mark.parametrize("name", ["mean", "variance", "entropy"])
def test_gradients_of_moments(family: Family, name: str) -> None:
    def use(distribution: Any) -> Any:
        value = getattr(distribution, name)
        return value() if name == "entropy" else value

    same(
        lambda lib: attempt(lambda: gradients(family, lib, use)),
        **tolerance(family, "gradients", "float64"),
    )


@families
def test_values_that_are_refused(family: Family) -> None:
    def script(lib: Any) -> Any:
        distribution = built(family, lib, "float32")
        value = maker(lib, "float32")(family.values)
        wrong = [value * float("nan"), value - 100.5, lib.zeros(7, 7, 7, 7), 0.5]
        return [attempt(lambda v=v: distribution.log_prob(v)) for v in wrong]

    same(script, **tolerance(family, "log_prob", "float32"))


def has_cdf(family: Family) -> bool:
    """Whether PyTorch has the family's cdf."""
    value = torch.tensor(family.values)
    return isinstance(attempt(lambda: built(family, torch, "float32").cdf(value)), torch.Tensor)


CONTINUOUS = [family for family in FAMILIES if has_cdf(family)]


@pytest.mark.parametrize("family", CONTINUOUS, ids=str)
def test_density_is_the_derivative_of_the_cdf(family: Family) -> None:
    distribution = built(family, tlc)
    value = tlc.tensor(family.values, dtype=tlc.float64) + 0.003  # away from kinks
    value = (value + tlc.zeros(distribution.batch_shape, dtype=tlc.float64)).requires_grad_()
    (slope,) = tlc.autograd.grad(distribution.cdf(value).sum(), value)
    density = distribution.log_prob(value).exp()
    # Between its limits, the continuous Bernoulli's cdf is taken to be linear.
    bound = 1e-3 if family.name.startswith("ContinuousBernoulli") else 1e-6
    np.testing.assert_allclose(
        slope.cpu().numpy(), density.detach().cpu().numpy(), rtol=bound, atol=1e-9
    )


def test_cdfs_are_there() -> None:
    assert len(CONTINUOUS) >= 14


def test_mode_of_kumaraswamy() -> None:
    """The density has its maximum there."""
    d = tlc.distributions.Kumaraswamy(tlc.tensor([0.5, 1.0, 1.5, 3.0]), tlc.tensor([2.0, 1, 4, 2]))
    assert d.mode.isnan().tolist() == [True, True, False, False]
    peak = d.log_prob(d.mode.nan_to_num(0.5))
    for shift in (-1e-2, 1e-2):
        assert (d.log_prob(d.mode.nan_to_num(0.5) + shift) <= peak)[2:].all()
