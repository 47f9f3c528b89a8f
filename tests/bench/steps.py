"""Whole training steps and inferences, over either library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

from tests.bench import language
from tests.bench.case import Wrap, as_it_is
from tests.examples.against_torch import names, network

MODELS = ("mlp", "cnn", "vit")  # with pictures of digits
#: Of language models: how many sequences, and how long.
SEQUENCES = {"lstm": (32, 32), "gpt": (8, 64), "gpt2": (8, 1024)}


class Training(NamedTuple):
    """A function of data and labels that takes one step, and a batch for it."""

    step: Callable[[Any, Any], Any]
    batch: tuple[Any, Any]


def _mlp(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
        nn.Linear(128, 10),
    )  # fmt: skip


def _model(lib: Any, name: str) -> Any:
    if name == "mlp":
        return _mlp(lib)
    if name == "cnn":
        return network(lib, "examples/mnist/cnn/train.py")()
    if name == "vit":
        return network(lib, "examples/mnist/vit/train.py")(4, 128, 2, 1)
    if name in SEQUENCES:
        return language.model(lib, name)
    return names(lib, "examples/cifar/models.py")["MODELS"][name]()


def _batch(lib: Any, name: str, size: int) -> tuple[Any, Any]:
    """Random pictures and labels, or words of which each is to be foretold by those before it."""
    if name in SEQUENCES:
        words = lib.randint(language.vocabulary(name), (size, SEQUENCES[name][1] + 1))
        return words[:, :-1].contiguous(), words[:, 1:].reshape(-1)
    shape = (size, 1, 28, 28) if name in MODELS else (size, 3, 32, 32)
    return lib.rand(*shape), lib.randint(10, (size,))


def training(
    lib: Any,
    name: str,
    batch: int,
    *,
    device: str = "cuda",
    half: bool = False,
    channels_last: bool = False,
    wrap: Wrap | None = None,
) -> Training:
    """Forward, cross-entropy, backward and optimizer on random data.

    Residual networks have SGD with momentum, the others AdamW; on a GPU each in one launch where
    the library can, on the CPU as by default. With `half` the forward pass is within
    ``autocast(bfloat16)``. `wrap` is given the function that makes the loss.
    """
    lib.manual_seed(0)
    model = _model(lib, name).to(device)
    x, y = (each.to(device) for each in _batch(lib, name, batch))
    if channels_last:
        model.to(memory_format=lib.channels_last)
        x = x.contiguous(memory_format=lib.channels_last)
    parameters = list(model.parameters())
    fused = {"fused": True} if device == "cuda" else {}
    if name.startswith("resnet"):
        optimizer = lib.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=5e-4, **fused)
    else:
        capturable = {"capturable": True} if device == "cuda" else {}
        optimizer = lib.optim.AdamW(parameters, lr=1e-3, **fused, **capturable)

    def loss_of(x: Any, y: Any) -> Any:
        with lib.autocast(device, lib.bfloat16) if half else nullcontext():
            return lib.nn.functional.cross_entropy(model(x), y)

    if wrap is not None:
        loss_of = wrap(loss_of)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, (x, y))


def inference(
    lib: Any, name: str, batch: int, *, wrap: Wrap | None = None
) -> tuple[Callable[[Any], Any], tuple[Any]]:
    """What a network in evaluation says of a random batch on the CPU, and that batch."""
    lib.manual_seed(0)
    forward = (wrap or as_it_is)(_model(lib, name).eval())
    x, _ = _batch(lib, name, batch)

    def answer(x: Any) -> Any:
        with lib.no_grad():
            return forward(x)

    return answer, (x,)


def training_step(
    lib: Any, name: str, batch: int, *, captured: bool = True, fullgraph: bool = False
) -> Callable[[], Any]:
    """A callable that takes one step on a fixed batch.

    Ours is captured unless told otherwise; with `fullgraph` a step that cannot be is an error.
    """
    step, arguments = training(lib, name, batch)
    if captured:
        step = lib.compile(step, fullgraph=fullgraph)
    return lambda: step(*arguments)
