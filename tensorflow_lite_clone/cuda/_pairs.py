"""Functions whose forward and backward are captured as a pair of graphs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.function import Function, once_differentiable
from tensorflow_lite_clone.autograd.gradients import grad
from tensorflow_lite_clone.storage import Storage, keep_lazy
from tensorflow_lite_clone.tensor import Tensor, new_tensor

_STORAGE: Any = vars(Tensor)["_storage"]  # the slot, which subclasses hide behind properties


def graphs_of(device: Any = "cuda") -> Any:
    """What a device offers for graphs; RuntimeError if that is nothing."""
    backend = backends.load(device)
    if backend.graphs is None or backend.graphs.on_host:
        raise RuntimeError(f"'{backend.device}' is no device whose work can be captured in graphs")
    return backend.graphs


def flatten(value: Any, leaves: list) -> Any:
    """Append the leaves of nested tuples, lists and dicts to `leaves`; returns what rebuilds them.

    That is a function of an iterator over as many leaves.
    """
    kind = type(value)
    if kind is tuple or kind is list:
        parts = [flatten(entry, leaves) for entry in value]
        return lambda source: kind([part(source) for part in parts])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [flatten(entry, leaves) for entry in value]
        return lambda source: kind(*[part(source) for part in parts])
    if isinstance(value, dict):
        pairs = [(key, flatten(entry, leaves)) for key, entry in value.items()]
        return lambda source: kind([(key, part(source)) for key, part in pairs])
    leaves.append(value)
    return next


class Pair:
    """A forward graph and its backward graph, and the static memory that they work in.

    `function` is called as ``function(*inputs)`` with static tensors and returns a list of leaves;
    `parameters` are the tensors that want gradients besides the inputs that do.
    """

    def __init__(
        self,
        graphs: Any,
        pool: Any,
        function: Callable[..., list],
        inputs: Sequence[Tensor],
        parameters: Sequence[Tensor],
        allow_unused: bool = True,
    ) -> None:
        self.graphs, self.pool = graphs, pool
        self.function = function
        self.inputs, self.parameters = list(inputs), tuple(parameters)
        self.copies = [graphs.copy_fn(x._storage.array) for x in inputs]
        self.last: Any = None  # a weak reference to the context of the last call
        self.watched: list[Storage] = []  # that backward reads, and others may write
        self.allow_unused = allow_unused
        self.generation = 0  # how often forward has been replayed
        self.outputs: list[Any] = []
        self.clone_fns: list[Callable[[], Any]] | None = None  # what returns copies of the outputs
        self._differentiable: list[int] = []
        self._launch: list[Callable[[], None]] = []

    def _capture(self, work: Callable[[], Any]) -> None:
        made = self.graphs.graph(self.pool)
        with self.graphs.side_stream():
            made.begin()
            try:
                work()
            except BaseException:
                made.abandon()
                raise
            made.end()
        self._launch.append(made.launch)

    def capture_forward(self) -> None:
        """Capture the function."""

        def forward() -> None:
            self.outputs = self.function(*self.inputs)
            saved = saved_by([out for out in self.outputs if isinstance(out, Tensor)])
            keep_lazy(saved - _storages_of_tensors())

        self._capture(forward)
        self._differentiable = [
            i for i, out in enumerate(self.outputs) if isinstance(out, Tensor) and out.requires_grad
        ]

    def capture_backward(self) -> None:
        """Capture the gradients of what the function returned, whose graph is freed by this."""
        wanting = [t for t in (*self.inputs, *self.parameters) if t.requires_grad]
        outputs = [self.outputs[i] for i in self._differentiable]
        found: Any = [None] * len(wanting)
        self.grad_outputs: list[Any] = []
        for output in outputs:
            storage = output._storage
            array = self.graphs.buffer(storage.array)
            static = new_tensor(Storage(array, storage.backend))
            self.grad_outputs.append((static, self.graphs.copy_fn(array)))

        def backward() -> None:
            nonlocal found
            given = [g for g, _ in self.grad_outputs]
            found = grad(outputs, wanting, given, allow_unused=self.allow_unused)

        if outputs:
            self._capture(backward)
        grads = iter(found)
        self.grad_inputs = [
            next(grads) if t.requires_grad else None for t in (*self.inputs, *self.parameters)
        ]
        # The tensors without their graph: the memory they view is the static one.
        self.outputs = [
            new_tensor(out._storage) if isinstance(out, Tensor) else out for out in self.outputs
        ]

    def copy_outputs(self) -> None:
        """Let calls return copies of what the replay computes."""
        self.clone_fns = [
            self.graphs.clone_fn(out._storage.array)
            for out in self.outputs
            if isinstance(out, Tensor)
        ]

    def __call__(self, *tensors: Tensor) -> list:
        """Replay with other inputs: `tensors` are these, then the parameters."""
        results = _Replay.apply(self, *tensors)
        found = iter(results)
        return [next(found) if isinstance(out, Tensor) else out for out in self.outputs]

    def replay(self, tensors: Sequence[Tensor]) -> tuple:
        """Queue forward; returns its results outside of any graph."""
        for copy, static, given in zip(self.copies, self.inputs, tensors):
            if given._storage is not static._storage:
                copy(given._storage.array)
        self._launch[0]()
        self.generation += 1
        outputs = [out for out in self.outputs if isinstance(out, Tensor)]
        if self.clone_fns is None:
            for out in outputs:
                out._storage.bump()  # so that who has saved the last replay's value is told
            return tuple([new_tensor(out._storage) for out in outputs])
        return tuple([
            new_tensor(Storage(clone(), out._storage.backend))
            for clone, out in zip(self.clone_fns, outputs)
        ])  # fmt: skip

    def replay_backward(self, given: dict[int, Tensor]) -> list:
        """Queue backward, from gradients by the number of the output; one for each input."""
        for number, (static, copy) in zip(self._differentiable, self.grad_outputs):
            storage = given[number]._storage
            if storage is not static._storage:
                copy(storage.array)
        if self.grad_outputs:
            self._launch[1]()
        return [None if g is None else new_tensor(g._storage) for g in self.grad_inputs]


def _storages_of_tensors() -> set[Storage]:
    """What tensors hold, of whatever class.

    Only types and the slot are looked at: proxies answer `isinstance` as they like, and classes
    have attributes that raise, such as those of uninitialized parameters.
    """
    found = set()
    for x in gc.get_objects():
        if issubclass(type(x), Tensor):
            with suppress(AttributeError):  # nothing is there, as in sparse tensors
                found.add(_STORAGE.__get__(x))
    return found


def saved_by(outputs: Sequence[Tensor]) -> set[Storage]:
    """The roots of all storages that the graph of `outputs` has saved for backward."""
    nodes = [out._edge[0] for out in outputs if out._edge is not None]
    seen, found = set(nodes), set()
    while nodes:
        node = nodes.pop()
        for storage in getattr(node, "saved", None) or ():
            storage = getattr(storage, "storage", storage)  # a custom function's
            if isinstance(storage, Storage):
                found.add(storage.root or storage)
        for edge in getattr(node, "edges", ()):
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                nodes.append(edge[0])
    return found


class _Replay(Function):
    """One call of a pair of graphs, as a node of the graph that is being recorded."""

    @staticmethod
    def forward(ctx: Any, pair: Pair, *tensors: Tensor) -> Any:
        results = pair.replay(tensors)
        ctx.pair, ctx.generation, ctx.done = pair, pair.generation, False
        ctx.versions = [root.version for root in pair.watched]
        numbers = [i for i, out in enumerate(pair.outputs) if isinstance(out, Tensor)]
        ctx.numbers = numbers
        ctx.mark_non_differentiable(
            *[out for i, out in zip(numbers, results) if i not in pair._differentiable]
        )
        pair.last = weakref.ref(ctx)
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        pair = ctx.pair
        if ctx.generation != pair.generation:
            raise RuntimeError(
                "the values that this backward pass needs were overwritten: the graphed function "
                "was called again before the backward pass of its earlier call"
            )
        if ctx.done:
            raise RuntimeError(
                "Trying to backward through the graph a second time: a captured backward pass "
                "uses its saved values up, also with retain_graph=True"
            )
        if ctx.versions != [root.version for root in pair.watched]:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation since the graphed function was called"
            )
        ctx.done = True
        return None, *pair.replay_backward(dict(zip(ctx.numbers, grads)))


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Callables whose forward and backward are each one graph, as in ``torch.cuda``.

    `callables` is a function or Module over tensors, or a tuple of them that share a memory pool
    and have to be called (and their backward run) in that order; `sample_args` are the tensors to
    capture with, a tuple for each. Later arguments must have the same shapes, layouts, dtypes and
    `requires_grad`. A module is returned itself: in the other training mode than at capture it runs
    as before. Results are overwritten by the next call. RuntimeError for modules with hooks, or
    with buffers that require gradients.
    """
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    pairs = []
    wrapped = []
    for function, args in zip(callables, sample_args, strict=True):
        is_module = hasattr(function, "_parameters")
        if is_module:
            _check_module(function)
        inputs: list[Any] = []
        flatten(tuple(args), inputs)
        if not all([isinstance(value, Tensor) for value in inputs]):
            raise TypeError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other "
                "types are not allowed."
            )
        parameters = tuple(function.parameters()) if is_module else ()
        graphs = inputs[0]._storage.backend.graphs if inputs else None
        graphs = graphs or graphs_of()
        pool = graphs.pool() if pool is None else pool
        call = function.forward if is_module else function
        work = _Flat(call, args)
        with graphs.side_stream():
            _warm_up(work, inputs, parameters, num_warmup_iters, allow_unused_input)
        pair = Pair(graphs, pool, work, inputs, parameters, allow_unused_input)
        pairs.append(pair)
        wrapped.append(_graphed(function, pair, work, is_module))
    for pair in pairs:
        pair.capture_forward()
    for pair in reversed(pairs):
        pair.capture_backward()
    return wrapped[0] if single else tuple(wrapped)


