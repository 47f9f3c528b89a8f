"""Whole training steps on a CUDA device: ours captured in a graph, PyTorch's eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.cuda_kernels import Case
from tests.examples.both import network

NAME = "steps"
DEVICE = "cuda"
MODELS = ("mlp", "cnn", "vit")
BATCHES = (32, 128)


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
    return network(lib, "examples/mnist/vit/train.py")(4, 128, 2, 1)


def training_step(
    lib: Any, name: str, batch: int, *, captured: bool = True, fullgraph: bool = False
) -> Callable[[], Any]:
    """A callable that takes one step of AdamW on a fixed batch of random digits.

    Ours is captured unless told otherwise; with `fullgraph` a step that cannot be is an error.
    """
    lib.manual_seed(0)
    model = _model(lib, name).to("cuda")
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
    x = lib.rand(batch, 1, 28, 28).to("cuda")
    y = lib.randint(10, (batch,)).to("cuda")

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if lib.__name__ != "torch" and captured:
        step = lib.compile(step, fullgraph=fullgraph)
    return lambda: step(x, y)


def cases(lib: Any) -> Iterator[Case]:
    """A step of each model at each batch size."""
    for name in MODELS:
        for batch in BATCHES:
            yield Case(f"{name} step b{batch}", training_step(lib, name, batch))
