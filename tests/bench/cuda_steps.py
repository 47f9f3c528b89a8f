"""Whole training steps on a CUDA device, over either library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

from tests.examples.both import names, network

MODELS = ("mlp", "cnn", "vit")


class Training(NamedTuple):
    """A function of images and labels that takes one step, and a batch for it."""

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
    return names(lib, "examples/cifar/models.py")["MODELS"][name]()


def training(
    lib: Any,
    name: str,
    batch: int,
    *,
    half: bool = False,
    channels_last: bool = False,
    wrap: Callable[[Callable], Callable] | None = None,
) -> Training:
    """Forward, cross-entropy, backward and optimizer on random pictures.

    The MNIST models have AdamW, residual networks SGD with momentum, each in one launch where the
    library can. With `half` the forward pass is within ``autocast(bfloat16)``. `wrap` is given the
    function that makes the loss.
    """
    lib.manual_seed(0)
    model = _model(lib, name).to("cuda")
    shape = (batch, 1, 28, 28) if name in MODELS else (batch, 3, 32, 32)
    x, y = lib.rand(*shape).to("cuda"), lib.randint(10, (batch,)).to("cuda")
    if channels_last:
        model.to(memory_format=lib.channels_last)
        x = x.contiguous(memory_format=lib.channels_last)
    parameters = list(model.parameters())
    if name in MODELS:
        optimizer = lib.optim.AdamW(parameters, lr=1e-3, fused=True, capturable=True)
    else:
        optimizer = lib.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)

    def loss_of(x: Any, y: Any) -> Any:
        with lib.autocast("cuda", lib.bfloat16) if half else nullcontext():
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
