"""`quantize_dynamic`: outputs, printing and states beside PyTorch's, of layers and of models."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.quantized.linear import PackedLinear, integer_product
from tests.ao.models import (
    LIBRARIES,
    device_of,
    expect_close,
    outputs,
    pair,
    quantized,
    random,
)
from tests.device import DEVICE

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of functions that are to go
SPECS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "qint8": (lambda lib: {lib.nn.Linear}, "qint8"),
    "float16": (lambda lib: {lib.nn.Linear}, "float16"),
    "channels": (
        lambda lib: {lib.nn.Linear: lib.ao.quantization.per_channel_dynamic_qconfig}, "qint8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("features", [1, 7, 64, 514, 1033, 4096])
def test_linear(features: int, bias: bool, spec: str) -> None:
    models = quantized(
        lambda lib: lib.nn.Sequential(lib.nn.Linear(features, 9, bias=bias)), *SPECS[spec]
    )
    assert repr(models[0]) == repr(models[1])
    for shape in ((1,), (5,), (2, 3), (0,), (2, 0, 3)):
        x = random(*shape, features) * 3
        if spec == "float16":  # sums in float32, in another order
            expect_close(models, x, atol=1e-5)
            continue
        (mine,), (reference,) = outputs(models, x)
        assert mine.shape == reference.shape
        np.testing.assert_array_equal(mine, reference)


@pytest.mark.parametrize("numbers", [0.0, 1e-8, 1e4, -2.0])
def test_ranges(numbers: float) -> None:
    models = quantized(lambda lib: lib.nn.Sequential(lib.nn.Linear(8, 3)), *SPECS["qint8"])
    (mine,), (reference,) = outputs(models, np.full((2, 8), numbers, np.float32))
    np.testing.assert_array_equal(mine, reference)


def test_float16_has_limits() -> None:
    weight = [[1e-9, -1e-9, 0.0, 1e6, -1e6, 3e-8, 6e-8, 65519.0]]
    found = []
    for lib in LIBRARIES:
        linear = lib.nn.Linear(8, 1, bias=False)
        linear.weight = lib.nn.Parameter(lib.tensor(weight))
        model = lib.ao.quantization.quantize_dynamic(
            lib.nn.Sequential(linear), {lib.nn.Linear}, dtype=lib.float16
        )
        found.append(model[0].weight().tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(("codes", "zero_point"), [(128, 0), (255, 0), (255, 127)])
@pytest.mark.parametrize("columns", [1, 513, 514, 515, 1024, 1025, 4096])
def test_products_of_integers_are_exact(columns: int, codes: int, zero_point: int) -> None:
    """The largest sums there can be."""
    rng = np.random.default_rng(0)
    x = rng.integers(codes - 50, codes + 1, (3, columns))
    w = rng.integers(-128, -100, (4, columns))
    weight = tlc._make_per_tensor_quantized_tensor(tlc.tensor(w.astype(np.int8)), 1.0, zero_point)
    pieces = PackedLinear(weight, None).to(DEVICE).pieces(codes)
    assert (len(pieces) == 1) == (columns * codes * (128 + zero_point) <= 2**24)
    found = integer_product(tlc.tensor(x.astype(np.float32)).to(DEVICE), pieces)
    expected = (x @ (w - zero_point).T).astype(np.float32)
    np.testing.assert_array_equal(found.cpu().numpy(), expected)


RECURRENT: dict[str, dict[str, Any]] = {
    "plain": {},
    "layers": {"num_layers": 3, "dropout": 0.5},
    "both directions": {"bidirectional": True},
    "all": {"num_layers": 2, "bidirectional": True, "batch_first": True},
}


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("options", RECURRENT)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent(kind: str, options: str, dtype: str) -> None:
    kwargs = RECURRENT[options]

    def make(lib: Any) -> Any:
        return lib.nn.Sequential(getattr(lib.nn, kind)(6, 5, **kwargs))

    models = quantized(make, dtype=dtype)
    assert repr(models[0]) == repr(models[1])
    x = random(4, 9, 6) if "batch_first" in kwargs else random(9, 4, 6)
    expect_close(models, x)
    count = kwargs.get("num_layers", 1) * (2 if "bidirectional" in kwargs else 1)
    states = [random(count, 4, 5, seed=n) for n in range(2 if kind == "LSTM" else 1)]
    found = []
    for lib, model in zip(LIBRARIES, models, strict=True):
        given = [lib.tensor(state).to(device_of(lib)) for state in states]
        hx = tuple(given) if kind == "LSTM" else given[0]
        out, last = model[0](lib.tensor(x).to(device_of(lib)), hx)
        found.append([out, *last] if kind == "LSTM" else [out, last])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_packed_sequences(kind: str, enforce_sorted: bool) -> None:
    lengths = [5, 3, 1] if enforce_sorted else [3, 1, 5]
    models = quantized(
        lambda lib: lib.nn.Sequential(getattr(lib.nn, kind)(6, 5, 2, bidirectional=True))
    )
    found = []
    for lib, model in zip(LIBRARIES, models, strict=True):
        rnn = lib.nn.utils.rnn
        x = lib.tensor(random(5, 3, 6)).to(device_of(lib))
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=enforce_sorted)
        out, last = model[0](packed)
        padded, _ = rnn.pad_packed_sequence(out)
        states = [*last] if kind == "LSTM" else [last]
        found.append([part.detach().cpu().numpy() for part in (padded, *states)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


CELLS: dict[str, Callable[[Any], Any]] = {
    "LSTMCell": lambda lib: lib.nn.LSTMCell(6, 5),
    "GRUCell": lambda lib: lib.nn.GRUCell(6, 5),
    "RNNCell": lambda lib: lib.nn.RNNCell(6, 5),
    "RNNCell of ReLU": lambda lib: lib.nn.RNNCell(6, 5, nonlinearity="relu"),
}


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("name", CELLS)
def test_cells(name: str, dtype: str) -> None:
    models = quantized(lambda lib: lib.nn.Sequential(CELLS[name](lib)), dtype=dtype)
    assert repr(models[0]) == repr(models[1])
    expect_close(models, random(4, 6))


class Block:
    """The layers of BERT: attention in projections of their own, then two linear layers."""

    def __new__(cls, lib: Any) -> Any:
        class Layer(lib.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                for name in ("query", "key", "value", "dense"):
                    setattr(self, name, lib.nn.Linear(64, 64))
                self.up, self.down = lib.nn.Linear(64, 256), lib.nn.Linear(256, 64)
                self.first, self.second = lib.nn.LayerNorm(64), lib.nn.LayerNorm(64)

            def forward(self, x: Any) -> Any:
                split = [
                    layer(x).unflatten(-1, (4, 16)).transpose(1, 2)
                    for layer in (self.query, self.key, self.value)
                ]
                seen = lib.nn.functional.scaled_dot_product_attention(*split)
                x = self.first(x + self.dense(seen.transpose(1, 2).flatten(2)))
                return self.second(x + self.down(lib.nn.functional.gelu(self.up(x))))

        return Layer()


def bert(lib: Any) -> Any:
    class Classifier(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = lib.nn.Embedding(100, 64)
            self.layers = lib.nn.Sequential(Block(lib), Block(lib))
            self.classifier = lib.nn.Linear(64, 2)

        def forward(self, tokens: Any) -> Any:
            return self.classifier(self.layers(self.embedding(tokens))[:, 0].tanh())

    return Classifier()


def test_bert() -> None:
    """The tutorial's job: all linear layers of a classifier of texts."""
    models = quantized(bert, lambda lib: {lib.nn.Linear})
    assert repr(models[0]) == repr(models[1])
    expect_close(models, np.random.default_rng(0).integers(0, 100, (8, 12)), atol=1e-5)


