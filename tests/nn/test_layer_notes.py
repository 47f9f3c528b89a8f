"""Errors raised inside modules carry one note with the layer's path; their messages stay."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.nn.modules import hooks
from tests.nn.against_torch import text

nn = tlc.nn


class Model(nn.Module):
    """Calls `run(self, x)` over the parts it is given."""

    def __init__(self, run: Callable[[Any, Any], Any], **parts: Any) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(self, *args, **kwargs)


def f(*shape: int, **kwargs: Any) -> Any:
    return tlc.ones(*shape, **kwargs)


def nested(layer: Any) -> Any:
    """The layer as ``blocks.1.inner.layer``."""
    inner = Model(lambda m, *args: m.layer(*args), layer=layer)
    block = Model(lambda m, *args: m.inner(*args), inner=inner)
    blocks = nn.ModuleList([nn.Identity(), block])
    return Model(lambda m, *args: m.blocks[1](*args), blocks=blocks)


DEEP = "blocks.1.inner.layer"


def encoder(wrong: str) -> Any:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 4)
    setattr(model.layers[3], wrong, nn.Linear(9, 8))
    return Model(lambda m, x: m.encoder(x), encoder=model)


#: A model, what it is called with, the path of the layer that cannot take it, how that is shown.
WRONG = {
    "linear": (nested(nn.Linear(4, 2)), (f(2, 3),), DEEP, "Linear(in_features=4, out"),
    "linear dtype": (nested(nn.Linear(4, 2)), (f(2, 4).double(),), DEEP, "torch.float64 [2, 4]"),
    "linear, no tensor": (nested(nn.Linear(4, 2)), ([1.0, 2.0],), DEEP, "called with (1.0, 2.0)"),
    "bilinear": (nested(nn.Bilinear(3, 4, 2)), (f(2, 3), f(2, 3)), DEEP, "torch.float32 [2, 3], "),
    "conv1d": (nested(nn.Conv1d(4, 2, 3)), (f(2, 3, 9),), DEEP, "Conv1d(4, 2, kernel_size"),
    "conv2d channels": (nested(nn.Conv2d(4, 2, 3)), (f(2, 3, 9, 9),), DEEP, "[2, 3, 9, 9]"),
    "conv2d dtype": (nested(nn.Conv2d(4, 2, 3)), (f(2, 4, 9, 9).half(),), DEEP, "torch.float16"),
    "conv2d too small": (nested(nn.Conv2d(4, 2, 3)), (f(2, 4, 2, 2),), DEEP, "[2, 4, 2, 2]"),
    "conv3d": (nested(nn.Conv3d(4, 2, 3)), (f(2, 3, 9, 9, 9),), DEEP, "Conv3d"),
    "transposed": (nested(nn.ConvTranspose2d(4, 2, 3)), (f(2, 3, 9, 9),), DEEP, "ConvTranspose2d"),
    "layer norm": (nested(nn.LayerNorm(8)), (f(2, 7),), DEEP, "LayerNorm((8,), eps=1e-05"),
    "rms norm": (nested(nn.RMSNorm(8)), (f(2, 7),), DEEP, "RMSNorm((8,)"),
    "group norm": (nested(nn.GroupNorm(2, 4)), (f(2, 5, 3),), DEEP, "GroupNorm(2, 4"),
    "batch norm": (nested(nn.BatchNorm1d(4)), (f(2, 5),), DEEP, "BatchNorm1d(4"),
    "batch norm axes": (nested(nn.BatchNorm2d(4)), (f(2, 4),), DEEP, "BatchNorm2d(4"),
    "embedding": (nested(nn.Embedding(5, 2)), (f(3),), DEEP, "called with torch.float32 [3]"),
    "embedding range": (nested(nn.Embedding(5, 2)), (tlc.tensor([7]),), DEEP, "torch.int64 [1]"),
    "embedding bag": (nested(nn.EmbeddingBag(5, 2)), (f(3),), DEEP, "EmbeddingBag(5, 2"),
    "attention": (
        nested(nn.MultiheadAttention(8, 2)), (f(3, 2, 8), f(3, 2, 6), f(3, 2, 8)), DEEP,
        "MultiheadAttention(...), called with torch.float32 [3, 2, 8], torch.float32 [3, 2, 6], ",
    ),
    "lstm": (nested(nn.LSTM(4, 3)), (f(5, 2, 6),), DEEP, "LSTM(4, 3), called with"),
    "lstm states": (
        nested(nn.LSTM(4, 3)), (f(5, 2, 4), (f(1, 2, 5), f(1, 2, 3))), DEEP,
        "(torch.float32 [1, 2, 5], torch.float32 [1, 2, 3])",
    ),
    "gru": (nested(nn.GRU(4, 3)), (f(5, 2, 6),), DEEP, "GRU(4, 3)"),
    "lstm cell": (nested(nn.LSTMCell(4, 3)), (f(2, 6),), DEEP, "LSTMCell(4, 3)"),
    "prelu": (nested(nn.PReLU(3)), (f(2, 4),), DEEP, "PReLU(num_parameters=3)"),
    "pixel shuffle": (nested(nn.PixelShuffle(2)), (f(1, 3, 2, 2),), DEEP, "PixelShuffle(upsc"),
    "loss": (nested(nn.CrossEntropyLoss()), (f(4, 3), tlc.zeros(5).long()), DEEP, "[5]"),
    "mse": (nested(nn.L1Loss()), (f(4, 3), f(4, 2)), DEEP, "L1Loss()"),
    "unflatten": (nested(nn.Unflatten(1, (2, 2))), (f(2, 5),), DEEP, "Unflatten(dim=1"),
    "max pool": (nested(nn.MaxPool2d(3)), (f(2, 2),), DEEP, "MaxPool2d(kernel_size=3"),
    "linear1": (encoder("linear1"), (f(2, 3, 8),), "encoder.layers.3.linear1", "Linear(in_feat"),
    "out_proj": (encoder("self_attn"), (f(2, 3, 8),), "encoder.layers.3.self_attn", "attn_mask="),
    "product in the model's own code": (
        Model(lambda m, x: m.inner(x), inner=Model(lambda m, x: x @ x)), (f(2, 3),), "inner",
        "Model(), called with torch.float32 [2, 3]",
    ),
    "sequential": (
        nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 2))), (f(2, 3),),
        "1.1", "[2, 4]",
    ),
    "keywords": (
        Model(lambda m, **kw: m.layer(**kw), layer=nn.Linear(4, 2)), {"input": f(2, 3)}, "layer",
        "called with input=torch.float32 [2, 3]",
    ),
    "list in a loop": (
        Model(
            lambda m, x: [x := layer(x) for layer in m.layers],
            layers=nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 5), nn.Linear(4, 3)]),
        ), (f(2, 3),), "layers.2", "torch.float32 [2, 5]",
    ),
    "dictionary": (
        Model(lambda m, x: m.parts["b"](x), parts=nn.ModuleDict({"b": nn.Linear(4, 3)})),
        (f(2, 3),), "parts.b", "Linear",
    ),
    "not registered": (
        Model(lambda m, x: m.loose[0](x), loose=[nn.Linear(4, 3)]), (f(2, 3),), "Linear", "Linear(",
    ),
    "below what is not registered": (
        Model(lambda m, x: m.loose[0](x), loose=[nn.Sequential(nn.ReLU(), nn.Linear(4, 3))]),
        (f(2, 3),), "Sequential.1", "Linear(in",
    ),
    "lazy": (
        nested(nn.LazyConv2d(4, 3)), (f(2, 3),), DEEP, "called with torch.float32 [2, 3]",
    ),
    "parametrized": (
        nested(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))), (f(2, 3),), DEEP,
        "called with torch.float32 [2, 3]",
    ),
}  # fmt: skip


def error_of(model: Any, given: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  (of all kinds)
        model(**given) if isinstance(given, dict) else model(*given)
    return caught.value


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, given, path, shown = WRONG[name]
    error = error_of(model, given)
    (note,) = error.__notes__
    assert note.startswith(f"In layer {path}: ") and shown in note and "\n" not in note
    monkeypatch.setattr(hooks, "add_layer_note", lambda *_: None)
    before = error_of(model, given)
    assert not hasattr(before, "__notes__")
    assert (type(error), str(error)) == (type(before), str(before))


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        ("Linear(4, 2)", (2, 3)),
        ("Embedding(5, 2)", (3,)),
        ("Conv2d(4, 2, 3)", (2, 3, 9, 9)),
        ("BatchNorm1d(4)", (2, 4, 3, 3)),
        ("LSTM(4, 3)", (5, 2, 6)),
    ],
)
def test_messages_are_pytorchs(made: str, shape: tuple) -> None:
    errors = [
        error_of(eval(f"lib.nn.Sequential(lib.nn.{made})", {"lib": lib}), (lib.ones(*shape),))
        for lib in (tlc, torch)
    ]
    assert type(errors[0]) is type(errors[1]) and text(str(errors[0])) == str(errors[1])


def test_the_outermost_module_has_no_path() -> None:
    (note,) = error_of(nn.Linear(4, 2), (f(2, 3),)).__notes__
    assert note == (
        "In Linear(in_features=4, out_features=2, bias=True), called with torch.float32 [2, 3]"
    )


def test_where_and_how_it_is_called() -> None:
    """Under autocast, checkpoint, hooks, `functional_call`, vmap, compile: one note each."""
    model = nested(nn.Linear(4, 2))
    x = f(2, 3, requires_grad=True)

    def hooked() -> Any:
        with model.blocks[1].register_forward_hook(lambda *args: None):
            return model(x)

    def under_autocast() -> Any:
        with tlc.autocast("cpu"):
            return model(x)

    compiled = tlc.compile(model)
    state = dict(model.named_parameters())
    calls: list[Callable[[], Any]] = [
        hooked,
        under_autocast,
        lambda: tlc.utils.checkpoint.checkpoint(model, x, use_reentrant=False),
        lambda: tlc.utils.checkpoint.checkpoint_sequential(nn.Sequential(model, nn.ReLU()), 1, x),
        lambda: tlc.func.functional_call(model, state, (x,)),
        lambda: tlc.func.vmap(model)(x),
        lambda: compiled(x),
        lambda: nn.DataParallel(model)(x),
        lambda: model._call_impl(x),
    ]
    for call in calls:
        with pytest.raises(RuntimeError) as caught:
            call()
        (note,) = caught.value.__notes__
        assert f"{DEEP}: Linear(" in note


def test_early_stop_of_a_checkpoint_makes_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    monkeypatch.setattr(nn.Sequential, "named_modules", lambda *args: asked.append(args) or [])
    monkeypatch.setattr(nn.Tanh, "__repr__", lambda self: asked.append(self))
    x = f(2, 3, requires_grad=True)
    tlc.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert not asked and x.grad is not None


@pytest.mark.parametrize(
    "kind", [StopIteration, StopAsyncIteration, KeyboardInterrupt, GeneratorExit, SystemExit]
)
def test_control_flow_gets_none(kind: type[BaseException]) -> None:
    def run(module: Any, x: Any) -> None:
        raise kind

    with pytest.raises(kind) as caught:
        nn.Sequential(Model(run))(f(1))
    assert not hasattr(caught.value, "__notes__")


def test_an_error_is_noted_once() -> None:
    """Raised again in other calls, it keeps the place where it came from."""
    kept: list[Exception] = []

    def keep(module: Any, x: Any) -> Any:
        try:
            return module.layer(x)
        except RuntimeError as error:
            kept.append(error)
            raise

    def again(module: Any, x: Any) -> Any:
        raise kept[0]

    error_of(Model(keep, layer=nn.Linear(4, 2)), (f(2, 3),))
    for _ in range(2):
        again_raised = error_of(nn.Sequential(Model(again)), (f(2, 3),))
        assert again_raised is kept[0]
        (note,) = again_raised.__notes__
        assert note.startswith("In layer Model.layer: Linear(in_features=4")


def test_notes_of_others_stay() -> None:
    def run(module: Any, x: Any) -> Any:
        error = ValueError("wrong")
        error.add_note("look here")
        raise error

    error = error_of(nn.Sequential(Model(run)), (f(1),))
    assert error.__notes__ == ["look here", "In layer 0: Model(), called with torch.float32 [1]"]


def test_faulty_reprs_and_errors_that_take_no_notes() -> None:
    """What goes wrong about the note never hides the error."""

    class Nameless(nn.Module):
        def __repr__(self) -> str:
            raise KeyError

        def forward(self, x: Any) -> Any:
            return x @ x

    class Frozen(Exception):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(name)

    def run(module: Any, x: Any) -> Any:
        raise Frozen

    error = error_of(Model(lambda m, x: m.part(x), part=Nameless()), (f(2, 3),))
    assert type(error) is RuntimeError
    assert error.__notes__ == ["In layer part: Nameless, called with torch.float32 [2, 3]"]
    assert type(error_of(Model(run), (f(2, 3),))) is Frozen


def test_a_note_asks_no_handler_of_functions() -> None:
    class Strict(tlc.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, *call: Any) -> Any:
            raise ZeroDivisionError

    class Seen(tlc.overrides.TorchFunctionMode):
        names: list[str] = []  # noqa: RUF012

        def __torch_function__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            self.names.append(func.__name__)
            return func(*args, **kwargs or {})

    layer = nn.Linear(3, 2)
    error = error_of(layer, (f(2, 3).as_subclass(Strict),))
    assert type(error) is ZeroDivisionError
    assert error.__notes__[0].endswith("called with torch.float32 [2, 3]")
    x = f(2, 4)
    with Seen():
        error_of(layer, (x,))
    assert Seen.names == ["linear"]


def test_notes_are_text_in_pickles_and_keep_nothing_alive() -> None:
    error = error_of(nested(nn.Linear(4, 2)), (f(2, 3),))
    (note,) = pickle.loads(pickle.dumps(error)).__notes__
    assert type(note) is str and note == error.__notes__[0]
    assert traceback.format_exception_only(error)[-1].strip() == note


def test_arguments_in_notes() -> None:
    def run(module: Any, *args: Any, **kwargs: Any) -> Any:
        raise ValueError

    given = [f(1), [1, None] * 6, {"mask": f(2).bool()}, "x" * 300, nn.Linear, object()]
    (note,) = error_of(
        Model(lambda m, x: m.inner(*given, n=2), inner=Model(run)), (f(1),)
    ).__notes__
    assert note.startswith("In layer inner: Model(), called with torch.float32 [1], (1, None, ")
    assert ", ...), {'mask': torch.bool [2]}, 'xxx" in note and note.endswith(
        "..., type, object, n=2"
    )


def test_the_backward_pass_is_left_alone() -> None:
    class Refuse(tlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("no gradient")

    y = nn.Sequential(Model(lambda m, x: Refuse.apply(x)))(f(2, requires_grad=True))
    with pytest.raises(ValueError, match="no gradient") as caught:
        y.sum().backward()
    assert not hasattr(caught.value, "__notes__")
