"""Activation checkpointing: recompute in backward instead of keeping activations."""

from __future__ import annotations

import contextlib
import enum
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensorflow_lite_clone.autograd import engine
from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.autograd.gradients import backward
from tensorflow_lite_clone.autograd.mode import enable_grad, is_grad_enabled, no_grad
from tensorflow_lite_clone.autograd.saved import saved_tensors_hooks
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.errors import Interruption, level_outside
from tensorflow_lite_clone.ops.decorators import autocast
from tensorflow_lite_clone.ops.random.generators import default_states, restore
from tensorflow_lite_clone.tensor import Tensor


class _Defaults:
    early_stop: bool | None = None


class set_checkpoint_early_stop:
    """Context manager: whether recomputations of checkpoints made inside stop as soon as all that
    was saved is there."""

    def __init__(self, enable: bool) -> None:
        self._enable = enable

    def __enter__(self) -> None:
        self._previous = _Defaults.early_stop
        _Defaults.early_stop = self._enable

    def __exit__(self, *exception: object) -> None:
        _Defaults.early_stop = self._previous


def noop_context_fn() -> tuple:
    """The default `context_fn`: two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointPolicy(enum.Enum):
    """What a selective checkpoint should do with an operation's result."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy function is told: whether this is the recomputation."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple:
    """A `context_fn` for selective checkpoints, which recompute everything here: the numbers are
    the same whatever a policy would save. TypeError for what is neither function nor list."""
    if not (isinstance(policy_fn_or_list, list) or callable(policy_fn_or_list)):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    return noop_context_fn()


class CheckpointError(RuntimeError):
    """The recomputation saved other tensors than the original forward."""


def _states(args: Any) -> list:
    """The random generators' states on the CPU and on the devices of the arguments."""
    return default_states({tensor.device for tensor in _tensors(args)})


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in arguments, also in lists, tuples and dicts of them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


class _Surroundings:
    """What the original forward depends on besides its arguments: autocast and random numbers."""

    def __init__(self, args: Any, preserve_rng_state: bool) -> None:
        self._autocast = autocast.snapshot()
        self._states = _states(args) if preserve_rng_state else []

    @contextlib.contextmanager
    def resumed(self) -> Iterator[None]:
        """A block in which they are what they were; afterwards they are as before the block."""
        present = [(generator, generator.get_state()) for generator, _ in self._states]
        restore(self._states)
        try:
            with autocast.resumed(self._autocast):
                yield
        finally:
            restore(present)


class _Handle:
    """Stands for one saved tensor."""

    __slots__ = ("__weakref__",)


class _Enough(Interruption):
    """Raised to stop a recomputation once everything saved is there."""


class _Frame:
    """One checkpointed call: what it saved, by position, and how to run it again."""

    def __init__(
        self,
        recompute: Callable[[], Any],
        surroundings: _Surroundings,
        early_stop: bool,
        checks: bool,
    ) -> None:
        self.recompute = recompute
        self.surroundings = surroundings
        self.early_stop = early_stop
        self.checks = checks  # whether shapes and dtypes are compared
        self.shapes: list[tuple] = []
        self.positions: weakref.WeakKeyDictionary[_Handle, int] = weakref.WeakKeyDictionary()
        self.values: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> _Handle:
        handle = _Handle()
        self.positions[handle] = len(self.shapes)
        self.shapes.append((tensor.shape, tensor.dtype))
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        position = self.positions[handle]
        if position not in self.values:
            self._run_again()
        return self.values.pop(position)

    def _run_again(self) -> None:
        count = 0

        def keep(tensor: Tensor) -> Tensor:
            nonlocal count
            if count >= len(self.shapes) or (
                self.checks and (tensor.shape, tensor.dtype) != self.shapes[count]
            ):
                saved = "nothing"
                if count < len(self.shapes):
                    shape, dtype = self.shapes[count]
                    saved = f"{list(shape)} {dtype}"
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have "
                    "different metadata than during the forward pass: tensor at position "
                    f"{count}, saved {saved}, recomputed {list(tensor.shape)} {tensor.dtype}"
                )
            self.values[count] = tensor
            count += 1
            if self.early_stop and count == len(self.shapes):
                raise _Enough
            return tensor

        with (
            self.surroundings.resumed(),
            enable_grad(),
            saved_tensors_hooks(keep, lambda tensor: tensor),
            contextlib.suppress(_Enough),
        ):
            self.recompute()
        if count < len(self.shapes):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                f"original forward and recomputation. Number of tensors saved during forward: "
                f"{len(self.shapes)} Number of tensors saved during recomputation: {count}."
            )


class _Reentrant(Function):
    """The older form: runs without a graph, and backward runs an inner backward."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        ctx.function = function
        ctx.surroundings = _Surroundings(args, preserve)
        ctx.arguments = [None if isinstance(value, Tensor) else value for value in args]
        ctx.places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        walk = engine.current.walk
        if walk is not None and walk.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        arguments = list(ctx.arguments)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            copy = tensor.detach()
            arguments[place] = copy.requires_grad_(ctx.needs_input_grad[place + 2])
        with ctx.surroundings.resumed(), enable_grad():
            outputs = ctx.function(*arguments)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (output, g)
            for output, g in zip(outputs, grads, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([output for output, _ in pairs], [g for _, g in pairs])
        return (
            None,
            None,
            *(value.grad if isinstance(value, Tensor) else None for value in arguments),
        )


def detach_variable(inputs: tuple) -> tuple:
    """The inputs, with every tensor as a leaf of its own that requires a gradient as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value
        for value in inputs
    )


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices of the GPUs that hold an argument, and the states of their generators."""
    others = [pair for pair in _states(args) if pair[0].device.type != "cpu"]
    return [generator.device.index for generator, _ in others], [state for _, state in others]


def set_device_states(
    devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None
) -> None:
    """Let the generators of GPUs continue from these states."""
    for index, state in zip(devices, states):
        _, (generator, _) = default_states([Device(device_type or "cuda", index)])
        generator.set_state(state)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor of the inputs requires a gradient."""
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            stacklevel=level_outside(),
        )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run ``function(*args, **kwargs)`` without keeping what backward needs; backward runs it
    again.

    The second run is under the autocast of the first, and with `preserve_rng_state` draws the same
    random numbers. Raises CheckpointError (a RuntimeError) when it saves another number of tensors,
    or tensors of other shapes or dtypes; these are not compared if `determinism_check` is "none".
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended.",
            stacklevel=level_outside(),
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        if is_grad_enabled():
            check_backward_validity(args)
        return _Reentrant.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    first, second = context_fn()
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)

    def recompute() -> None:
        with second:
            function(*args, **kwargs)

    chosen = _Defaults.early_stop
    frame = _Frame(
        recompute,
        _Surroundings((args, kwargs), preserve_rng_state),
        early_stop if chosen is None else chosen,
        determinism_check == "default",
    )
    with first, saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Tensor,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Tensor:
    """Run a sequence of functions in `segments` checkpointed parts (the last one is not)."""
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start: int, end: int) -> Callable[[Tensor], Tensor]:
        def forward(x: Tensor) -> Tensor:
            for step in steps[start:end]:
                x = step(x)
            return x

        return forward

    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(
            run(start, start + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return run(size * (segments - 1), len(steps))(input)