def test_the_recipe() -> None:
    """An LSTM becomes four times as small in a file, and its outputs stay close."""
    lstm = tlc.nn.Sequential(tlc.nn.LSTM(64, 64, 2))
    small = tlc.ao.quantization.quantize_dynamic(lstm, {tlc.nn.LSTM, tlc.nn.Linear})

    def size(model: Any) -> int:
        stream = io.BytesIO()
        tlc.save(model.state_dict(), stream)
        return len(stream.getvalue())

    assert size(lstm) > 3.3 * size(small)
    x = tlc.tensor(random(8, 2, 64))
    with tlc.no_grad():
        difference = (lstm(x)[0] - small(x)[0]).abs().mean()
    assert 0 < difference < 0.01


CHOICES: dict[str, Callable[[Any], Any]] = {
    "by default": lambda lib: None,
    "a set": lambda lib: {lib.nn.LSTM, lib.nn.Linear},
    "a name": lambda lib: {"1": lib.ao.quantization.default_dynamic_qconfig},
    "a name inside": lambda lib: {"1.0": lib.ao.quantization.float16_dynamic_qconfig},
    "names": lambda lib: {"0", "1.0"},
    "all": lambda lib: {"": lib.ao.quantization.default_dynamic_qconfig},
    "but one": lambda lib: {lib.nn.Linear: lib.ao.quantization.default_dynamic_qconfig, "0": None},
    "of no class": lambda lib: {lib.nn.ReLU},
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_is_quantized(name: str) -> None:
    def make(lib: Any) -> Any:
        inner = lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.MultiheadAttention(4, 2))
        return lib.nn.Sequential(lib.nn.Linear(4, 4), inner, lib.nn.LSTM(4, 4))

    mine, reference = quantized(make, CHOICES[name])
    assert repr(mine) == repr(reference)
    assert mine.training is reference.training is False
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in reference.named_parameters()]
    assert not [module for module in mine.modules() if hasattr(module, "qconfig")]


