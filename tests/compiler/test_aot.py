"""Graphs of aten's operations that compilers of forward and backward passes are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo.backends.common
import torch._functorch.aot_autograd

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone._dynamo.backends.common
import tensorflow_lite_clone._functorch.aot_autograd
from tensorflow_lite_clone import nn
from tensorflow_lite_clone._functorch.partitioners import default_partition


def perceptron(module: Any) -> Any:
    module.manual_seed(0)
    layers = module.nn.Linear(3, 4), module.nn.ReLU(), module.nn.Linear(4, 2)
    return module.nn.Sequential(*layers)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "perceptron": perceptron,
    "pointwise": lambda module: lambda x: (x.sin() + x, x.shape[0]),
    "several results": lambda module: lambda x: {"a": x.exp(), "b": [x * 2, x.detach()]},
    "sum": lambda module: lambda x: module.tanh(x * 2).sum(),
}


class Record:
    """Which operations the forward and the backward graph of a program have, and what it gives."""

    def __init__(self, module: Any, name: str, wants: bool) -> None:
        self.graphs: list[list[str]] = []
        self.inputs: list[list[tuple]] = []
        module._dynamo.reset()
        make_boxed = module._functorch.aot_autograd.make_boxed_func

        def compiler(graph_module: Any, example_inputs: list[Any]) -> Any:
            nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
            self.graphs.append(sorted([str(node.target) for node in nodes]))
            names = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
            self.inputs.append(list(zip(names, [tuple(x.shape) for x in example_inputs])))
            return make_boxed(graph_module.forward)

        backend = module._dynamo.backends.common.aot_autograd(fw_compiler=compiler)
        compiled = module.compile(PROGRAMS[name](module), backend=backend)
        module.manual_seed(1)
        x = module.randn(3, 3, requires_grad=wants)
        result = compiled(x)
        leaves = module.utils._pytree.tree_leaves(result)
        self.values = [leaf for leaf in leaves if isinstance(leaf, module.Tensor)]
        wanted = [leaf for leaf in self.values if leaf.requires_grad]
        if wanted:
            module.autograd.backward(wanted, [module.ones_like(leaf) for leaf in wanted])
        if x.grad is not None:
            self.values.append(x.grad)


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_are_those_of_pytorch(name: str, wants: bool) -> None:
    ours, theirs = Record(tlc, name, wants), Record(torch, name, wants)
    for one, other in zip(ours.values, theirs.values, strict=True):
        assert one.requires_grad == other.requires_grad
        np.testing.assert_allclose(
            one.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6
        )
    without = ["aten.detach.default"]  # of what is saved
    assert [[op for op in ops if op not in without] for ops in ours.graphs] == [
        [op for op in ops if op not in without] for ops in theirs.graphs
    ]
    assert ours.inputs[0] == theirs.inputs[0]


def test_a_training_loop() -> None:
    losses = []
    for compiled in (False, True):
        tlc.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Dropout(0.2))
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.1)
        found: Any = tlc.compile(model, backend="aot_eager") if compiled else model
        losses.append([])
        for _ in range(3):
            optimizer.zero_grad()
            loss = found(tlc.randn(4, 1, 5, 5)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
        losses[-1] += [model[1].running_mean.tolist(), model[1].num_batches_tracked.item()]
    np.testing.assert_allclose(losses[0][:3], losses[1][:3], rtol=1e-5)
    np.testing.assert_allclose(losses[0][3], losses[1][3], rtol=1e-5)
    assert losses[0][4] == losses[1][4] == 3


def test_a_function_and_a_partition() -> None:
    parted: list[int] = []

    def partition(module: Any, inputs: Any, *, num_fwd_outputs: int) -> Any:
        parted.append(num_fwd_outputs)
        return default_partition(module, inputs, num_fwd_outputs=num_fwd_outputs)

    compiled = tlc._functorch.aot_autograd.aot_function(
        lambda x, scale: {"y": x * scale["by"]},
        fw_compiler=lambda module, inputs: module.forward,
        bw_compiler=tlc._functorch.aot_autograd.make_boxed_compiler(
            lambda module, inputs: module.forward
        ),
        partition_fn=partition,
    )
    x = tlc.ones(2, requires_grad=True)
    for _ in range(2):
        x.grad = None
        y = compiled(x, {"by": tlc.full((2,), 3.0)})["y"]
        y.sum().backward()
        assert (y.tolist(), x.grad.tolist()) == ([3.0, 3.0], [3.0, 3.0])
    assert parted == [1]
