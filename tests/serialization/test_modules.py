"""Whole modules and optimizers, which only `weights_only=False` loads, from and to PyTorch."""

from __future__ import annotations

import inspect
import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.serialization._names import find, full_name, name_of
from tests.device import DEVICE
from tests.serialization.table import filled

LIBRARIES = {"here": tlc, "pytorch": torch}

MODULES = """
    nn.Linear(3, 2): 4, 3
    nn.Bilinear(2, 3, 2).eval():
    nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.BatchNorm1d(3), nn.Softmax(1)): 4, 3
    nn.Sequential(OrderedDict([('a', nn.Linear(3, 2)), ('b', nn.GELU())])): 4, 3
    nn.Conv2d(1, 2, 3, padding=1): 2, 1, 4, 4
    nn.Conv1d(1, 1, 3, padding=1, padding_mode='circular'): 1, 1, 5
    nn.Conv1d(1, 1, 3, padding='same', padding_mode='reflect'): 1, 1, 5
    nn.ConvTranspose2d(1, 2, 3): 1, 1, 4, 4
    nn.LSTM(2, 3, num_layers=2, bidirectional=True): 4, 1, 2
    nn.GRU(2, 3): 4, 1, 2
    nn.RNN(2, 3): 4, 1, 2
    nn.LSTMCell(2, 3):
    nn.TransformerEncoderLayer(4, 2, 8).eval(): 3, 1, 4
    nn.TransformerDecoderLayer(4, 2, 8, activation='gelu').eval():
    nn.MultiheadAttention(4, 2):
    nn.LayerNorm(4): 2, 4
    nn.RMSNorm(4): 2, 4
    nn.GroupNorm(2, 4): 2, 4
    nn.InstanceNorm1d(3, affine=True): 2, 3, 4
    nn.BatchNorm2d(3).eval(): 2, 3, 2, 2
    nn.Embedding(4, 2):
    nn.Upsample(scale_factor=2): 1, 1, 2, 2
    nn.ZeroPad2d(1): 1, 1, 2, 2
    nn.ReflectionPad1d(1): 1, 1, 3
    nn.MaxPool2d(2): 1, 1, 4, 4
    nn.AdaptiveAvgPool2d(1): 1, 1, 3, 3
    nn.Dropout(0.5).eval(): 3,
    nn.Flatten(): 2, 3, 4
    nn.PReLU(): 3,
    nn.Hardtanh(): 3,
    nn.CrossEntropyLoss():
    nn.ModuleList([nn.Linear(2, 2)]):
    nn.ModuleDict({'a': nn.Linear(1, 1)}):
    nn.ParameterList([nn.Parameter(lib.ones(2))]):
    nn.ParameterDict({'a': nn.Parameter(lib.ones(2))}):
    """.strip().splitlines()
ROWS = dict([row.strip().rpartition(":")[::2] for row in MODULES])


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("source", LIBRARIES)
@pytest.mark.parametrize("target", LIBRARIES)
def test_modules(name, source, target):
    if source == target == "pytorch":
        return
    writer, reader = LIBRARIES[source], LIBRARIES[target]
    module = eval(name, {"nn": writer.nn, "lib": writer, "OrderedDict": OrderedDict})
    filled(module, writer)
    stream = io.BytesIO()
    writer.save(module, stream)
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL torch.nn.mod"):
        reader.load(stream)
    stream.seek(0)
    result = reader.load(stream, weights_only=False)
    assert type(result).__name__ == type(module).__name__
    assert result.training == module.training
    assert repr(result) == repr(module)
    states = module.state_dict(), result.state_dict()
    assert [*states[0]] == [*states[1]]
    for key, value in states[0].items():
        assert states[1][key].tolist() == value.tolist()
    if ROWS[name].strip():
        x = np.linspace(-1, 1, int(np.prod(eval(ROWS[name])))).reshape(eval(ROWS[name]))
        outputs = [m(lib.tensor(x).float()) for m, lib in ((module, writer), (result, reader))]
        ours, theirs = [y[0] if isinstance(y, tuple) else y for y in outputs]
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)


OPTIMIZERS = (
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD"
).split()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("source", LIBRARIES)
@pytest.mark.parametrize("target", LIBRARIES)
def test_optimizers(name, source, target):
    if source == target == "pytorch":
        return
    writer, reader = LIBRARIES[source], LIBRARIES[target]
    parameter = writer.nn.Parameter(writer.ones(2))
    optimizer = getattr(writer.optim, name)([parameter], lr=0.5)
    parameter.sum().backward()
    optimizer.step()
    stream = io.BytesIO()
    writer.save([optimizer, parameter], stream)
    stream.seek(0)
    result, same = reader.load(stream, weights_only=False)
    assert result.param_groups[0]["params"][0] is same
    for p, o in ((parameter, optimizer), (same, result)):
        p.grad = None
        p.sum().backward()
        o.step()
    np.testing.assert_allclose(same.tolist(), parameter.tolist(), rtol=1e-5)


