"""Exported programs as ONNX models."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as torch
from tests.export.compare import assert_close, exported
from tests.export.programs import PROGRAMS

onnx = pytest.importorskip("onnx", reason="the exporter writes by the package onnx")


@pytest.mark.parametrize("name", ["dynamic_batch", "resnet18", "encoder_layer", "gpt_block"])
def test_programs_as_models(name: str) -> None:
    program = PROGRAMS[name](torch)
    found = exported(torch, program)
    model = torch.onnx.export(found, verbose=False)
    assert model.exported_program is found
    inputs = [value.name for value in model.model_proto.graph.input]
    assert inputs == [
        n.name for n in found.graph.nodes if n.name in found.graph_signature.user_inputs
    ]
    outputs = [value.name for value in model.model_proto.graph.output]
    assert outputs == list(found.graph_signature.user_outputs)
    weights = {tensor.name for tensor in model.model_proto.graph.initializer}
    assert weights & set(found.state_dict)
    for args in (program.args, *program.others):
        assert_close(model.call_reference(*args), found.module()(*args))


def test_dynamic_dimensions() -> None:
    program = PROGRAMS["dynamic_batch"](torch)
    model = torch.onnx.export(exported(torch, program))
    (value,) = model.model_proto.graph.input
    first, second = value.type.tensor_type.shape.dim
    assert (bool(first.dim_param), second.dim_value) == (True, 3)