def test_in_place_and_not() -> None:
    model = tlc.nn.Sequential(tlc.nn.Linear(2, 3))
    quantize_dynamic = tlc.ao.quantization.quantize_dynamic
    quantize_dynamic(model, {tlc.nn.Linear})
    assert type(model[0]) is tlc.nn.Linear and model.training
    assert quantize_dynamic(model, {tlc.nn.Linear}, inplace=True) is model
    assert type(model[0]) is tlc.ao.nn.quantized.dynamic.Linear


def test_hooks_stay() -> None:
    seen = []
    model = tlc.nn.Sequential(tlc.nn.Linear(2, 3))
    model[0].register_forward_pre_hook(lambda module, args: seen.append("before"))
    model[0].register_forward_hook(lambda module, args, out: seen.append("after"))
    tlc.ao.quantization.quantize_dynamic(model, {tlc.nn.Linear})(tlc.ones(1, 2))
    assert seen == ["before", "after"]


def test_a_mapping() -> None:
    found = []
    for lib in LIBRARIES:

        class Mine(lib.nn.Linear):  # type: ignore[name-defined]
            @classmethod
            def from_float(cls, mod: Any, lib: Any = lib, **options: Any) -> Any:
                return lib.nn.Identity()

        model = lib.nn.Sequential(Mine(2, 3), lib.nn.Linear(3, 3))
        made = lib.ao.quantization.quantize_dynamic(
            model, {Mine: lib.ao.quantization.default_dynamic_qconfig}, mapping={Mine: Mine}
        )
        found.append(repr(made))
    assert found[0] == found[1]


def dynamic(lib: Any, module: Any, **options: Any) -> Any:
    return lib.ao.quantization.quantize_dynamic(
        lib.nn.Sequential(module), {type(module)}, **options
    )


