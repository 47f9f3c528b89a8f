"""Constraints and the transforms to them, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.distributions.against_torch import raises, same
from tests.distributions.test_families import attempt

NUMBERS = [-2.0, -1.0, -1e-7, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, float("inf"), float("nan")]
VECTORS = [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.2, 0.3, 0.6], [-0.5, 1.0, 0.5]]
MATRICES = [
    [[1.0, 0.0], [0.5, 2.0]],
    [[1.0, 0.0], [0.6, 0.8]],
    [[-1.0, 0.0], [0.6, 0.8]],
    [[1.0, 0.5], [0.5, 1.0]],
    [[1.0, 2.0], [2.0, 1.0]],
    [[1.0, 1.0], [1.0, 1.0]],
    [[1.0, 0.5], [0.4, 1.0]],
]

# Name -> the constraint of `torch.distributions.constraints`, and values to check.
CONSTRAINTS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "boolean": (lambda c, t: c.boolean, NUMBERS),
    "nonnegative_integer": (lambda c, t: c.nonnegative_integer, NUMBERS),
    "positive_integer": (lambda c, t: c.positive_integer, NUMBERS),
    "integer_interval": (lambda c, t: c.integer_interval(-1, 2), NUMBERS),
    "real": (lambda c, t: c.real, NUMBERS),
    "real_vector": (lambda c, t: c.real_vector, VECTORS),
    "positive": (lambda c, t: c.positive, NUMBERS),
    "nonnegative": (lambda c, t: c.nonnegative, NUMBERS),
    "greater_than": (lambda c, t: c.greater_than(0.3), NUMBERS),
    "greater_than_tensor": (lambda c, t: c.greater_than(t([0.0, 0.2, 0.6])), VECTORS),
    "greater_than_eq": (lambda c, t: c.greater_than_eq(1), NUMBERS),
    "less_than": (lambda c, t: c.less_than(1), NUMBERS),
    "unit_interval": (lambda c, t: c.unit_interval, NUMBERS),
    "interval": (lambda c, t: c.interval(-1, 2.0), NUMBERS),
    "interval_tensors": (lambda c, t: c.interval(t([0.0, 0.2, 0.6]), t([1.0, 3.0, 0.7])), VECTORS),
    "half_open_interval": (lambda c, t: c.half_open_interval(-1, 2.0), NUMBERS),
    "half_open_unit": (lambda c, t: c.half_open_interval(0, 1), NUMBERS),
    "simplex": (lambda c, t: c.simplex, VECTORS),
    "one_hot": (lambda c, t: c.one_hot, VECTORS),
    "multinomial": (lambda c, t: c.multinomial(1), VECTORS),
    "lower_triangular": (lambda c, t: c.lower_triangular, MATRICES),
    "lower_cholesky": (lambda c, t: c.lower_cholesky, MATRICES),
    "corr_cholesky": (lambda c, t: c.corr_cholesky, MATRICES),
    "square": (lambda c, t: c.square, MATRICES),
    "square_of_a_row": (lambda c, t: c.square, [[1.0, 2.0]]),
    "symmetric": (lambda c, t: c.symmetric, MATRICES),
    "symmetric_of_a_row": (lambda c, t: c.symmetric, [[1.0, 2.0]]),
    "independent": (lambda c, t: c.independent(c.positive, 2), MATRICES),
    "cat": (lambda c, t: c.cat([c.positive, c.real], 1, [1, 2]), VECTORS),
    "cat_of_ones": (lambda c, t: c.cat([c.positive, c.boolean, c.real], -1), VECTORS),
    "stack": (lambda c, t: c.stack([c.positive, c.boolean, c.real], -1), VECTORS),
    "stack_of_vectors": (lambda c, t: c.stack([c.simplex] * 3, 0), VECTORS),
    "mixture": (lambda c, t: c.MixtureSameFamilyConstraint(c.positive), NUMBERS),
    "mixture_of_vectors": (lambda c, t: c.MixtureSameFamilyConstraint(c.simplex), VECTORS),
    "dependent": (lambda c, t: c.dependent, NUMBERS),
    "dependent_of_a_kind": (lambda c, t: c.dependent(is_discrete=True, event_dim=1), NUMBERS),
}
each = pytest.mark.parametrize("name", CONSTRAINTS)


def made(lib: Any, name: str) -> Any:
    return CONSTRAINTS[name][0](lib.distributions.constraints, lib.tensor)


@each
def test_constraint(name: str) -> None:
    def script(lib: Any) -> Any:
        constraint = made(lib, name)
        value = lib.tensor(CONSTRAINTS[name][1])
        return [
            repr(constraint),
            attempt(lambda: constraint.check(value)),
            attempt(lambda: constraint.is_discrete),
            attempt(lambda: constraint.event_dim),
            lib.distributions.constraints.is_dependent(constraint),
        ]

    same(script)


@each
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_to_constraints(name: str, registry: str) -> None:
    """What is registered, and that it maps into the region."""

    def script(lib: Any) -> Any:
        constraint = made(lib, name)
        to = getattr(lib.distributions, registry)
        results = [attempt(lambda: to(constraint))]
        if not isinstance(results[0], tuple):
            x = lib.tensor([[0.2, -0.3, 1.5], [2.0, 0.1, -0.7], [0.3, 0.2, -1.0]])
            y = to(constraint)(x)
            results += [to(constraint).domain, to(constraint).codomain, y]
            assert constraint.check(y).all()
            # PyTorch keeps caches out of registries.
            assert to(constraint)._cache_size == 0
        return results

    same(script)


MATRIX = pytest.mark.parametrize("name", ["positive_definite", "positive_semidefinite"])


@pytest.mark.parametrize(
    ("name", "decomposition"),
    [("positive_definite", "cholesky_ex"), ("positive_semidefinite", "eigvalsh")],
)
def test_definite_matrices(name: str, decomposition: str) -> None:
    if not hasattr(tlc.linalg, decomposition):
        pytest.skip(f"needs linalg.{decomposition}")

    def script(lib: Any) -> Any:
        constraint = getattr(lib.distributions.constraints, name)
        symmetric = lib.tensor([[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
        values = [lib.tensor(MATRICES), symmetric, -symmetric, lib.eye(3), lib.ones(2, 3)]
        return [constraint.check(v) for v in values], constraint.event_dim, repr(constraint)

    same(script)


@MATRIX
def test_transforms_to_definite_matrices(name: str) -> None:
    def script(lib: Any) -> Any:
        constraint = getattr(lib.distributions.constraints, name)
        transform = lib.distributions.transform_to(constraint)
        x = lib.tensor([[0.2, -0.3], [2.0, 0.1]])
        return [transform, transform(x), attempt(lambda: lib.distributions.biject_to(constraint))]

    same(script)


def test_names() -> None:
    ours, theirs = (lib.distributions.constraints for lib in (tlc, torch))
    assert sorted(ours.__all__) == sorted(theirs.__all__)
    for name in ours.__all__:
        assert type(getattr(ours, name)).__name__ == type(getattr(theirs, name)).__name__
    for module in ("utils", "transforms", "constraint_registry", "kl"):
        here, there = (getattr(lib.distributions, module) for lib in (tlc, torch))
        assert set(here.__all__) == set(getattr(there, "__all__", here.__all__))


def test_dependent_properties() -> None:
    def script(lib: Any) -> Any:
        c = lib.distributions.constraints

        class Owner:
            @c.dependent_property
            def plain(self) -> Any:
                return c.real

            @c.dependent_property(is_discrete=True, event_dim=2)
            def kind(self) -> Any:
                return c.simplex

        return [
            Owner().plain,
            Owner().kind,
            c.is_dependent(Owner.plain),
            Owner.kind.event_dim,
            Owner.kind.is_discrete,
            attempt(lambda: Owner.plain.event_dim),
            attempt(lambda: Owner.plain.is_discrete),
        ]

    same(script)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "no check": lambda c, torch: c.Constraint().check(torch.ones(2)),
    "cat of others": lambda c, torch: c.cat([c.real, 3]),
    "stack of others": lambda c, torch: c.stack([3]),
    "lengths": lambda c, torch: c.cat([c.real], 0, [1, 2]),
    "cat dim": lambda c, torch: c.cat([c.real]).check(torch.tensor(1.0)),
    "stack dim": lambda c, torch: c.stack([c.real], 2).check(torch.ones(2)),
    "few dimensions": lambda c, torch: c.independent(c.real, 2).check(torch.ones(3)),
    "no mixture": lambda c, torch: c.MixtureSameFamilyConstraint(c.real_vector).check(
        torch.ones(())
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    raises(lambda lib: ERRORS[name](lib.distributions.constraints, lib))


def test_own_registries() -> None:
    def script(lib: Any) -> Any:
        D = lib.distributions

        class Even(D.constraints.Constraint):
            pass

        registry = D.constraint_registry.ConstraintRegistry()
        found = [attempt(lambda: registry(Even()))]
        registry.register(Even, lambda constraint: "by type")
        found.append(registry(Even()))
        registry.register(Even())(lambda constraint: "by instance")
        found += [registry(Even()), attempt(lambda: registry(D.constraints.real))]
        found += [attempt(lambda: registry.register(3, print))]
        found += [attempt(lambda: registry.register(D.Normal, print))]
        return found

    same(script)
