"""Optimizers and loss scaling with sparse gradients, as in PyTorch: steps, states, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.sparse.against_torch import LIBRARIES, described, device_of, outcome, same

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of beta state


def table_of(lib: Any) -> Any:
    return lib.nn.Parameter((lib.arange(12.0) / 8).reshape(6, 2).to(device_of(lib)))


def differentiate(lib: Any, table: Any, rows: list[int], scale: float = 1.0) -> None:
    index = lib.tensor(rows, device=device_of(lib))
    (lib.nn.functional.embedding(index, table, sparse=True).pow(2).sum() * scale).backward()


def stepped(name: str, options: dict[str, Any]) -> Any:
    """Values and state after some steps, and after the state went through its dictionary."""

    def run(lib: Any) -> Any:
        table = table_of(lib)
        optimizer = getattr(lib.optim, name)([table], **options)
        for rows in ([5, 1, 1], [0, 5, 2], [1, 1, 1], []):
            optimizer.zero_grad()
            differentiate(lib, table, rows)
            optimizer.step()
        other = getattr(lib.optim, name)([table], **options)
        other.load_state_dict(optimizer.state_dict())
        differentiate(lib, table, [3, 1])
        other.step()
        state = {key: described(value, lib) for key, value in other.state[table].items()}
        return described(table, lib), sorted(state), [state[key] for key in sorted(state)]

    return run


CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "fused": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 0.1}),
    ("Adagrad", {"lr": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "betas": (0.5, 0.6), "eps": 0.1, "maximize": True}),
    *[
        (name, {})
        for name in "Adam AdamW NAdam RAdam Adamax RMSprop Rprop Adadelta ASGD Adafactor".split()
    ],
    ("Muon", {}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: str(value))
def test_steps(name: str, options: dict[str, Any]) -> None:
    mine, reference = (outcome(lib, stepped(name, options)) for lib in LIBRARIES)
    same(mine, reference, 1e-5)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "SparseAdam"])
def test_messages(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        table = table_of(lib)
        differentiate(lib, table, [1])
        other = lib.nn.Parameter(lib.ones(2, device=device_of(lib)))
        other.grad = lib.ones(2, device=device_of(lib))
        optimizer = getattr(lib.optim, name)([other, table])
        with pytest.raises(RuntimeError) as caught:
            optimizer.step()
        found.append((str(caught.value), other.tolist(), table.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_dense_and_sparse_gradients(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        table = table_of(lib)
        other = lib.nn.Parameter(lib.ones(2, device=device_of(lib)))
        optimizer = getattr(lib.optim, name)([other, table], lr=0.1)
        for rows in ([1, 1], [2]):
            optimizer.zero_grad()
            differentiate(lib, table, rows)
            other.pow(2).sum().backward()
            optimizer.step()
        found.append((other.tolist(), table.tolist()))
    same(found[0], found[1])


def test_lbfgs() -> None:
    """It makes one dense vector of all gradients."""

    def run(lib: Any) -> Any:
        table = table_of(lib)
        optimizer = lib.optim.LBFGS([table], lr=0.1, max_iter=3)

        def closure() -> Any:
            optimizer.zero_grad()
            index = lib.tensor([1, 3, 3], device=device_of(lib))
            rows = lib.nn.functional.embedding(index, table, sparse=True)
            loss = (rows - 3).pow(2).sum()
            loss.backward()
            return loss

        return optimizer.step(closure).item(), described(table, lib)

    same(run(tlc), run(torch))


@pytest.mark.parametrize("scale", [1.0, math.inf])
def test_loss_scaling(scale: float) -> None:
    """Gradients are unscaled in their places; steps with infinite ones are left out."""

    def run(lib: Any) -> Any:
        table, place = table_of(lib), device_of(lib)
        scaler = lib.amp.GradScaler(place, init_scale=4.0)
        optimizer = lib.optim.SGD([table], lr=0.1)
        scaler.scale(lib.ones(1, device=place))
        differentiate(lib, table, [5, 1, 1], scale)
        scaler.unscale_(optimizer)
        g = described(table.grad, lib)
        scaler.step(optimizer)
        scaler.update()
        return g, described(table, lib), scaler.get_scale()

    mine, reference = (run(lib) for lib in LIBRARIES)
    same(mine, reference)


def test_two_bytes_are_unscaled_once_they_are_coalesced() -> None:
    """Two finite elements at one place may sum to infinity."""
    table = tlc.nn.Parameter(tlc.ones(2, 1, dtype=tlc.float16, device=device_of(tlc)))
    table.grad = tlc.sparse_coo_tensor(
        [[0, 0]], [[6e4], [6e4]], (2, 1), dtype=tlc.float16, device=device_of(tlc)
    )
    scaler = tlc.amp.GradScaler(device_of(tlc), init_scale=2.0)
    scaler.scale(tlc.ones(1, device=device_of(tlc)))
    optimizer = tlc.optim.SGD([table], lr=0.1)
    scaler._unscale(optimizer, allow_half=True)
    assert [flag.item() for flag in scaler._found[id(optimizer)]] == [1.0]
