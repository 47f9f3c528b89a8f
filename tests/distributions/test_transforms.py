"""Transforms: values, inverses, Jacobians, shapes and caches, against PyTorch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.distributions.against_torch import raises, same
from tests.distributions.test_families import attempt

X = [[0.1, 0.2, 0.3], [-1.0, 0.0, 2.0], [0.4, -0.7, 1.1]]
Make = Callable[[Any, Callable[[Any], Any]], Any]

# Name -> how to make one of `torch.distributions.transforms`, with `t` for tensors.
TRANSFORMS: dict[str, Make] = {
    "exp": lambda T, t: T.ExpTransform(),
    "power": lambda T, t: T.PowerTransform(t([2.0, -0.5, 3.0])),
    "power_of_a_number": lambda T, t: T.PowerTransform(t(3.0)),
    "sigmoid": lambda T, t: T.SigmoidTransform(),
    "softplus": lambda T, t: T.SoftplusTransform(),
    "tanh": lambda T, t: T.TanhTransform(),
    "abs": lambda T, t: T.AbsTransform(),
    "affine": lambda T, t: T.AffineTransform(1.5, -2),
    "affine_tensors": lambda T, t: T.AffineTransform(t([[1.0], [0.0], [2.0]]), t([2.0, -1, 3])),
    "affine_vectors": lambda T, t: T.AffineTransform(1.5, t([2.0, -1.0, 3.0]), event_dim=1),
    "affine_vectors_by_numbers": lambda T, t: T.AffineTransform(1, 3.0, event_dim=1),
    "affine_vectors_broadcast": lambda T, t: T.AffineTransform(1, t(3.0), event_dim=1),
    "affine_matrices": lambda T, t: T.AffineTransform(t(X), t([2.0, -1.0, 3.0]), event_dim=2),
    "softmax": lambda T, t: T.SoftmaxTransform(),
    "stick_breaking": lambda T, t: T.StickBreakingTransform(),
    "corr_cholesky": lambda T, t: T.CorrCholeskyTransform(),
    "lower_cholesky": lambda T, t: T.LowerCholeskyTransform(),
    "identity": lambda T, t: T.identity_transform,
    "compose": lambda T, t: T.ComposeTransform(
        [T.ExpTransform(), T.AffineTransform(0.5, t([2.0, 1.0, 3.0]))]
    ),
    "compose_events": lambda T, t: T.ComposeTransform(
        [T.TanhTransform(), T.StickBreakingTransform(), T.AffineTransform(1, 2)]
    ),
    "compose_wider_later": lambda T, t: T.ComposeTransform(
        [T.ExpTransform(), T.AffineTransform(0.0, t([2.0, 1.0, 3.0]), 2), T.ExpTransform().inv]
    ),
    "independent": lambda T, t: T.IndependentTransform(T.ExpTransform(), 1),
    "independent_of_vectors": lambda T, t: T.IndependentTransform(T.StickBreakingTransform(), 1),
    "reshape": lambda T, t: T.ReshapeTransform((3,), (3, 1)),
    "cat": lambda T, t: T.CatTransform([T.ExpTransform(), T.AffineTransform(1, 2)], 1, [1, 2]),
    "cat_first": lambda T, t: T.CatTransform([T.ExpTransform()] + [T.TanhTransform()] * 2, 0),
    "cat_last": lambda T, t: T.CatTransform(
        [T.ExpTransform(), T.AffineTransform(1, 2)], -1, [2, 1]
    ),
    "cat_events": lambda T, t: T.CatTransform(
        [T.IndependentTransform(T.ExpTransform(), 1), T.TanhTransform()], 0, [2, 1]
    ),
    "cat_in_events": lambda T, t: T.CatTransform(
        [T.AffineTransform(0, 2, 1), T.IndependentTransform(T.TanhTransform(), 1)], 1, [2, 1]
    ),
    "stack": lambda T, t: T.StackTransform(
        [T.ExpTransform(), T.AffineTransform(1, 2), T.TanhTransform()], 0
    ),
    "stack_abs": lambda T, t: T.StackTransform([T.AbsTransform()] * 3, -1),
    "inverse": lambda T, t: T.ComposeTransform([T.ExpTransform(), T.SigmoidTransform()]).inv.inv,
}
each = pytest.mark.parametrize("name", TRANSFORMS)


def made(lib: Any, name: str) -> Any:
    def t(data: Any) -> Any:
        return lib.tensor(data, dtype=lib.float64)

    return TRANSFORMS[name](lib.distributions.transforms, t)


def points(lib: Any, name: str) -> Any:
    """Points of the domain."""
    x = lib.tensor(X, dtype=lib.float64)
    return x.abs() + 0.1 if name.startswith("power") else x


@each
def test_values(name: str) -> None:
    def script(lib: Any) -> Any:
        transform, x = made(lib, name), points(lib, name)
        y = transform(x)
        back = transform.inv(y)
        return [
            y,
            back,
            attempt(lambda: transform.log_abs_det_jacobian(x, y)),
            attempt(lambda: transform.inv.log_abs_det_jacobian(y, x)),
        ]

    same(script, rtol=1e-9, atol=1e-9)


@each
def test_gradients(name: str) -> None:
    def script(lib: Any) -> Any:
        transform, x = made(lib, name), points(lib, name).requires_grad_()
        y = transform(x)
        total = (y * lib.arange(1.0, y.numel() + 1).reshape(y.shape)).sum()
        z = y.detach().requires_grad_()
        grads = [*lib.autograd.grad(total, x)]
        if transform.bijective:
            grads += lib.autograd.grad(transform.inv(z).sin().sum(), z)
            logs = transform.log_abs_det_jacobian(x, transform(x)).sum()
            grads += lib.autograd.grad(logs, x, allow_unused=True) if logs.requires_grad else ()
        return grads

    same(script, rtol=1e-8, atol=1e-8)


@each
def test_attributes(name: str) -> None:
    words = "domain codomain bijective sign event_dim inv _cache_size length"

    def script(lib: Any) -> Any:
        transform = made(lib, name)
        found = [attempt(lambda w=w: getattr(transform, w)) for w in words.split()]
        found += [attempt(lambda w=w: getattr(transform.inv, w)) for w in words.split()]
        cached = transform.with_cache()
        return [*found, repr(transform), cached._cache_size, cached.inv.with_cache(0)._cache_size]

    same(script)


@each
def test_shapes(name: str) -> None:
    def script(lib: Any) -> Any:
        transform = made(lib, name)
        shapes = [(), (3,), (2, 3), (4, 4), (3, 1), (5, 1, 1)]
        sizes = [lib.Size(shape) for shape in shapes]
        functions = transform.forward_shape, transform.inverse_shape
        found = [attempt(lambda f=f, s=s: tuple(f(s))) for f in functions for s in sizes]
        # What does not broadcast is worded otherwise.
        return [x[0] if x and x[0] is RuntimeError else x for x in found]

    same(script)


ELEMENTWISE = "exp power sigmoid softplus tanh affine affine_tensors compose inverse".split()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_jacobian_of_numbers(name: str) -> None:
    """log_abs_det_jacobian is the logarithm of the slope."""
    transform, x = made(tlc, name), points(tlc, name)
    x = x.sigmoid() if name == "inverse" else x
    x.requires_grad_()
    y = transform(x)
    (slope,) = tlc.autograd.grad(y.sum(), x)
    found = transform.log_abs_det_jacobian(x, y)
    assert found.shape == x.shape
    assert found.allclose(slope.abs().log(), rtol=1e-9, atol=1e-9)


VECTORS = (
    "affine_vectors affine_vectors_by_numbers stick_breaking corr_cholesky independent".split()
)


@pytest.mark.parametrize("name", VECTORS)
def test_jacobian_of_vectors(name: str) -> None:
    """log_abs_det_jacobian is that of the matrix of derivatives of the image's coordinates."""
    transform, x = made(tlc, name), points(tlc, name)[0]

    def coordinates(v: Any) -> Any:
        y = transform(v)
        if name == "corr_cholesky":
            return tlc.distributions.utils.tril_matrix_to_vec(y, -1)
        return y[: len(v)]

    jacobian = tlc.autograd.functional.jacobian(coordinates, x).cpu().numpy()
    found = transform.log_abs_det_jacobian(x, transform(x)).item()
    assert found == pytest.approx(np.linalg.slogdet(jacobian)[1], rel=1e-9)


