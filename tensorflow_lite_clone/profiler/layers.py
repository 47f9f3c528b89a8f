"""`layers`: where a model's time and memory go, module by module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.gradients import backward as run_backward
from tensorflow_lite_clone.autograd.mode import enable_grad, no_grad
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.create.constructors import ones_like
from tensorflow_lite_clone.ops.random.generators import fork_rng
from tensorflow_lite_clone.profiler._layer_report import LayerReport
from tensorflow_lite_clone.profiler._layer_rows import report
from tensorflow_lite_clone.profiler._survey import Survey, choose_gpus, tensors_in
from tensorflow_lite_clone.profiler._watch import Watch
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.uninitialized import UninitializedTensorMixin
from tensorflow_lite_clone.utils._pytree import tree_map


def layers(
    model: Module,
    *inputs: Any,
    kwargs: dict[str, Any] | None = None,
    trials: int = 100,
    warmup: int = 5,
    backward: bool = False,
    loss: Callable[[Any], Tensor] | None = None,
    progress: bool = True,
) -> LayerReport:
    """Run ``model(*inputs, **kwargs)`` `trials` times; report what each module takes.

    The model runs in the mode it is in, without recording a graph unless `backward` is set: then
    gradients flow from ``loss(output)``, a scalar, or, without a `loss`, from all outputs that
    have a graph, with ones for gradients. `warmup` runs come before, and one that looks at shapes,
    devices and memory. `progress` shows a bar on standard error, tqdm's if it is installed.

    What the model had stays as it was: buffers, gradients, the random generators' states. Hooks
    are gone afterwards, also when the model raises, whose error passes. What is measured how is
    said at `LayerReport`. TypeError for what is no module, ValueError for less than one run,
    RuntimeError when `backward` finds nothing that requires a gradient.
    """
    if not isinstance(model, Module):
        raise TypeError(f"layers() takes a Module, not {type(model).__name__}")
    if trials < 1 or warmup < 1:
        raise ValueError(
            f"layers() takes at least 1 trial and 1 warmup run, not {trials} and {warmup}"
        )
    step = _Step(model, inputs, kwargs or {}, backward, loss)
    watch, bare = Watch(model, backward), Watch(model, backward)
    unwatched = -(-trials // 8)  # before and after the watched runs, to know what watching adds
    with ExitStack() as stack:
        stack.enter_context(fork_rng())
        stack.enter_context(_untouched(model))
        stack.enter_context(enable_grad() if backward else no_grad())
        advance = stack.enter_context(_bar(warmup + 1 + trials + 2 * unwatched, progress))

        def run(noted: Watch, times: int) -> None:
            for _ in range(times):
                step.run(noted)
                advance()

        run(watch, warmup)  # before there are hooks: lazy modules and compilers do their part
        with watch, Survey(watch) as survey:
            survey.inputs(tensors_in((step.args, step.kwargs)))
            run(watch, 1)
        watch.forget()
        watch.loss.takes |= watch.root.gives
        gpus = choose_gpus(watch.everything())
        bare.root.gpu, bare.loss.gpu = watch.root.gpu, watch.loss.gpu
        for gpu in gpus:
            backends.load(gpu).synchronize()
        run(bare, unwatched)
        with watch:
            run(watch, trials)
        run(bare, unwatched)
        watch.resolve()
        bare.resolve()
        cost = watch.correct(bare)
    return report(watch, backward, cost)


class _Step:
    """What is done in each run: forward, the loss, and backward if it is wanted."""

    def __init__(self, model: Module, args: tuple, kwargs: dict, backward: bool, loss: Any) -> None:
        self.model, self.backward, self.loss = model, backward, loss
        self.args, self.kwargs = args, kwargs
        if backward:
            self.args, self.kwargs = tree_map(_own, (args, kwargs))

    def run(self, watch: Watch) -> None:
        """One run, noted by `watch`."""
        if self.backward:
            for tensor in [*self.model.parameters(), *tensors_in((self.args, self.kwargs))]:
                if tensor.requires_grad:
                    tensor.grad = None
        watch.begin()
        output = self.model(*self.args, **self.kwargs)
        if self.loss is not None:
            watch.switch(watch.loss)
            output = self.loss(output)
        watch.switch(None)
        if self.backward:
            ends = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
            if not ends:
                raise RuntimeError(
                    "layers(backward=True): nothing that the model gives requires a gradient"
                )
            ones = None if self.loss is not None else [ones_like(tensor) for tensor in ends]
            watch.turn()
            run_backward(ends, ones)
        watch.finish()


def _own(value: Any) -> Any:
    """An input that wants a gradient without what made it: that graph is the caller's."""
    if isinstance(value, Tensor) and value.requires_grad:
        return value.detach().requires_grad_()
    return value


@contextmanager
def _untouched(model: Module) -> Iterator[None]:
    """Context after which buffers and gradients are what they were."""
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    buffers = [
        (module, name, buffer, buffer._version, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if not isinstance(buffer, UninitializedTensorMixin)
    ]
    try:
        yield
    finally:
        for parameter, grad in gradients:
            parameter.grad = grad
        with no_grad():
            for module, name, buffer, version, value in buffers:
                if buffer._version != version:
                    buffer.copy_(value)
                if getattr(module, name) is not buffer:
                    setattr(module, name, buffer)


@contextmanager
def _bar(total: int, enabled: bool) -> Iterator[Callable[[], object]]:
    """A function to be called after each run, which moves a bar on standard error."""
    if not enabled:
        yield lambda: None
        return
    try:
        from tqdm import tqdm  # an optional extra
    except ImportError:
        yield _percents(total)
        return
    with tqdm(desc="layers", total=total, unit="run", leave=False) as bar:
        yield bar.update


def _percents(total: int) -> Callable[[], None]:
    """Tells every tenth of `total` calls on standard error."""
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done * 10 // total != (done - 1) * 10 // total:
            print(f"layers: {done} of {total} runs", file=sys.stderr)

    return advance
