"""Batch norm's running statistics: what is written, how it is counted, what is refused."""

from __future__ import annotations

import pytest

from tests.nn.against_torch import LIBRARIES, plain

SHAPES = [(4, 3), (2, 3, 4, 4)]


def ramp(lib, shape):
    count = 1
    for size in shape:
        count *= size
    return (lib.arange(count, dtype=lib.float32) * 0.37).sin().reshape(shape)


def close(values) -> None:
    mine, true = (value if isinstance(value, list) else value.tolist() for value in values)
    assert mine == pytest.approx(true, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_a_module_learns_its_statistics(shape, momentum) -> None:
    layers = []
    for lib in LIBRARIES:
        kind = lib.nn.BatchNorm1d if len(shape) == 2 else lib.nn.BatchNorm2d
        layer = kind(3, momentum=momentum)
        for scale in (1, 5):
            layer(ramp(lib, shape) * scale)
        layers.append(layer)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        close([getattr(layer, name) for layer in layers])


def test_the_writes_are_counted() -> None:
    """PyTorch does not count them; ours are noticed by whoever has saved the statistics."""
    lib = LIBRARIES[0]
    base = lib.ones(2, 3)
    mean, variance = base[0], lib.ones(3)
    lib.nn.functional.batch_norm(ramp(lib, (4, 3)), mean, variance, training=True)
    lib.nn.functional.batch_norm(ramp(lib, (0, 3)), mean, variance, training=True)
    assert (mean._version, variance._version, base._version) == (1, 1, 1)
    assert base[0].tolist() == mean.tolist() != [1.0] * 3


@pytest.mark.parametrize("case", ["mean", "variance", "eps", "negative"])
@pytest.mark.parametrize("training", [False, True])
def test_errors(case, training) -> None:
    seen = []
    for lib in LIBRARIES:
        mean = None if case == "variance" else lib.zeros(3)
        variance = None if case == "mean" else lib.ones(3)
        eps = {"eps": 0.0, "negative": -1.0}.get(case, 1e-5)
        options = {"training": training, "eps": eps}
        try:
            y = lib.nn.functional.batch_norm(ramp(lib, (4, 3)), mean, variance, **options)
            seen.append(y.reshape(-1))
        except (RuntimeError, ValueError) as error:
            seen.append((type(error), str(error)))
    if case == "eps" and not training:
        close(seen)
    else:
        assert seen[0] == seen[1]


def test_evaluation_notices_that_its_statistics_changed() -> None:
    for lib in LIBRARIES:
        x = ramp(lib, (4, 3)).requires_grad_()
        w = lib.ones(3, requires_grad=True)
        mean, variance = lib.zeros(3), lib.ones(3)
        y = lib.nn.functional.batch_norm(x, mean, variance, w)
        variance.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@pytest.mark.parametrize("training", [False, True])
def test_statistics_have_no_gradient(training) -> None:
    for lib in LIBRARIES:
        mean, variance = lib.zeros(3, requires_grad=True), lib.ones(3)
        with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
            lib.nn.functional.batch_norm(ramp(lib, (4, 3)), mean, variance, training=training)
        with lib.no_grad():
            plain(lib.nn.functional.batch_norm(ramp(lib, (4, 3)), mean, variance))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("training", [False, True])
def test_float32_weights_beside_half(kind, training) -> None:
    grads = []
    for lib in LIBRARIES:
        x = ramp(lib, (4, 3, 2)).to(getattr(lib, kind)).requires_grad_()
        w = (ramp(lib, (3,)) + 1).detach().requires_grad_()
        y = lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), w, training=training)
        (y * ramp(lib, (4, 3, 2)).to(y.dtype)).sum().backward()
        grads.append((y.detach().float(), x.grad.float(), w.grad))
        assert (y.dtype, x.grad.dtype) == (x.dtype, x.dtype)
        assert w.grad.dtype == lib.float32
    for mine, true in zip(*grads, strict=True):
        found = mine.reshape(-1).tolist()
        assert found == pytest.approx(true.reshape(-1).tolist(), rel=2e-2, abs=2e-2)
