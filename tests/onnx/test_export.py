"""The interface: names, files, modes, sizes, errors."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch as oracle

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.onnx import errors
from tests.device import DEVICE
from tests.onnx.run import check, compare, export, host, kinds, names, onnx, saved, session


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.bn = nn.BatchNorm1d(4)
        self.fc2 = nn.Linear(4, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, scale=None, flag=True):
        y = self.fc2(self.drop(torch.relu(self.bn(self.fc1(x)))))
        return y * scale if flag and scale is not None else y


def line(n: int = 2) -> torch.Tensor:
    return torch.randn(n, 3, device=DEVICE)


def shapes(values) -> list:
    return [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values]


def outputs(proto) -> list[str]:
    return [value.name for value in proto.graph.output]


def test_names_and_shapes() -> None:
    proto = export(Small(), line())
    assert names(proto) == ["x"]
    assert outputs(proto) == ["linear"]
    proto = export(Small(), line(), input_names=["in"], output_names=["out"],
                   dynamic_axes={"in": {0: "batch"}, "out": {0: "batch"}})  # fmt: skip
    assert names(proto) == ["in"]
    assert outputs(proto) == ["out"]
    assert shapes(proto.graph.input) == [["batch", 3]]
    assert shapes(proto.graph.output) == [["batch", 2]]
    state = Small().state_dict()
    found = {t.name: list(t.dims) for t in proto.graph.initializer}
    del state["bn.num_batches_tracked"]
    assert found == {name: list(value.shape) for name, value in state.items()}


def test_keywords_and_nested_arguments() -> None:
    x, scale = line(), torch.randn(2, device=DEVICE)
    model = Small().to(DEVICE).eval()
    proto = export(model, x, kwargs={"scale": scale})
    assert names(proto) == ["x", "scale"]
    compare(proto, model, x, scale)
    assert names(export(model, x, {"scale": scale})) == ["x", "scale"]

    def nested(pair, table):
        return {"sum": pair[0] + pair[1], "more": [table["a"] * 2, None, table["a"]]}

    proto = export(nested, (x, x), {"a": x}, {})
    assert names(proto) == ["pair_0", "pair_1", "table_a"]
    assert outputs(proto) == ["add", "mul", "output"]
    compare(proto, nested, (x, x + 1), {"a": x})


def test_files(tmp_path: Path) -> None:
    model, x = Small().to(DEVICE), line()
    program = torch.onnx.export(model, x, tmp_path / "a.onnx")
    assert torch.onnx.export(model, (x,), str(tmp_path / "b.onnx"), dynamo=False) is None
    for name in ("a", "b"):
        proto = onnx.load(tmp_path / f"{name}.onnx")
        compare(proto, model.eval(), x)
    assert saved(model, x) == program.model_proto.SerializeToString()
    large = nn.Linear(64, 64).to(DEVICE)
    for _ in range(2):  # a second one replaces the weights' file
        torch.onnx.export(large, torch.randn(1, 64, device=DEVICE), tmp_path / "c.onnx")
    assert (tmp_path / "c.onnx.data").stat().st_size == 64 * 64 * 4
    compare(onnx.load(tmp_path / "c.onnx"), large, torch.randn(1, 64, device=DEVICE))
    torch.onnx.export(
        large, torch.randn(1, 64, device=DEVICE), tmp_path / "d.onnx", external_data=False
    )
    assert not (tmp_path / "d.onnx.data").exists()


def test_a_program_runs() -> None:
    model, x = Small().to(DEVICE), line()
    program = torch.onnx.export(model, x, verify=True)
    wanted = model.eval()(x)
    for found in (program(x), program.call_reference(x)):
        torch.testing.assert_close(found[0], wanted.cpu(), rtol=1e-4, atol=1e-5)
    other = Small().to(DEVICE).eval()
    program.apply_weights(other.state_dict())
    torch.testing.assert_close(program(x)[0], other(x).cpu(), rtol=1e-4, atol=1e-5)
    assert repr(program) == "ONNXProgram(inputs=['x'], outputs=['linear'], nodes=4)"
    program.release()


def test_weights_as_inputs() -> None:
    proto = export(Small(), line(), keep_initializers_as_inputs=True)
    assert names(proto) == ["x"]
    assert "fc1.weight" in [value.name for value in proto.graph.input]
    proto = export(Small(), line(), export_params=False)
    assert names(proto)[:2] == ["x", "fc1.weight"]
    buffer = io.BytesIO()
    torch.onnx.export(Small().to(DEVICE), line()).save(buffer, include_initializers=False)
    assert not onnx.load_from_string(buffer.getvalue()).graph.initializer


def test_modes() -> None:
    mode = torch.onnx.TrainingMode
    model, x = Small().to(DEVICE), line(64)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.fc2.eval()
    assert "Dropout" not in kinds(export(model, x))
    proto = export(model, x, training=mode.TRAINING)
    assert {"Dropout", "ReduceMean"} <= kinds(proto)
    found = session(proto).run(None, {"x": host(x)})[0]
    assert found.shape == (64, 2)
    assert model.training
    assert not model.fc2.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    model.drop.p = 0
    model.train()
    compare(export(model, x, training=mode.PRESERVE), model, x)


def test_versions_of_operators() -> None:
    for version in (18, 19, 21, 23):
        proto = check(nn.Sequential(nn.Linear(3, 3), nn.GELU()), line(), opset_version=version)
        assert proto.opset_import[0].version == version
    with pytest.raises(ValueError, match="above 23"):
        export(Small(), line(), opset_version=99)


def test_older_operators() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.OnnxExporterWarning)
        proto = export(nn.Linear(3, 3), line(), opset_version=13)
    assert proto.opset_import[0].version == 13


def test_exporting_is_known() -> None:
    seen = []

    def model(x):
        seen.append(torch.onnx.is_in_onnx_export())
        return x + 1

    export(model, line())
    assert all(seen)
    assert not torch.onnx.is_in_onnx_export()


def test_shapes_in_arithmetic() -> None:
    def model(x):
        B, T = x.shape
        mean = x.sum(0) / B
        grown = torch.ones(B, 2 * T + 1, device=x.device) * mean.mean()
        ramp = torch.arange(T, device=x.device) * 2
        return grown, x.reshape(B * T, 1), ramp + x, x.repeat(2, 1).view(2, B, T), x.new_zeros(T, B)

    axes = {"x": {0: "batch", 1: "time"}}
    proto = check(model, line(4), more=[(torch.randn(2, 7, device=DEVICE),)], dynamic_axes=axes)
    assert shapes(proto.graph.output)[:2] == [["batch", "2*time + 1"], ["batch*time", 1]]


def test_padding_of_dynamic_sizes() -> None:
    def model(x):
        modes = ("reflect", "circular", "replicate", "constant")
        padded = [nn.functional.pad(x, (1, 2, 3, 0), mode=mode) for mode in modes]
        return *padded, nn.functional.pad(x, (2, -1)), nn.functional.pad(x[0], (0, 3), "reflect")

    axes = {"x": {2: "height", 3: "width"}}
    more = [(torch.randn(1, 2, *size, device=DEVICE),) for size in ((5, 9), (11, 4), (4, 4))]
    proto = check(model, torch.randn(1, 2, 6, 7, device=DEVICE), more=more, dynamic_axes=axes)
    for output in shapes(proto.graph.output)[:4]:
        assert output == [1, 2, "height + 3", "width + 3"]


def test_numbers_that_follow_from_a_dynamic_size() -> None:
    x, wider = [torch.rand(1, 2, 6, width, device=DEVICE) for width in (7, 9)]
    check(lambda x: x.clamp(max=x.shape[3]), x * 20, more=[(wider * 20,)], dynamic_axes={"x": [3]})
    with pytest.raises(errors.OnnxExporterError, match="a number that an op is given depends"):
        attention = nn.functional.scaled_dot_product_attention
        export(lambda x: attention(x, x, x), x, dynamic_axes={"x": [3]})


def test_shifts() -> None:
    for dtype, bits in ((torch.int8, 8), (torch.int32, 32), (torch.int64, 64), (torch.uint8, 8)):
        limits = torch.iinfo(dtype)
        x = torch.tensor([0, 1, 5, 100, limits.max, limits.min, limits.min // 3], dtype=dtype)
        places = torch.tensor([[0], [1], [3], [bits - 1]], dtype=dtype)
        check(lambda x, y: (x << y, x >> y), x.to(DEVICE), places.to(DEVICE))


def test_dynamic_shapes_in_the_arguments_structure() -> None:
    class Dim:
        __name__ = "n"

    def model(x, pair):
        return x @ pair[0] + pair[1]

    x, y, z = torch.randn(2, 3), torch.randn(3, 4), torch.randn(4)
    args = (x.to(DEVICE), (y.to(DEVICE), z.to(DEVICE)))
    for spec in ({"x": {0: Dim()}, "pair": [None, None]}, ({0: "n"}, (None, {}))):
        proto = export(model, *args, dynamic_shapes=spec)
        assert shapes(proto.graph.input) == [["n", 3], [3, 4], [4]]
    proto = export(model, *args, dynamic_shapes=[("m", None), ((None, "k"), ("k",))])
    assert shapes(proto.graph.input) == [["m", 3], [3, "k"], ["k"]]
    assert shapes(proto.graph.output) == [["m", "k"]]


def test_a_dimension_of_two_inputs() -> None:
    axes = {"x": {0: "n"}, "y": {0: "n"}}
    with pytest.raises(ValueError, match="'n' has size 2 and 3"):
        export(lambda x, y: (x, y), line(2), line(3), dynamic_axes=axes)


def test_an_op_without_a_rule() -> None:
    with pytest.raises(errors.UnsupportedOperatorError, match="'inv' has no rule"):
        export(torch.linalg.inv, torch.randn(3, 3, device=DEVICE))
    with pytest.raises(torch.onnx.OnnxExporterError, match="complex"):
        export(lambda x: (x * 1j).real, line())
    with pytest.raises(errors.UnsupportedOperatorError, match="under vmap"):
        export(torch.vmap(lambda row: row.sin()), line(), input_names=["x"])
    assert issubclass(errors.UnsupportedOperatorError, RuntimeError)
    assert issubclass(oracle.onnx.errors.UnsupportedOperatorError, RuntimeError)


def test_export_freezes_value_dependent_branches() -> None:
    def branches(x):
        return x + 1 if x[0, 0] > 0 else x - 1

    def reads(x):
        return x * float(x.flatten()[0])

    x = torch.tensor([[1.0, 2.0, -3.0]], device=DEVICE)
    for model in (branches, reads):
        with pytest.warns(errors.OnnxExporterWarning, match="depends on the inputs' values"):
            proto = export(model, x)
        compare(proto, model, x)


def test_control_flow_that_sizes_decide() -> None:
    def model(x):
        return x + 1 if x.shape[0] == 2 else x.exp()

    compare(export(model, line()), model, line())
    with pytest.raises(torch.onnx.OnnxExporterError, match="other ops when the size"):
        export(model, line(), dynamic_axes={"x": [0]})


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"input names provided \(2\) exceeded"):
        export(nn.Linear(3, 3), line(), input_names=["a", "b"])
    with pytest.raises(ValueError, match=r"output names provided \(2\) exceeded"):
        export(nn.Linear(3, 3), line(), output_names=["a", "b"])
    with pytest.raises(TypeError, match="missing a required argument"):
        export(nn.Linear(3, 3))
    with pytest.raises(torch.onnx.OnnxExporterError, match="no tensors"):
        export(lambda x: x.shape, line())


def test_constants_and_unused_inputs() -> None:
    def model(x, y):
        return x, torch.arange(3, device=x.device), x

    proto = export(model, line(), line())
    assert names(proto) == ["x", "y"]
    compare(proto, model, line(), line())


def test_half_precision_and_integers() -> None:
    check(lambda x: x.half().relu(), line())
    check(lambda x: (x // 2, x % 3, -x, x.float() / 2, x > 1), torch.tensor([5, -7], device=DEVICE))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        torch.onnx.export(nn.Linear(3, 3), line())


def test_enumerations_are_pytorchs() -> None:
    for name in ("TrainingMode", "OperatorExportTypes", "TensorProtoDataType"):
        wanted = getattr(oracle.onnx, name).__members__
        found = getattr(torch.onnx, name).__members__
        assert {key: int(value) for key, value in found.items()} == {
            key: int(value) for key, value in wanted.items()
        }


def test_shapes_as_tensors() -> None:
    shape = torch.onnx.operators.shape_as_tensor(torch.zeros(2, 3))
    assert shape.dtype is torch.int64
    assert torch.onnx.operators.reshape_from_tensor_shape(torch.zeros(3, 2), shape).shape == (2, 3)
    assert np.array_equal(shape.numpy(), [2, 3])