@each
def test_cache(name: str) -> None:
    transform, x = made(tlc, name).with_cache(), points(tlc, name)
    y = transform(x)
    assert transform(x) is y
    if transform.__dict__.get("parts") != []:
        assert transform.inv(y) is x


@each
def test_pickle(name: str) -> None:
    transform, x = made(tlc, name), points(tlc, name)
    transform.inv  # noqa: B018 (keeps a weak reference)
    copy = pickle.loads(pickle.dumps(transform))
    assert copy(x).tolist() == transform(x).tolist()


def test_equality() -> None:
    def script(lib: Any) -> Any:
        T, tensor = lib.distributions.transforms, lib.tensor
        pairs = [
            (T.ExpTransform(), T.ExpTransform()),
            (T.ExpTransform(), T.SigmoidTransform()),
            (T.ExpTransform().inv, T.ExpTransform().inv),
            (T.ExpTransform().inv, T.ExpTransform()),
            (T.AffineTransform(1, 2), T.AffineTransform(1, 2)),
            (T.AffineTransform(1, 2), T.AffineTransform(1, 3)),
            (T.AffineTransform(1, 2), T.AffineTransform(tensor([1.0, 1.0]), 2)),
            (T.AffineTransform(tensor([1.0, 2.0]), 2), T.AffineTransform(tensor([1.0, 1.0]), 2)),
            (T.PowerTransform(2), T.PowerTransform(tensor(2.0))),
            (T.PowerTransform(2), T.PowerTransform(3)),
            (T.ComposeTransform([T.ExpTransform()]), T.ComposeTransform([T.ExpTransform()])),
            (T.ComposeTransform([T.ExpTransform()]), T.ComposeTransform([T.TanhTransform()])),
            (T.IndependentTransform(T.ExpTransform(), 1),) * 2,
            (T.StackTransform([T.ExpTransform()]), T.StackTransform([T.ExpTransform()])),
            (T.CorrCholeskyTransform(), T.CorrCholeskyTransform()),
            (T.SoftmaxTransform(), T.SoftmaxTransform()),
            (T.LowerCholeskyTransform(), T.LowerCholeskyTransform()),
            (T.PositiveDefiniteTransform(), T.PositiveDefiniteTransform()),
            (T.StickBreakingTransform(), T.StickBreakingTransform()),
            (T.AbsTransform(), 3),
            (T.TanhTransform(), T.TanhTransform()),
            (T.SoftplusTransform(), T.SoftplusTransform()),
        ]
        return [(a == b, a != b) for a, b in pairs]

    same(script)
    with pytest.raises(TypeError, match="unhashable"):
        hash(tlc.distributions.ExpTransform())


