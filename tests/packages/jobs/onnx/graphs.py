"""Exported graphs as onnx reads them: checked, inferred, evaluated, changed."""

import io

import numpy as np
import onnx
import torch
from onnx import checker, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator
from steps import step
from torch import nn


def exported(model, inputs, **kwargs):
    buffer = io.BytesIO()
    torch.onnx.export(model.eval(), inputs, buffer, dynamo=False, **kwargs)
    return onnx.load_from_string(buffer.getvalue())


def network():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))


@step("a graph checked, its weights, inputs and outputs")
def _():
    model = network()
    found = exported(model, (torch.ones(1, 1, 4, 4),), input_names=["x"], output_names=["y"])
    checker.check_model(found, full_check=True)
    weights = {each.name: numpy_helper.to_array(each) for each in found.graph.initializer}
    return (
        {name: weights[name] for name in model.state_dict()},
        [each.name for each in found.graph.input],
        [each.name for each in found.graph.output],
        [each.op_type for each in found.graph.node if each.op_type in ("Conv", "Relu", "Gemm")],
    )


@step("a graph run by onnx's own evaluator")
def _():
    model, x = network(), torch.randn(1, 1, 4, 4)
    found = exported(model, (x,), input_names=["x"])
    return model(x), ReferenceEvaluator(found).run(None, {"x": x.numpy()})


@step("shapes inferred; axes that vary")
def _():
    found = exported(
        network(), (torch.ones(1, 1, 4, 4),), input_names=["x"], dynamic_axes={"x": {0: "batch"}}
    )
    inferred = shape_inference.infer_shapes(found)
    dims = inferred.graph.input[0].type.tensor_type.shape.dim
    return [each.dim_param or each.dim_value for each in dims]


@step("saved with weights beside it, loaded, a weight changed")
def _():
    found, x = exported(nn.Linear(4, 2), (torch.ones(1, 4),), input_names=["x"]), np.ones((1, 4))
    onnx.save_model(
        found, "model.onnx", save_as_external_data=True, location="weights", size_threshold=0
    )
    again = onnx.load("model.onnx")
    before = ReferenceEvaluator(again).run(None, {"x": x.astype(np.float32)})
    weight = again.graph.initializer[0]
    changed = numpy_helper.from_array(numpy_helper.to_array(weight) * 2, weight.name)
    weight.CopyFrom(changed)
    return before, ReferenceEvaluator(again).run(None, {"x": x.astype(np.float32)})


@step("the exporter of programs, checked and evaluated")
def _():
    model, x = network().eval(), torch.randn(1, 1, 4, 4)
    torch.onnx.export(model, (x,), "model.onnx", dynamo=True, input_names=["x"])
    found = onnx.load("model.onnx")
    checker.check_model(found)
    return model(x), ReferenceEvaluator(found).run(None, {"x": x.numpy()})


@step("conversion to another version of the operators")
def _():
    from onnx import version_converter

    model, x = nn.Linear(4, 2), torch.ones(1, 4)
    found = exported(model, (x,), opset_version=13, input_names=["x"])
    newer = version_converter.convert_version(found, 16)
    return newer.opset_import[0].version, ReferenceEvaluator(newer).run(None, {"x": x.numpy()})


@step("a tensor as a protobuf and back")
def _():
    x = torch.randn(2, 3)
    found = numpy_helper.from_array(x.numpy(), "x")
    return torch.from_numpy(numpy_helper.to_array(found).copy()), x


@step("a damaged file", refused=True)
def _():
    with open("bad.onnx", "wb") as file:
        file.write(b"\x08\x99nothing")
    checker.check_model("bad.onnx")
