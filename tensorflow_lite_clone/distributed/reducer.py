"""Averages gradients over the processes of a group while the backward pass goes on."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from tensorflow_lite_clone.autograd.engine import queue_callback
from tensorflow_lite_clone.autograd.graph import get_gradient_edge
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import int32, int64
from tensorflow_lite_clone.cuda.graphs import is_current_stream_capturing
from tensorflow_lite_clone.distributed.collectives import all_gather, all_reduce, broadcast
from tensorflow_lite_clone.distributed.grad_bucket import GradBucket, SparseBucket, assign_buckets
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.ops.create.constructors import tensor as new_tensor
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


class Reducer:
    """The gradients of some parameters, in buckets that are reduced as soon as they are full.

    The last parameters come first, as their gradients do; after the first backward pass buckets
    follow the order in which the gradients came in rank 0. All processes reduce all buckets in the
    same order. `names` are for messages; for `limits` see `assign_buckets`; `sparse` are the places
    of parameters with sparse gradients, which are gathered; the other arguments are those of
    `DistributedDataParallel`.

    `prepare` announces a backward pass whose gradients are to be reduced. Within it hooks of the
    parameters count the gradients, and at its end the reduced ones become the parameters'. So on a
    GPU the host waits for nothing, and a step can be captured in a graph.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: Any,
        limits: Sequence[float],
        *,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        sparse: Collection[int] = (),
    ) -> None:
        self._sparse = frozenset(sparse)
        self._parameters, self._names, self._group = list(parameters), list(names), group
        self._limits = list(limits)
        self._as_views = gradient_as_bucket_view
        self._searches = find_unused_parameters and not static_graph
        self._static = static_graph
        #: Reduces a bucket instead of the average: gives a Future of the result.
        self.hook: Callable[[GradBucket], Any] | None = None
        #: Whether the next forward pass begins with equal buffers: after one that was prepared.
        self.syncs_buffers = False
        #: The number of processes to divide by, where it is not the group's; for `Join`.
        self.active: Callable[[], int] | None = None

        count = len(self._parameters)
        self._expecting = False  # a backward pass is announced
        self._begun = False  # ... and the first gradient is there
        self._waiting = False  # ... and its end is waited for
        self._ready: set[int] = set()  # the places of parameters whose gradients are there
        self._unused: Sequence[int] = ()  # of which no gradient will come in this pass
        self._used = [False] * count  # here, since the last reduction
        self._used_anywhere = [True] * count
        self._order: dict[int, None] | None = {}  # of arrival in the first pass
        # Of a static graph, after its first pass: how often each gradient comes.
        self._arrivals: list[int] | None = None
        self._counts = [0] * count
        self._told = False  # what is used anywhere: a static graph's processes say it once

        self._arrange(range(count - 1, -1, -1))
        reference = weakref.ref(self)
        handles = [
            parameter.register_post_accumulate_grad_hook(
                functools.partial(_arrived, reference, place)
            )
            for place, parameter in enumerate(self._parameters)
        ]
        weakref.finalize(self, _remove, handles)

    def _arrange(self, order: Iterable[int]) -> None:
        """Make the buckets, with the parameters in `order`."""
        assigned = assign_buckets(self._parameters, order, self._limits, self._sparse)
        self.buckets = [
            (SparseBucket if places[0] in self._sparse else GradBucket)(
                index,
                index == len(assigned) - 1,
                places,
                [self._parameters[place] for place in places],
            )
            for index, places in enumerate(assigned)
        ]
        self._bucket_of = {place: b for b in self.buckets for place in b.places}
        self._missing = [len(bucket.places) for bucket in self.buckets]
        self._works: list[Any] = []  # of the buckets that are on their way

    @property
    def _learns(self) -> bool:
        """Whether this is the first pass of a static graph."""
        return self._static and self._arrivals is None

    # -- a backward pass ----------------------------------------------------------------------

    def prepare(self, outputs: Sequence[Tensor]) -> None:
        """Expect a backward pass from `outputs`; RuntimeError if the last one missed gradients."""
        if self._begun:
            self._complain()
        self._begin()
        wanting = [output for output in outputs if output.requires_grad]
        if self._searches:
            self._unused = self._unreachable(wanting)
        elif self._learns:
            self._call_at_end(wanting)
        self._expecting = True

    def _begin(self) -> None:
        self._ready.clear()
        self._works.clear()
        self._missing = [len(bucket.places) for bucket in self.buckets]
        if self._static:
            self._counts = self._arrivals.copy() if self._arrivals else [0] * len(self._counts)

    def _unreachable(self, outputs: list[Tensor]) -> list[int]:
        """The places of the parameters that are not in the graphs of `outputs`."""
        stack = [get_gradient_edge(output).node for output in outputs]
        seen = set(stack)
        while stack:
            for node, _ in stack.pop().next_functions:
                if node is not None and node not in seen:
                    seen.add(node)
                    stack.append(node)
        return [
            place
            for place, parameter in enumerate(self._parameters)
            if not parameter.requires_grad or get_gradient_edge(parameter).node not in seen
        ]

    def _call_at_end(self, outputs: list[Tensor]) -> None:
        """Let `_reduce_all` be called when the backward pass from `outputs` is over.

        Backward passes inside that one, of checkpoints, do not count.
        """

        def begin(_: Tensor) -> None:
            if not self._waiting:
                self._waiting = True
                queue_callback(self._reduce_all)

        for output in outputs:
            output.register_hook(begin)

    def arrived(self, place: int) -> None:
        """Count a gradient."""
        self._used[place] = True
        if not self._expecting:
            return
        if self._order is not None:
            self._order.setdefault(place)
        if self._learns:
            self._counts[place] += 1
            return
        if self._static:
            self._counts[place] -= 1
            if self._counts[place] > 0:
                return
        if not self._begun:
            self._begun = True
            for unused in self._unused:
                self._mark(unused)
        self._mark(place)

    def _reduce_all(self) -> None:
        self._waiting = False
        for place in range(len(self._parameters)):
            self._mark(place)

    def _mark(self, place: int) -> None:
        """Reduce the buckets that are full now that the gradient at `place` has come."""
        if place in self._ready:
            raise RuntimeError(
                "Expected to mark a variable ready only once. The gradient of the parameter "
                f"'{self._names[place]}' (at index {place}) came twice in one iteration: it is "
                "used outside of the module's `forward`, or in several reentrant backward passes "
                "(of checkpoints, say), or `forward` returns tensors inside of an object that is "
                "not looked into. Where the graph is the same in all iterations, "
                "static_graph=True helps."
            )
        self._ready.add(place)
        works, buckets, missing = self._works, self.buckets, self._missing
        missing[self._bucket_of[place].index()] -= 1
        while len(works) < len(buckets) and not missing[len(works)]:
            bucket = buckets[len(works)]
            bucket.collect(self._as_views)
            works.append(self._launch(bucket))
        if len(works) == len(buckets):
            queue_callback(self._finish)

    def _launch(self, bucket: GradBucket) -> Any:
        """Start the reduction of a bucket; what can be waited for."""
        if self.hook is not None:
            return self.hook(bucket)
        if self.active is not None:
            bucket.buffer().mul_(self._group.size() / self.active())
        if bucket.buffer().is_sparse:
            bucket.set_buffer(_average_of_sparse(bucket.buffer(), self._group))
            return None
        return all_reduce(bucket.buffer(), ReduceOp.AVG, self._group, async_op=True)

    def _result(self, bucket: GradBucket, work: Any) -> Tensor:
        result = None if work is None else work.wait()
        if self.hook is None or result is None:
            return bucket.buffer()
        return result[0] if isinstance(result, list) else result

    @no_grad()
    def _finish(self) -> None:
        used = self._used_by_anyone()
        for bucket, work in zip(self.buckets, self._works):
            bucket.hand_back(self._result(bucket, work), used, self._as_views)
        self._works.clear()
        self._expecting = self._begun = False
        self._used = [False] * len(self._used)
        if self._learns:
            self._arrivals = self._counts
            self._unused = [place for place, count in enumerate(self._counts) if not count]
        self._follow_order()

    def _used_by_anyone(self) -> list[bool]:
        """Which parameters have a gradient in any process; others keep theirs as they are."""
        if not self._searches and (not self._static or self._told):
            return self._used_anywhere
        counts = new_tensor(self._used, dtype=int32, device=self._parameters[0].device)
        all_reduce(counts, group=self._group)
        used = self._used
        if not all(used):  # else there is no need to look, and to wait
            used = [count > 0 for count in counts.tolist()]
        if self._static:
            self._used_anywhere, self._told = used, True
        return used

    def _follow_order(self) -> None:
        """Once, arrange the buckets in the order in which the gradients came in rank 0."""
        if self._order is None or self._searches or is_current_stream_capturing():
            return
        rest = [i for i in range(len(self._parameters) - 1, -1, -1) if i not in self._order]
        device = self._parameters[0].device
        order = new_tensor([*self._order, *rest], dtype=int64, device=device)
        broadcast(order, group=self._group, group_src=0)
        self._order = None
        self._arrange(order.tolist())
        if self._as_views:
            for bucket in self.buckets:
                bucket.collect(True)

    # -- without one --------------------------------------------------------------------------

    @no_grad()
    def shadow(self) -> None:
        """Take part in the others' reductions, with zeros."""
        self._used = [False] * len(self._used)
        works = []
        for bucket in self.buckets:
            bucket.clear()
            works.append(self._launch(bucket))
        self._used_by_anyone()
        for bucket, work in zip(self.buckets, works):
            self._result(bucket, work)
        self._follow_order()

    def _complain(self) -> None:
        missing = [i for i in range(len(self._parameters)) if i not in self._ready]
        names = ", ".join([self._names[i] for i in missing])
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new "
            "one. This error indicates that your module has parameters that were not used in "
            "producing loss. You can enable unused parameter detection by passing the keyword "
            "argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` "
            "function outputs participate in calculating loss.\nParameter indices which did not "
            f"receive grad for rank {self._group.rank()}: {' '.join(map(str, missing))} ({names})"
        )


@no_grad()
def _average_of_sparse(g: Any, group: Any) -> Tensor:
    """The average over a group of sparse tensors of one shape, coalesced.

    Indices and values are gathered, filled up to the largest number of elements.
    """
    g = g.coalesce()
    counts = [new_tensor([0], dtype=int64, device=g.device) for _ in range(group.size())]
    all_gather(counts, new_tensor([g._nnz()], dtype=int64, device=g.device), group)
    lengths = [int(count) for count in counts]
    parts = []
    for own in (g._indices().t(), g._values()):  # elements along the first dimension
        filled = own.new_zeros((max(lengths), *own.shape[1:]))
        filled[: len(own)] = own
        gathered = [zeros_like(filled) for _ in lengths]
        all_gather(gathered, filled, group)
        parts.append(cat([x[:length] for x, length in zip(gathered, lengths)]))
    indices, values = parts
    average: Tensor = g.new(indices.t(), values / group.size(), g.shape).coalesce()
    return average


def _arrived(reference: weakref.ref[Reducer], place: int, parameter: Tensor) -> None:
    reducer = reference()
    if reducer is not None:
        reducer.arrived(place)


def _remove(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