def test_positive_definite() -> None:
    def script(lib: Any) -> Any:
        transform = lib.distributions.PositiveDefiniteTransform()
        y = transform(lib.tensor(X))
        return [y, transform.domain, transform.codomain, attempt(lambda: transform.sign)]

    same(script)


@pytest.mark.skipif(not hasattr(tlc.linalg, "cholesky"), reason="needs linalg.cholesky")
def test_inverse_of_positive_definite() -> None:
    def script(lib: Any) -> Any:
        transform = lib.distributions.PositiveDefiniteTransform()
        return transform.inv(transform(lib.tensor(X)))

    same(script, rtol=1e-4, atol=1e-5)


def test_extreme_values() -> None:
    def script(lib: Any) -> Any:
        T, far = lib.distributions.transforms, lib.tensor([-200.0, -30.0, 0.0, 30.0, 200.0])
        edges = lib.tensor([0.0, 1e-30, 0.5, 1.0])
        results = []
        for kind in (T.SigmoidTransform, T.SoftplusTransform, T.TanhTransform, T.ExpTransform):
            transform = kind()
            results += [transform(far), transform.log_abs_det_jacobian(far, transform(far))]
            results += [transform.inv(edges)]
        corner = T.StickBreakingTransform()(far)
        return [*results, corner, T.CorrCholeskyTransform()(far[1:4])]

    same(script, rtol=1e-5, atol=1e-6)


def test_cdf_as_a_transform() -> None:
    def script(lib: Any) -> Any:
        D, x = lib.distributions, lib.tensor(X)
        transform = D.CumulativeDistributionTransform(D.Normal(0.3, 2.0))
        y = transform(x)
        return [
            y,
            transform.inv(y),
            transform.log_abs_det_jacobian(x, y),
            transform.domain,
            transform.codomain,
            transform.sign,
            transform.bijective,
            repr(transform),
            transform.with_cache()._cache_size,
            transform == D.CumulativeDistributionTransform(transform.distribution),
        ]

    same(script, rtol=1e-4, atol=1e-5)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "cache size": lambda T, torch: T.ExpTransform(2),
    "no cache": lambda T, torch: type("Own", (T.Transform,), {"__init__": _init})().with_cache(),
    "no map": lambda T, torch: T.Transform()(torch.ones(2)),
    "no inverse": lambda T, torch: T.Transform().inv(torch.ones(2)),
    "no sign": lambda T, torch: T.Transform().sign,
    "no jacobian": lambda T, torch: T.Transform().log_abs_det_jacobian(torch.ones(2), 3),
    "sizes": lambda T, torch: T.ReshapeTransform((2, 3), (4,)),
    "event": lambda T, torch: T.IndependentTransform(T.ExpTransform(), 1)(torch.tensor(1.0)),
    "inverse event": lambda T, torch: T.IndependentTransform(T.ExpTransform(), 1).inv(
        torch.tensor(1.0)
    ),
    "cat of others": lambda T, torch: T.CatTransform([3]),
    "stack of others": lambda T, torch: T.StackTransform([T.ExpTransform(), 3]),
    "lengths": lambda T, torch: T.CatTransform([T.ExpTransform()], 0, [1, 2]),
    "cat length": lambda T, torch: T.CatTransform([T.ExpTransform()])(torch.ones(3)),
    "cat dim": lambda T, torch: T.CatTransform([T.ExpTransform()], 1)(torch.ones(1)),
    "stack length": lambda T, torch: T.StackTransform([T.ExpTransform()])(torch.ones(3)),
    "stack dim": lambda T, torch: T.StackTransform([T.ExpTransform()], 1).inv(torch.ones(1)),
    "triangle": lambda T, torch: T.CorrCholeskyTransform()(torch.ones(2)),
}


def _init(self: Any) -> None:
    super(type(self), self).__init__()


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    raises(lambda lib: ERRORS[name](lib.distributions.transforms, lib))
