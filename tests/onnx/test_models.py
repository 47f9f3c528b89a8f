"""Networks of many kinds, exported and run by onnxruntime, at more than one batch size."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tests.device import DEVICE
from tests.onnx import models
from tests.onnx.run import check, kinds


def images(batch: int, channels: int = 3, size: int = 16) -> torch.Tensor:
    return torch.randn(batch, channels, size, size, device=DEVICE)


def tokens(batch: int, length: int, high: int = 9) -> torch.Tensor:
    return torch.randint(0, high, (batch, length), device=DEVICE)


BATCH = {0: "batch"}


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_cnn() -> None:
    proto = check(models.CNN(), images(2), more=[(images(5),)], dynamic_axes={"image": BATCH})
    assert {t.name for t in proto.graph.initializer} >= {"conv1.weight", "bn1.running_mean"}
    assert not any(t.name.startswith("unused") for t in proto.graph.initializer)
    assert {"Conv", "BatchNormalization", "MaxPool", "AveragePool", "Gemm"} <= kinds(proto)


def test_resnet() -> None:
    model = models.ResNet()
    for p in model.buffers():
        if p.is_floating_point():
            p.data = torch.rand_like(p) + 0.5
    proto = check(model, images(1, size=32), more=[(images(3, size=32),)],
                  dynamic_axes={"x": BATCH})  # fmt: skip
    assert "layers.1.downsample.0.weight" in {t.name for t in proto.graph.initializer}


def test_resnet_of_any_size() -> None:
    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    proto = check(models.ResNet(), images(2, size=32), dynamic_axes=axes,
                  more=[(torch.randn(1, 3, 48, 40, device=DEVICE),)])  # fmt: skip
    assert "ReduceMean" in kinds(proto)


def test_every_activation() -> None:
    x = torch.randn(3, 7, device=DEVICE)
    more = [(torch.randn(6, 7, device=DEVICE),)]
    check(models.Activations(), x, more=more, dynamic_axes={"x": BATCH})
    check(models.Activations(), x, opset_version=18)


@pytest.mark.parametrize("written_out", [True, False])
def test_vit(written_out: bool) -> None:
    model = models.ViT(written_out=written_out)
    for batch in (1, 2):
        check(model, images(batch, size=8), more=[(images(4, size=8),)],
              dynamic_shapes={"x": BATCH})  # fmt: skip


def test_gpt_of_any_length() -> None:
    model = models.GPT()
    proto = check(
        model, tokens(2, 5), more=[(tokens(3, 8),), (tokens(1, 2),)],
        dynamic_axes={"idx": {0: "batch", 1: "time"}},
    )  # fmt: skip
    names = [t.name for t in proto.graph.initializer]
    assert "wte.weight" in names
    assert "head.weight" not in names
    assert "bias" in names


def test_gpt_at_its_longest() -> None:
    # the second size cannot be larger, so it is smaller
    check(models.GPT(), tokens(2, 8), more=[(tokens(3, 4),)],
          dynamic_axes={"idx": {0: "batch", 1: "time"}})  # fmt: skip


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_unet(mode: str) -> None:
    check(models.UNet(mode), images(2, 2, 8), more=[(images(3, 2, 8),)], dynamic_axes={"x": BATCH})


RECURRENT = [
    ("LSTM", {}),
    ("LSTM", {"bidirectional": True, "num_layers": 2, "batch_first": True}),
    ("LSTM", {"proj_size": 4, "hidden_size": 6}),
    ("GRU", {"bidirectional": True, "batch_first": True}),
    ("GRU", {"num_layers": 2, "bias": False}),
    ("RNN", {"nonlinearity": "relu"}),
    ("RNN", {"bidirectional": True, "num_layers": 2}),
]


@pytest.mark.parametrize(("kind", "options"), RECURRENT)
def test_recurrent(kind: str, options: dict) -> None:
    options = dict(options)
    batch_first = options.get("batch_first", False)
    if "hidden_size" in options:
        rnn = nn.LSTM(5, **options)
        x, other = [torch.randn(3, n, 5, device=DEVICE) for n in (2, 4)]
        check(rnn, x, more=[(other,)], dynamic_axes={"input": {1: "batch"}})
        return
    model = models.Recurrent(kind, **options)
    first = 0 if batch_first else 1
    x, other = (tokens(2, 3), tokens(4, 6)) if batch_first else (tokens(3, 2), tokens(6, 4))
    axes = {"tokens": {first: "batch", 1 - first: "time"}}
    proto = check(model, x, more=[(other,)], dynamic_axes=axes)
    assert kind in kinds(proto)


def test_packed_sequences_are_written_out() -> None:
    rnn = nn.GRU(5, 4).to(DEVICE).eval()
    lengths = torch.tensor([3, 1])

    def model(x):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        return nn.utils.rnn.pad_packed_sequence(rnn(packed)[0])[0]

    assert "GRU" not in kinds(check(model, torch.randn(3, 2, 5, device=DEVICE)))


def test_cells() -> None:
    x, h = torch.randn(2, 3, device=DEVICE), torch.randn(2, 4, device=DEVICE)
    check(nn.LSTMCell(3, 4), x, (h, h + 1))
    check(nn.GRUCell(3, 4), x, h)


@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder(norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x, other = [torch.randn(n, 3, 8, device=DEVICE) for n in (2, 4)]
    check(model, x, more=[(other,)], dynamic_axes={"src": BATCH})


def test_transformer_decoder_with_masks() -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(3).to(DEVICE)
    x, memory = torch.randn(2, 3, 8, device=DEVICE), torch.randn(2, 4, 8, device=DEVICE)
    padding = torch.tensor([[False] * 4, [False, False, True, True]], device=DEVICE)
    model = layer.to(DEVICE).eval()
    check(lambda x, m, p: model(x, m, mask, memory_key_padding_mask=p), x, memory, padding)


def test_norms() -> None:
    x, other = [torch.randn(n, 5, 6, device=DEVICE) for n in (2, 3)]
    check(models.RMSNorm(), x, more=[(other,)], dynamic_axes={"x": {0: "batch"}})
