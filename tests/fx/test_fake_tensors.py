"""Tensors without values, compared with PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.fx.against_torch import expect_same, module, outcome


def _mode(lib: Any, **options: Any) -> Any:
    return module(lib, "_subclasses.fake_tensor").FakeTensorMode(**options)


def _trained(lib: Any, mode: Any) -> Any:
    layer = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.LayerNorm(4), lib.nn.GELU())
    layer(lib.randn(2, 3)).pow(2).sum().backward()
    return [layer[0].weight, layer[0].weight.grad, layer(lib.ones(5, 3))]


PROGRAMS = {
    "created": lambda t, mode: [t.ones(2), t.arange(3), t.tensor([1.5]), t.eye(2, device="meta")],
    "on a device": lambda t, mode: [t.empty(3, device="cuda:1"), t.zeros(2, device="cuda") + 1],
    "trained": _trained,
    "in place": lambda t, mode: [t.ones(2, 3).add_(1).mul_(t.ones(3))],
    "views": lambda t, mode: [t.ones(2, 3).T, t.ones(2)[1:], t.ones(4).view(2, 2).expand(3, 2, 2)],
    "from a tensor": lambda t, mode: [
        mode.from_tensor(t.zeros(2, 3).T), mode.from_tensor(t.nn.Parameter(t.zeros(2)))
    ],
    "several": lambda t, mode: [*t.ones(2, 3).max(1), *t.ones(4).split(2), t.cat([t.ones(1)] * 2)],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_fakes(name: str) -> None:
    def program(lib: Any) -> Any:
        with _mode(lib) as mode:
            found = PROGRAMS[name](lib, mode)
        return [(str(x), x.stride(), str(x.device), x.requires_grad, x.is_cpu) for x in found]

    expect_same(program)


def test_moves() -> None:  # PyTorch's needs a build for the device
    with _mode(tlc):
        x = tlc.ones(2)
        moved = [x.cuda(), x.to("cuda:1", tlc.int32), x.cuda().cpu().double(), x.to(tlc.float16)]
    assert [(str(each.device), each.dtype) for each in moved] == [
        ("cuda:0", tlc.float32),
        ("cuda:1", tlc.int32),
        ("cpu", tlc.float64),
        ("cpu", tlc.float16),
    ]


@pytest.mark.parametrize(
    "asked",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.sum() > 0),
        lambda x: int(x[0, 0]),
        lambda x: x.tolist(),
        lambda x: x.nonzero(),
        lambda x: x.numpy(),
        lambda x: x @ x,
        lambda x: x + x.cuda(),
    ],
    ids=["item", "bool", "int", "tolist", "nonzero", "numpy", "shapes", "devices"],
)
def test_what_has_no_answer(asked: Any) -> None:
    def program(lib: Any) -> Any:
        with _mode(lib):
            return asked(lib.ones(2, 3))

    assert isinstance(outcome(program, torch), str)
    expect_same(program)


@pytest.mark.parametrize("allowed", [False, True])
def test_others_among_fakes(allowed: bool) -> None:
    def program(lib: Any) -> Any:
        fake = _mode(lib, allow_non_fake_inputs=allowed).from_tensor(lib.ones(2, 3))
        return str(fake + lib.ones(3))

    expect_same(program)


def test_fakes_outside_of_the_mode() -> None:
    def program(lib: Any) -> Any:
        mode = _mode(lib)
        fake = mode.from_tensor(lib.ones(2, 3))
        is_fake = module(lib, "_subclasses.fake_tensor").is_fake
        return str(fake.exp() + 1), is_fake(fake), is_fake(lib.ones(1))

    expect_same(program)