BAD: dict[str, Callable[[Any, Any], Any]] = {
    "dtype": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3), dtype=lib.int8),
    "dtype by default": lambda lib, x: lib.ao.quantization.quantize_dynamic(
        lib.nn.Sequential(), dtype=lib.int8
    ),
    "no config": lambda lib, x: lib.ao.quantization.quantize_dynamic(
        lib.nn.Sequential(lib.nn.Linear(4, 3)), {lib.nn.Linear: 3}
    ),
    "no config of a module": lambda lib, x: lib.ao.nn.quantized.dynamic.Linear.from_float(
        lib.nn.Linear(4, 3)
    ),
    "another module": lambda lib, x: lib.ao.nn.quantized.dynamic.Linear.from_float(lib.nn.ReLU()),
    "without biases": lambda lib, x: dynamic(lib, lib.nn.LSTM(4, 3, bias=False)),
    "a cell without": lambda lib, x: dynamic(lib, lib.nn.GRUCell(4, 3, bias=False)),
    "features": lambda lib, x: dynamic(lib, lib.nn.Linear(5, 3))(x),
    "doubles": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3))(x.double()),
    "doubles and float16": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3), dtype=lib.float16)(
        x.double()
    ),
    "integers": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3))(x.long()),
    "a vector": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3))(x[0]),
    "NaN": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3))(x * float("nan")),
    "two dimensions": lambda lib, x: dynamic(lib, lib.nn.LSTM(4, 3))(x),
    "features of a sequence": lambda lib, x: dynamic(lib, lib.nn.GRU(5, 3))(x[None]),
    "states": lambda lib, x: dynamic(lib, lib.nn.GRU(4, 3))[0](x[None], lib.zeros(1, 2, 4)),
    "states of an LSTM": lambda lib, x: dynamic(lib, lib.nn.LSTM(4, 3))[0](
        x[None], (lib.zeros(1, 2, 3), lib.zeros(2, 2, 3))
    ),
    "features of a cell": lambda lib, x: dynamic(lib, lib.nn.LSTMCell(5, 3))(x),
    "states of a cell": lambda lib, x: dynamic(lib, lib.nn.GRUCell(4, 3))[0](x, lib.zeros(3, 3)),
    "a float state": lambda lib, x: dynamic(lib, lib.nn.Linear(4, 3)).load_state_dict(
        lib.nn.Sequential(lib.nn.Linear(4, 3)).state_dict()
    ),
    "an observer": lambda lib, x: lib.ao.quantization.QConfig(lib.nn.ReLU(), lib.nn.ReLU()),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    kinds = []
    for lib in LIBRARIES:
        with pytest.raises(Exception) as caught:
            BAD[name](lib, lib.tensor(random(2, 4)))
        kinds.append(caught.type.__name__)
    assert kinds[0] == kinds[1]


def test_what_is_not_here_says_so() -> None:
    quantization = tlc.ao.quantization
    with pytest.raises(NotImplementedError, match="Embedding is not quantized"):
        dynamic(tlc, tlc.nn.Embedding(3, 4))
    with pytest.raises(NotImplementedError, match="proj_size"):
        dynamic(tlc, tlc.nn.LSTM(4, 3, proj_size=2))
    with pytest.raises(NotImplementedError, match="prepare_qat is of static quantization"):
        quantization.prepare_qat(None)
    with pytest.raises(AttributeError, match="static quantization"):
        quantization.quantize_fx  # noqa: B018


OBSERVED: dict[str, Callable[[Any], Any]] = {
    "weights": lambda q: q.default_weight_observer(),
    "channels": lambda q: q.default_per_channel_weight_observer(),
    "columns": lambda q: q.PerChannelMinMaxObserver(ch_axis=1),
    "affine": lambda q: q.MinMaxObserver(),
    "half": lambda q: q.MinMaxObserver(reduce_range=True),
    "few codes": lambda q: q.MinMaxObserver(quant_min=-3, quant_max=17),
}


@pytest.mark.parametrize("name", OBSERVED)
def test_observers(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        observer = OBSERVED[name](lib.ao.quantization)
        texts = [repr(observer)]
        for seed in range(2):
            x = lib.tensor(random(3, 4, seed=seed))
            assert observer(x) is x
        scale, zero_point = observer.calculate_qparams()
        texts.append(repr(observer))
        found.append((texts, scale.tolist(), zero_point.tolist(), str(observer.dtype)))
    assert found[0][0] == found[1][0] and found[0][3] == found[1][3]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_array_equal(found[0][2], found[1][2])


def test_configs_print() -> None:
    def text(lib: Any, name: str) -> str:
        config = repr(getattr(lib.ao.quantization, name))
        return config.replace("tensorflow_lite_clone", "torch")

    for name in ("default", "per_channel", "float16"):
        name = f"{name}_dynamic_qconfig"
        assert text(tlc, name) == text(torch, name)


def test_older_names() -> None:
    import tensorflow_lite_clone.nn.quantized.dynamic as nnqd

    assert tlc.quantization.quantize_dynamic is tlc.ao.quantization.quantize_dynamic
    assert nnqd.Linear is tlc.ao.nn.quantized.dynamic.Linear


def test_copies_and_pairs() -> None:
    mine, _ = pair(lambda lib: lib.nn.Sequential(lib.nn.Linear(6, 5), lib.nn.GRU(5, 4)))
    made = tlc.ao.quantization.quantize_dynamic(mine)
    x = tlc.tensor(random(3, 2, 6))
    expected = made(x)[0]
    assert copy.deepcopy(made)(x)[0].equal(expected)
    assert not expected.requires_grad
