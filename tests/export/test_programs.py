"""Programs exported here and by PyTorch: graphs, signatures, numbers, files, decompositions."""

from __future__ import annotations

import copy
import io

import pytest
import torch as oracle

import tensorflow_lite_clone as torch
from tests.export.compare import (
    assert_close,
    calls,
    converted,
    oracle_program,
    our_decomposed,
    our_program,
)
from tests.export.programs import PROGRAMS

pytestmark = [
    pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*enable_nested_tensor:UserWarning"),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_are_those_of_pytorch(name: str) -> None:
    _, expected = oracle_program(name)
    _, found = our_program(name)
    assert calls(found.graph) == calls(expected.graph)
    assert str(found.graph_signature) == str(expected.graph_signature)
    assert str(found.range_constraints) == str(expected.range_constraints)
    assert list(found.state_dict) == list(expected.state_dict)
    assert set(found.constants) == set(expected.constants)
    found.validate()


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_run_as_those_of_pytorch(name: str) -> None:
    theirs, expected = oracle_program(name)
    program, found = our_program(name)
    file = io.BytesIO()
    torch.export.save(found, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert str(loaded) == str(found)
    reference = copy.deepcopy(expected).module()
    result = reference(*theirs.args, **theirs.kwargs)
    own = [copy.deepcopy(each) for each in (found, our_decomposed(name))]  # they write to buffers
    modules = [each.module() for each in (*own, loaded)]
    for module in modules:
        assert_close(module(*program.args, **program.kwargs), result)
        for key, value in reference.state_dict().items():
            assert_close(module.state_dict()[key], value)
    for args, other in zip(program.others, theirs.others):
        result = reference(*other)
        for module in modules:
            assert_close(module(*args), result)


@pytest.mark.parametrize(
    "name",
    ["mlp", "resnet18_in_training", "encoder_layer", "vision_transformer", "tied_parameters"],
)
def test_decompositions_are_those_of_pytorch(name: str) -> None:
    expected = copy.deepcopy(oracle_program(name)[1]).run_decompositions()
    found = our_decomposed(name)
    assert calls(found.graph) == calls(expected.graph)
    assert str(found.graph_signature) == str(expected.graph_signature)


def test_gradients_go_through_exported_modules() -> None:
    expected = copy.deepcopy(oracle_program("mlp")[1]).module()
    found = copy.deepcopy(our_program("mlp")[1]).module()
    x = oracle.linspace(-1, 1, 15).view(5, 3)
    expected(x).sum().backward()
    found(converted(x)).sum().backward()
    for (_, one), (_, two) in zip(found.named_parameters(), expected.named_parameters()):
        assert_close(one.grad, two.grad)
