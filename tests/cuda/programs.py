"""Training steps that are run with and without capture, on any device that has graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorflow_lite_clone as tlc

nn, F = tlc.nn, tlc.nn.functional


def tensor(device: str, seed: int, *shape: int) -> tlc.Tensor:
    """Normal numbers."""
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return tlc.tensor(values).to(device)


def labels(device: str, seed: int, count: int, classes: int = 3) -> tlc.Tensor:
    """Class indices."""
    return tlc.tensor(np.random.default_rng(seed).integers(0, classes, size=count)).to(device)


def network(device: str) -> nn.Module:
    """A small network with running statistics and dropout.

    There is no bias before the batch norm: its gradient would be rounding noise, which Adam blows
    up.
    """
    tlc.manual_seed(0)
    layers = nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3)
    return nn.Sequential(*layers, nn.Linear(16, 3)).to(device)


def adam(model: nn.Module) -> Any:
    """An optimizer that counts its steps."""
    return tlc.optim.AdamW(model.parameters(), lr=0.01)


def host(value: tlc.Tensor) -> np.ndarray:
    """A copy of a tensor's values."""
    return value.detach().cpu().numpy().copy()


def state_of(model: nn.Module) -> dict[str, np.ndarray]:
    """Parameters, buffers and gradients."""
    found = {name: host(value) for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[f"{name}.grad"] = host(parameter.grad)
    return found


def assert_same(one: dict, other: dict, rtol: float = 2e-4, atol: float = 2e-6) -> None:
    """Assert that two states are equal up to rounding."""
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, atol=atol, err_msg=name)


def plain(model: nn.Module, optimizer: Any) -> Callable[..., tlc.Tensor]:
    """The usual training step."""

    def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def in_place(model: nn.Module, optimizer: Any) -> Callable[..., tlc.Tensor]:
    """Gradients that are clipped, and set to zero in their own memory."""

    def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return loss

    return step


def zero_last(model: nn.Module, optimizer: Any) -> Callable[..., tlc.Tensor]:
    """No gradients are left."""

    def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        return loss

    return step


def step_first(model: nn.Module, optimizer: Any) -> Callable[..., tlc.Tensor]:
    """Each call uses the gradients of the call before."""

    def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        optimizer.step()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return step


def seed(device: str, value: int) -> None:
    """Seed the device's generator."""
    from tensorflow_lite_clone import backends

    backends.load(device).generator.manual_seed(value)


def trained(
    device: str,
    make: Callable[..., Any],
    steps: int,
    compiled: bool,
    batch: Callable[[int], int] = lambda i: 8,
    fullgraph: bool = True,
) -> tuple[list[float], dict[str, np.ndarray], Any, nn.Module]:
    """Losses and final state after so many steps of ``make(model, optimizer)``."""
    model = network(device)
    step = make(model, adam(model))
    if compiled:
        step = tlc.compile(step, fullgraph=fullgraph)
    seed(device, 1)
    losses = []
    for i in range(steps):
        count = batch(i)
        losses.append(step(tensor(device, i, count, 6), labels(device, i, count)).item())
    return losses, state_of(model), step, model


def accumulated(device: str, compiled: bool) -> dict[str, np.ndarray]:
    """The state after backward passes that accumulate, with an optimizer outside."""
    model = network(device)
    optimizer = adam(model)

    def accumulate(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach()

    step = tlc.compile(accumulate, fullgraph=True) if compiled else accumulate
    seed(device, 1)
    for i in range(30):
        step(tensor(device, i, 8, 6), labels(device, i, 8))
        if i % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    step(tensor(device, 99, 8, 6), labels(device, 99, 8))
    return state_of(model)


def called(device: str, compiled: bool) -> tuple[list[float], dict[str, np.ndarray]]:
    """Losses and state with a compiled module, its loss and optimizer outside."""
    model = network(device)
    optimizer = adam(model)
    call = tlc.compile(model, fullgraph=True) if compiled else model
    seed(device, 1)
    losses = []
    for i in range(20):
        loss = F.cross_entropy(call(tensor(device, i, 8, 6)), labels(device, i, 8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    call.eval()
    with tlc.no_grad():
        for i in range(4):
            losses.append(call(tensor(device, i, 8, 6)).sum().item())
    return losses, state_of(model)
