"""One captured form of a compiled function: how it is captured, when it fits, how it replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.compiler.signature import StaleError, UnstableError, UnsuitableError
from tensorflow_lite_clone.compiler.state import Gradients, GuardSet
from tensorflow_lite_clone.compiler.trace import Trace
from tensorflow_lite_clone.cuda._pairs import Pair, flatten, saved_by
from tensorflow_lite_clone.cuda.graphs import Numbers
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor


class Captured:
    """What the two kinds below share: inputs, surroundings, dynamic scalars.

    `tensors` are the tensor arguments of the call that is captured. Those at the positions
    `pinned` are worked on where they lie, the others are copied into static memory. `trace` is
    that of an earlier call that ran without a graph.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        backend: Any,
        call: tuple[tuple, dict[str, Any]],
        tensors: Sequence[Tensor],
        pinned: set[int],
        trace: Trace,
    ) -> None:
        self.function, self.backend, self.graphs = function, backend, backend.graphs
        self.trace, self.pinned = trace, pinned
        self.guards = GuardSet(function, trace, backend)
        self.numbers = Numbers(self.graphs)
        self._leaves: list[Any] = []
        self._rebuild = flatten(call, self._leaves)
        self.pins = [(i, tensors[i], tensors[i]._storage.array) for i in sorted(pinned)]
        self.inputs = [t if i in pinned else self._static(t) for i, t in enumerate(tensors)]
        self.written: list[tuple[Storage, int]] = []
        self.keep: list[Any] = trace.arrays()  # memory that the graph reads

    def _static(self, tensor: Tensor) -> Tensor:
        return new_tensor(Storage(self.graphs.buffer(tensor._storage.array), self.backend))

    def arguments(self, inputs: Sequence[Tensor]) -> tuple[tuple, dict[str, Any]]:
        """The call's arguments with these tensors in place of its own."""
        source = iter(inputs)
        leaves = [next(source) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        return self._rebuild(iter(leaves))

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Whether a replay does now what the function would do."""
        for i, tensor, array in self.pins:
            if tensors[i] is not tensor or tensor._storage.array is not array:
                return False
        return self.guards.is_valid()

    def _capture(self, work: Callable[[], Any]) -> Trace:
        """Run `work` under a trace, with dynamic scalars, and check that it can be replayed."""
        trace = Trace()
        try:
            with self.numbers, trace:
                work()
        finally:
            self.written = list(trace.written.items())
        known = self.trace
        if not (
            trace.modules.keys() <= known.modules.keys()
            and trace.optimizers.keys() <= known.optimizers.keys()
        ):
            raise UnstableError("it calls other modules or optimizers than before")
        for i, static in enumerate(self.inputs):
            if i not in self.pinned and static._storage in trace.written:
                raise UnstableError("it writes into an argument")
        read = {id(array) for array in trace.arrays()}
        self.guards.check(self.numbers.numbers, read)
        # No graph holds an optimizer's state, so that nobody looks at its versions.
        unseen = set().union(*[guard.storages() for guard in self.guards.optimizer_guards])
        self.counted = [(root, count) for root, count in self.written if root not in unseen]
        return trace

    def undo(self) -> None:
        """After a capture that failed: the host's state as it was before."""
        self.guards.restore()
        for root, count in self.written:
            root.version -= count
        self.written = []

    def _refresh(self) -> None:
        """Fill the cells of the dynamic scalars; StaleError if the graph holds an old constant."""
        if self.numbers.numbers:
            values = self.numbers.read()
            if values is None:
                raise StaleError
            self.numbers.fill(values)

    def _check_device(self, result: Tensor) -> None:
        if result._storage.backend is not self.backend:
            raise UnsuitableError(f"it returns a tensor on '{result.device}'")


class Step(Captured):
    """A function whose results are in no graph: a training step, or inference, as one graph."""

    gradients = Gradients([])  # until it is captured

    def capture(self, pool: Any) -> None:
        """Capture it; nothing is executed. All host state is as after one call of the function."""
        leaves = dict(self.trace.leaves)
        for tensor in (*self.guards.parameters(), *self.inputs):
            if tensor._edge is not None and type(tensor._edge[0]) is Leaf:
                leaves[id(tensor)] = tensor
        if any([leaf._grad is not None and leaf._grad.is_sparse for leaf in leaves.values()]):
            raise UnsuitableError("a parameter has a sparse gradient")
        self.gradients = Gradients(list(leaves.values()))
        self._graph = graph = self.graphs.graph(pool)
        result: Any = None

        def work() -> None:
            nonlocal result
            args, kwargs = self.arguments(self.inputs)
            with self.graphs.side_stream():
                graph.begin()
                try:
                    result = self.function(*args, **kwargs)
                except BaseException:
                    graph.abandon()
                    raise
                graph.end()

        trace = self._capture(work)
        if not trace.leaves.keys() <= leaves.keys():
            raise UnstableError("it uses other parameters than before")
        self.gradients.finish()
        self._read_results(result)
        del result  # with its graph, if it has one
        self.keep += trace.arrays()
        self._launch = graph.launch
        self._copies = [
            (i, self.graphs.copy_fn(static._storage.array))
            for i, static in enumerate(self.inputs)
            if i not in self.pinned
        ]
        self.gradients.forget()

    def undo(self) -> None:
        super().undo()
        self.gradients.restore()

    def _read_results(self, result: Any) -> None:
        leaves: list[Any] = []
        self._result = flatten(result, leaves)
        arguments = {id(tensor): i for i, tensor in enumerate(self.inputs)}
        outside = {id(tensor) for tensor in self.guards.parameters()}
        places: dict[int, int] = {}
        self._outputs: list[tuple[str, Any]] = []
        for place, leaf in enumerate(leaves):
            if not isinstance(leaf, Tensor) or id(leaf) in outside:
                self._outputs.append(("value", leaf))
            elif id(leaf) in arguments:
                self._outputs.append(("argument", arguments[id(leaf)]))
            elif id(leaf._storage.array) in places:
                self._outputs.append(("again", places[id(leaf._storage.array)]))
            else:
                self._check_device(leaf)
                places[id(leaf._storage.array)] = place
                self._outputs.append(("new", self._get_fn(leaf._storage)))
        # Most often there is one result, a tensor.
        is_single = isinstance(result, Tensor) and self._outputs[0][0] == "new"
        self._only: Any = self._outputs[0][1] if is_single else None

    def _get_fn(self, storage: Storage) -> Callable[[], Any]:
        """The function that gives a result of a replay in memory that is the caller's."""
        if self.graphs.on_host:  # where a replay may make it anew
            return self._graph.get_fn(storage.array)
        self.keep.append(storage)
        return self.graphs.clone_fn(storage.array)

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        return self.gradients.is_valid() and super().fits(tensors)

    def run(self, tensors: Sequence[Tensor], first: bool = False) -> Any:
        """Replay it: one call of the function. `first`: the capture has done the host's part."""
        if self.numbers.numbers:
            self._refresh()
        for i, copy in self._copies:
            copy(tensors[i]._storage.array)
        self._launch()
        if not first:
            for leaf, g in self.gradients.left:
                leaf._grad = g
            for root, count in self.counted:
                root.version += count
        backend = self.backend
        if self._only is not None:
            return new_tensor(Storage(self._only(), backend))
        results: list[Any] = []
        for kind, value in self._outputs:
            if kind == "new":
                results.append(new_tensor(Storage(value(), backend)))
            elif kind == "again":
                results.append(new_tensor(results[value]._storage))
            else:
                results.append(tensors[value] if kind == "argument" else value)
        return self._result(iter(results))


class Differentiable(Captured):
    """A function whose results want gradients: a graph for it, and one for its gradient."""

    def _static(self, tensor: Tensor) -> Tensor:
        static = super()._static(tensor)
        if tensor._edge is not None and mode.grad:
            static.requires_grad = True
        return static

    def capture(self, pool: Any) -> None:
        """Capture both; nothing is executed."""

        def function(*inputs: Tensor) -> list:
            args, kwargs = self.arguments(inputs)
            leaves: list[Any] = []
            self._result = flatten(self.function(*args, **kwargs), leaves)
            for leaf in leaves:
                if isinstance(leaf, Tensor):
                    self._check_device(leaf)
            return leaves

        self.pair = pair = Pair(self.graphs, pool, function, self.inputs, ())
        trace = self._capture(pair.capture_forward)
        own = {id(tensor) for tensor in self.inputs}
        pair.parameters = tuple([leaf for key, leaf in trace.leaves.items() if key not in own])
        saved = saved_by([out for out in pair.outputs if isinstance(out, Tensor)])
        others = (*pair.parameters, *self.guards.tensors(), *[pin[1] for pin in self.pins])
        roots = {tensor._storage.root or tensor._storage for tensor in others}
        pair.watched = list(saved & roots)
        try:
            pair.capture_backward()
        except Exception as error:
            # Some work must run once before it can be captured, and backward may not have yet.
            raise UnstableError(f"its gradient cannot be captured: {error}") from error
        pair.copy_outputs()
        self.keep += trace.arrays()  # not before: backward uses the memory of forward again

    @property
    def waits(self) -> bool:
        """Whether an earlier call's backward pass may still come: its memory must stay."""
        context = None if self.pair.last is None else self.pair.last()
        return context is not None and not context.done

    def run(self, tensors: Sequence[Tensor], first: bool = False) -> Any:
        """Replay forward as one call of the function; its backward is a node of the graph."""
        self._refresh()
        if not first:
            for root, count in self.counted:
                root.version += count
        results = self.pair(*tensors, *self.pair.parameters)
        return self._result(iter(results))
