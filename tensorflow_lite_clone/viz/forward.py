"""What a model runs: every operation, in the modules that called it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.random.generators import fork_rng
from tensorflow_lite_clone.storage import contiguous_storages
from tensorflow_lite_clone.tensor.uninitialized import is_lazy
from tensorflow_lite_clone.viz.graph import Graph
from tensorflow_lite_clone.viz.recorder import Recorder


def forward(
    model: Callable[..., Any],
    *inputs: Any,
    depth: int | None = None,
    time: bool = False,
    **keywords: Any,
) -> Graph:
    """The graph of what ``model(*inputs, **keywords)`` runs: it is run once, and watched.

    Each call of a module is a group around its operations, parameters and buffers. A model with
    control flow shows the way that these inputs take. Buffers and random generators are left as
    they were. `model` may be any function of tensors. What runs on other threads is not seen.

    `depth`: so many levels of modules are open at first (None: as many as stay readable). `time`:
    measures each operation (the model runs twice then, as first runs are slow), waiting for its
    device before and after. Arguments of the model with these two names go in by their position,
    or by ``functools.partial``. Raises what the model raises.
    """
    recorder = Recorder(model, depth, time)
    with _unchanged(model):
        if time:
            model(*inputs, **keywords)
    with _unchanged(model):
        recorder.add_inputs(inputs, keywords)
        with contiguous_storages(), recorder:
            results = model(*inputs, **keywords)
        recorder.add_outputs(results)
    return recorder.graph


@contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """Give buffers and random generators back the state they have now."""
    modules = list(model.modules()) if isinstance(model, Module) else []
    before = [
        (module, name, buffer, buffer._version, buffer.detach().clone())
        for module in modules
        for name, buffer in module.named_buffers(recurse=False)
        if not is_lazy(buffer)
    ]
    try:
        with fork_rng():
            yield
    finally:
        with no_grad():
            for module, name, buffer, version, values in before:
                if getattr(module, name) is not buffer:
                    setattr(module, name, buffer)
                if buffer._version != version:
                    buffer.copy_(values)
