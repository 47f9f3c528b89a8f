"""Modules on the meta device: outputs, states and gradients have the geometry of the CPU's."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.test_every_module import RUNNING, Inputs, made, tensors
from tests.ops.test_meta import geometry

_ITEM = "Tensor.item() cannot be called on meta tensors"
#: Modules that ask for values: what is raised, as in PyTorch.
REFUSED = (
    ("AdaptiveLogSoftmaxWithLoss", NotImplementedError, "aten::nonzero"),
    ("BatchNorm1d(4, momentum=None", RuntimeError, re.escape(_ITEM)),
    ("CTCLoss", NotImplementedError, "aten::_ctc_loss.Tensor"),
)
IN_TRAINING = {"BatchNorm1d(4, momentum=None"}  # alone


class On(Inputs):
    """Inputs on a device."""

    def __init__(self, device: str) -> None:
        super().__init__(tlc)
        self.device = device

    def tensor(self, values: Any) -> Any:
        return tlc.tensor(values, device=self.device)


def seen(text: str, inputs: str, device: str, training: bool) -> list[Any]:
    module = made(text, tlc).to(device).train(training)
    given = On(device)
    outputs = list(tensors(tlc, module(*given.read(inputs))))
    differentiable = [y for y in outputs if y.requires_grad]
    if differentiable:
        tlc.autograd.backward(differentiable, [tlc.ones_like(y) for y in differentiable])
    leaves = [*module.parameters(), *given.leaves]
    gradients = [None if x.grad is None else geometry(x.grad) for x in leaves]
    state = {name: geometry(value) for name, value in module.state_dict().items()}
    return [[geometry(y) for y in outputs], gradients, state]


@pytest.mark.parametrize("training", (True, False), ids=("train", "eval"))
@pytest.mark.parametrize(("text", "inputs"), RUNNING, ids=[row[0] for row in RUNNING])
def test_module(text: str, inputs: str, training: bool) -> None:
    for row, kind, words in REFUSED:
        if text.startswith(row) and (training or row not in IN_TRAINING):
            with pytest.raises(kind, match=words):
                seen(text, inputs, "meta", training)
            return
    assert seen(text, inputs, "meta", training) == seen(text, inputs, "cpu", training)
