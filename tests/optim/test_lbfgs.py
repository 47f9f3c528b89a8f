"""L-BFGS against torch: losses of every evaluation, parameters, states, errors."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

OPTIONS = [
    {},
    {"lr": 0.1, "max_iter": 7},
    {"max_iter": 4, "history_size": 2},
    {"lr": 0.5, "max_iter": 1},
    {"max_eval": 3},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "lr": 5.0, "max_iter": 5},
    {"line_search_fn": "strong_wolfe", "lr": 1e-3, "max_iter": 3, "history_size": 1},
    {"line_search_fn": "strong_wolfe", "tolerance_grad": 1e-2, "tolerance_change": 1e-3},
]
IDS = [" ".join(f"{key}={value}" for key, value in options.items()) for options in OPTIONS]


def rosenbrock(x, y):
    return ((1 - x) ** 2).sum() + 100 * ((y - x * x) ** 2).sum()


def quartic(x, y):
    return ((x - 2) ** 4).sum() + ((x + y) ** 2).sum() + (x.cos() * y).sum()


def minimise(lib, loss_of, options, dtype, steps=4, state=None):
    """The losses of all evaluations, and what is left."""
    x = lib.nn.Parameter(lib.tensor([-1.2, 0.7], dtype=getattr(lib, dtype)))
    y = lib.nn.Parameter(lib.tensor([[1.0, -0.3]], dtype=getattr(lib, dtype)))
    optimizer = lib.optim.LBFGS([x, y], **options)
    if state is not None:
        optimizer.load_state_dict(state)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        losses.append(loss.item())
        return loss

    returned = [optimizer.step(closure).item() for _ in range(steps)]
    return losses, returned, [x, y], optimizer


@pytest.mark.parametrize("loss_of", [rosenbrock, quartic])
@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
def test_float64(options, loss_of):
    """The number of evaluations is the same, and so are the numbers while they are not tiny."""
    ours, theirs = [minimise(lib, loss_of, options, "float64") for lib in (tlc, torch)]
    assert len(ours[0]) == len(theirs[0])
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        for u, v in zip(a, b, strict=True):
            u, v = [z.detach().numpy() if hasattr(z, "detach") else z for z in (u, v)]
            np.testing.assert_allclose(u, v, rtol=1e-6, atol=1e-9)
    one, two = [list(run[3].state.values())[0] for run in (ours, theirs)]
    assert set(one) == set(two)
    for key in ("func_evals", "n_iter"):
        assert one[key] == two[key]
    for key in ("old_dirs", "old_stps", "ro"):
        assert len(one[key]) == len(two[key])
    for key in ("d", "t", "H_diag", "prev_flat_grad", "prev_loss"):
        assert isinstance(one[key], tlc.Tensor) == isinstance(two[key], torch.Tensor), key


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
def test_float32(options):
    """One step: later ones differ as far as the surface multiplies roundings."""
    ours, theirs = [minimise(lib, quartic, options, "float32", steps=1) for lib in (tlc, torch)]
    shown = min(len(ours[0]), 6)
    np.testing.assert_allclose(ours[0][:shown], theirs[0][:shown], rtol=2e-4)


def test_complex_parameters():
    results = []
    for lib in (tlc, torch):
        z = lib.nn.Parameter(lib.tensor([1 + 2j, -0.5j, 0.25], dtype=lib.complex128))
        unused = lib.nn.Parameter(lib.zeros(2, dtype=lib.float64))
        optimizer = lib.optim.LBFGS([z, unused], max_iter=5, line_search_fn="strong_wolfe")

        def closure(optimizer=optimizer, z=z):
            optimizer.zero_grad()
            loss = ((z * z - 1).abs() ** 2).sum()
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(3)]
        results.append([*losses, *z.tolist()])
    np.testing.assert_allclose(*results, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"line_search_fn": "strong_wolfe", "lr": 0.1}])
def test_states_go_over_to_torch_and_back(options):
    """A second half after loading the other library's state is the other's second half."""
    for first, second in ((torch, tlc), (tlc, torch)):
        _, _, params, optimizer = minimise(first, rosenbrock, options, "float64", steps=2)
        file = io.BytesIO()
        first.save((params[0].tolist(), params[1].tolist(), optimizer.state_dict()), file)
        file.seek(0)
        *values, state = second.load(file)
        losses = []
        for lib, its_state in ((first, optimizer.state_dict()), (second, state)):
            x, y = [
                lib.nn.Parameter(lib.tensor(value, dtype=lib.float64, requires_grad=True))
                for value in values
            ]
            resumed = lib.optim.LBFGS([x, y], **options)
            resumed.load_state_dict(its_state)
            losses.append([])

            def closure(resumed=resumed, x=x, y=y, seen=losses[-1]):
                resumed.zero_grad()
                loss = rosenbrock(x, y)
                loss.backward()
                seen.append(loss.item())
                return loss

            resumed.step(closure)
        assert len(losses[0]) == len(losses[1])
        np.testing.assert_allclose(*losses, rtol=1e-6, atol=1e-9)


def test_the_end():
    """Where the gradient vanishes nothing is moved; an unknown line search is refused."""
    for lib in (tlc, torch):
        x = lib.nn.Parameter(lib.zeros(2))
        optimizer = lib.optim.LBFGS([x])
        calls = []

        def closure(x=x, optimizer=optimizer, calls=calls):
            optimizer.zero_grad()
            loss = (x**2).sum()
            loss.backward()
            calls.append(1)
            return loss

        optimizer.step(closure)
        assert len(calls) == 1
        assert optimizer.state[x] == {"func_evals": 1, "n_iter": 0}
        with lib.no_grad():
            x.add_(1)
        with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
            lib.optim.LBFGS([x], line_search_fn="armijo").step(closure)