SPACES = ("nn", "optim", "optim.lr_scheduler", "distributions")


@pytest.mark.parametrize("space", SPACES)
def test_every_class_has_pytorchs_name(space):
    count = 0
    for name in dir(eval(f"tlc.{space}")):
        ours, theirs = (getattr(eval(f"{lib}.{space}"), name, None) for lib in ("tlc", "torch"))
        if inspect.isclass(ours) and inspect.isclass(theirs) and not name.startswith("_"):
            count += 1
            assert name_of(ours) == (theirs.__module__, theirs.__qualname__)
            assert find(theirs.__module__, theirs.__qualname__) is ours
    assert count > 4


def test_names_of_others():
    assert full_name(OrderedDict) == "collections.OrderedDict"
    assert full_name(tlc.Tensor) == "torch.Tensor"
    assert full_name(tlc.nn.functional.relu) == "torch.nn.functional.relu"
    assert name_of(full_name) is None
    with pytest.raises(AttributeError, match="'NoSuchLayer' on module 'torch.nn.modules.linear'"):
        find("torch.nn.modules.linear", "NoSuchLayer")


class Model(tlc.nn.Module):
    """A module of a user's."""

    def __init__(self):
        super().__init__()
        self.layer = tlc.nn.Linear(2, 1)
        self.register_buffer("mask", tlc.ones(2), persistent=False)
        self.names = {"of": ["a", "user"]}

    def forward(self, x):
        return self.layer(x * self.mask)


def test_modules_of_users():
    stream, model = io.BytesIO(), Model()
    tlc.save(model, stream)
    stream.seek(0)
    result = tlc.load(stream, weights_only=False)
    x = tlc.ones(3, 2)
    assert result(x).tolist() == model(x).tolist()
    assert result.names == model.names
    assert [*result.state_dict()] == ["layer.weight", "layer.bias"]
    assert [name for name, _ in result.named_buffers()] == ["mask"]


def test_modules_that_are_allowed():
    stream, model = io.BytesIO(), Model()
    tlc.save(model, stream)
    stream.seek(0)
    found = tlc.serialization.get_unsafe_globals_in_checkpoint(stream)
    assert found == [f"{__name__}.Model", "torch.nn.modules.linear.Linear"]
    stream.seek(0)
    with tlc.serialization.safe_globals([Model, tlc.nn.Linear]):
        result = tlc.load(stream)
    assert result(tlc.ones(1, 2)).tolist() == model(tlc.ones(1, 2)).tolist()


def doubled(module, arguments, result):
    """A hook of a user's."""
    return result * 2


@pytest.mark.parametrize("source", LIBRARIES)
@pytest.mark.parametrize("target", LIBRARIES)
def test_hooks_go_along(source, target):
    writer, reader = LIBRARIES[source], LIBRARIES[target]
    module = filled(writer.nn.Linear(2, 1), writer)
    module.register_forward_hook(doubled)
    stream = io.BytesIO()
    writer.save(module, stream)
    stream.seek(0)
    result = reader.load(stream, weights_only=False)
    assert result(reader.ones(1, 2)).tolist() == module(writer.ones(1, 2)).tolist()


@pytest.mark.parametrize("source", LIBRARIES)
@pytest.mark.parametrize("target", LIBRARIES)
def test_named_results(source, target):
    writer, reader = LIBRARIES[source], LIBRARIES[target]
    stream = io.BytesIO()
    writer.save(writer.max(writer.ones(2, 3), 0), stream)
    stream.seek(0)
    result = reader.load(stream, weights_only=False)
    assert type(result) is reader.return_types.max
    assert result.values.tolist() == [1, 1, 1] and result.indices.dtype is reader.int64


class Tagged(tlc.Tensor):
    """A tensor of a user's."""


def test_subclasses_of_tensors():
    x = tlc.ones(2).as_subclass(Tagged)
    x.note = "mine"
    stream = io.BytesIO()
    tlc.save([x, x], stream)
    stream.seek(0)
    first, second = tlc.load(stream, weights_only=False)
    assert type(first) is Tagged and first.note == "mine" and first is second
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Tagged was not an allowed global"):
        tlc.load(stream)
    stream.seek(0)
    with tlc.serialization.safe_globals([Tagged]):
        assert type(tlc.load(stream)[0]) is Tagged


def test_functions_and_generators():
    stream, generator = io.BytesIO(), tlc.Generator().manual_seed(3)
    tlc.save([tlc.relu, tlc.nn.functional.gelu, np.mean, generator], stream)
    stream.seek(0)
    relu, gelu, mean, copied = tlc.load(stream, weights_only=False)
    assert relu is tlc.relu and gelu is tlc.nn.functional.gelu and mean is np.mean
    if DEVICE == "cpu":
        drawn = [tlc.rand(3, generator=g).tolist() for g in (generator, copied)]
        assert drawn[0] == drawn[1]
