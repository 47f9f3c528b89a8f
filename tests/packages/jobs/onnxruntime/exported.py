"""Models exported both ways and run by onnxruntime: their outputs."""

import io

import numpy as np
import onnxruntime
import torch
from steps import step
from torch import nn


def session(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def ran(data, *inputs):
    found = session(data)
    names = [each.name for each in found.get_inputs()]
    given = {name: np.asarray(x) for name, x in zip(names, inputs)}
    return found.run(None, given)


def exported(model, inputs, **kwargs):
    buffer = io.BytesIO()
    torch.onnx.export(model.eval(), inputs, buffer, dynamo=False, **kwargs)
    return buffer.getvalue()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids):
        return self.encoder(self.embedding(ids)).mean(1)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = getattr(nn, kind)(4, 6, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


MODELS = {
    "MLP": lambda: (
        nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)),
        torch.randn(2, 4),
    ),
    "convolutional": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.ConvTranspose2d(8, 4, 2, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 2),
        ),
        torch.randn(2, 3, 8, 8),
    ),
    "upsampling": lambda: (
        nn.Sequential(
            nn.Upsample(scale_factor=2), nn.Conv2d(2, 2, 3, groups=2), nn.GroupNorm(2, 2), nn.SiLU()
        ),
        torch.randn(1, 2, 6, 6),
    ),
    "a transformer": lambda: (Attention(), torch.randint(20, (2, 5))),
    "LSTM": lambda: (Recurrent("LSTM"), torch.randn(2, 5, 4)),
    "GRU": lambda: (Recurrent("GRU"), torch.randn(2, 5, 4)),
}

for name in MODELS:

    @step(f"the exporter of traces: {name}", name)
    def _(name):
        model, x = MODELS[name]()
        return model.eval()(x), ran(exported(model, (x,)), x)

    @step(f"the exporter of programs: {name}", name)
    def _(name):
        model, x = MODELS[name]()
        torch.onnx.export(model.eval(), (x,), "model.onnx", dynamo=True)
        return model(x), ran("model.onnx", x)


@step("axes that vary, by both exporters")
def _():
    model, x = MODELS["MLP"]()
    names = {"input_names": ["x"], "output_names": ["y"]}
    traced = exported(model, (x,), dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, **names)
    torch.onnx.export(
        model,
        (x,),
        "dynamic.onnx",
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        **names,
    )
    more = torch.randn(7, 4)
    return model(more), ran(traced, more), ran("dynamic.onnx", more)


@step("the program of an exporter: saved, called")
def _():
    model, x = MODELS["MLP"]()
    program = torch.onnx.export(model.eval(), (x,), dynamo=True)
    program.save("program.onnx")
    return ran("program.onnx", x), [each.name for each in session("program.onnx").get_inputs()]


@step("several inputs and outputs, a dictionary of names, opset 17")
def _():
    class Two(nn.Module):
        def forward(self, x, y):
            return x @ y.t() * 2.0, torch.cat([x, y]).softmax(-1)

    x, y = torch.randn(3, 4), torch.randn(5, 4)
    data = exported(Two(), (x, y), opset_version=17, input_names=["x", "y"])
    return Two()(x, y), ran(data, x, y)


@step("half precision and integers")
def _():
    class Mixed(nn.Module):
        def forward(self, x, i):
            return x.half().add(1).float().index_select(0, i), (i * 2) % 3, x > 0

    x, i = torch.randn(4, 3), torch.tensor([0, 2, 3])
    return Mixed()(x, i), ran(exported(Mixed(), (x, i)), x, i)


@step("an input of another width", refused=True)
def _():
    model, x = MODELS["MLP"]()
    try:
        ran(exported(model, (x,), input_names=["x"]), torch.randn(2, 9))
    except Exception as error:
        raise type(error)(str(error).partition(" : ")[0]) from None