class _Flat:
    """A function over nested arguments as one over their leaves, which returns leaves."""

    def __init__(self, function: Callable[..., Any], args: tuple) -> None:
        self.function = function
        self._arguments = flatten(tuple(args), [])
        self.results: Any = None  # what rebuilds the results

    def __call__(self, *inputs: Tensor) -> list:
        leaves: list[Any] = []
        self.results = flatten(self.function(*self._arguments(iter(inputs))), leaves)
        return leaves


def _check_module(module: Any) -> None:
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
        raise RuntimeError(
            "Modules must not have hooks registered at the time they are passed. However, "
            "registering hooks on modules after passing them through make_graphed_callables is "
            "allowed."
        )
    if any([buffer.requires_grad for buffer in module.buffers()]):
        raise RuntimeError(
            "In any module passed to make_graphed_callables(), only parameters may be trainable. "
            "All buffers must have ``requires_grad=False``."
        )


def _warm_up(
    work: Callable[..., list], inputs: list, parameters: tuple, count: int, unused: bool
) -> None:
    wanting = [t for t in (*inputs, *parameters) if t.requires_grad]
    for _ in range(count):
        outputs = [out for out in work(*inputs) if isinstance(out, Tensor) and out.requires_grad]
        if outputs and wanting:
            grad(outputs, wanting, [_ones(out) for out in outputs], allow_unused=unused)


def _ones(like: Tensor) -> Tensor:
    storage = like._storage
    array = storage.backend.F.ones(storage.physical.shape, dtype=storage.physical.dtype)
    return new_tensor(Storage(array, storage.backend))


def _graphed(function: Any, pair: Pair, work: _Flat, is_module: bool) -> Any:
    parameters = pair.parameters

    def call(*args: Any) -> Any:
        leaves: list[Any] = []
        flatten(args, leaves)
        return work.results(iter(pair(*leaves, *parameters)))

    if not is_module:
        return call
    training, original = function.training, function.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        if function.training == training:
            return call(*args, **kwargs)
        return original(*args, **kwargs)

    function.forward = forward
    return function
