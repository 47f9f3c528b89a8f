"""Programs exported here and by PyTorch: graphs, signatures, numbers, files, decompositions."""

from __future__ import annotations

import io

import pytest
import torch as oracle

import tensorflow_lite_clone as torch
from tests.export.compare import assert_close, both, calls, converted, exported
from tests.export.programs import PROGRAMS

pytestmark = [
    pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*enable_nested_tensor:UserWarning"),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_are_those_of_pytorch(name: str) -> None:
    theirs, ours = both(PROGRAMS[name])
    expected, found = exported(oracle, theirs), exported(torch, ours)
    assert calls(found.graph) == calls(expected.graph)
    assert str(found.graph_signature) == str(expected.graph_signature)
    assert str(found.range_constraints) == str(expected.range_constraints)
    assert list(found.state_dict) == list(expected.state_dict)
    assert set(found.constants) == set(expected.constants)
    found.validate()


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_run_as_those_of_pytorch(name: str) -> None:
    theirs, ours = both(PROGRAMS[name])
    expected, found = exported(oracle, theirs), exported(torch, ours)
    file = io.BytesIO()
    torch.export.save(found, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert str(loaded) == str(found)
    modules = [found.module(), found.run_decompositions().module(), loaded.module()]
    reference = expected.module()
    result = reference(*theirs.args, **theirs.kwargs)
    for module in modules[1:] + modules[:1]:  # the first shares buffers with the original
        assert_close(module(*ours.args, **ours.kwargs), result)
    for args, other in zip(ours.others, theirs.others):
        result = reference(*other)
        for module in modules:
            assert_close(module(*args), result)
    for key, value in reference.state_dict().items():
        assert_close(modules[0].state_dict()[key], value)


@pytest.mark.parametrize("name", ["mlp", "resnet18", "resnet18_in_training", "encoder_layer",
                                  "vision_transformer", "bert_block"])  # fmt: skip
def test_decompositions_are_those_of_pytorch(name: str) -> None:
    theirs, ours = both(PROGRAMS[name])
    theirs = exported(oracle, theirs).run_decompositions()
    found = exported(torch, ours).run_decompositions()
    assert calls(found.graph) == calls(theirs.graph)
    assert str(found.graph_signature) == str(theirs.graph_signature)


def test_gradients_go_through_exported_modules() -> None:
    theirs, ours = both(PROGRAMS["mlp"])
    expected, found = exported(oracle, theirs).module(), exported(torch, ours).module()
    x = oracle.linspace(-1, 1, 15).view(5, 3)
    expected(x).sum().backward()
    found(converted(x)).sum().backward()
    for (name, one), (_, two) in zip(found.named_parameters(), expected.named_parameters()):
        assert_close(one.grad, two.grad), name
