"""Where a model is, moment by moment: a mark at each change from one module to another.

All time between two marks belongs to one module, so nothing is lost and nothing counts twice.
What a module does itself is told from what its children do; a sum over all is the whole run.

In a backward pass each node of the graph belongs to the module that was running when the node was
made. Nodes are numbered in that order, so the numbers at which modules were entered and left tell
whose a node is; modules and tensors carry no hooks on gradients, and in-place writes are as ever.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.node import next_sequence_number
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.profiler._part import Part
from tensorflow_lite_clone.trace import Observer

#: (who runs from now on, perf_counter, the marks of the GPUs concerned, whether a call begins here)
_Mark = tuple[Part | None, float, dict[Device, Any], bool]
_LIVE = 4000  # marks of GPUs that may wait to be read


class Watch(Observer):
    """Context in which the runs of a model are noted; `begin` and `finish` enclose each run.

    Outside of the context runs may be noted too, then as a whole. What runs in other threads is not
    seen.
    """

    def __init__(self, model: Module, backward: bool = False) -> None:
        self.root = Part("", model)
        self.loss = Part("(loss)")
        self.parts = {module: Part(name, module) for name, module in model.named_modules() if name}
        self.stack: list[Part] = []
        self._backward = backward
        self._turned: int | None = None  # how many marks there were when backward began
        self._pending: list[tuple[list[_Mark], int | None]] = []
        self._gpus: dict[Device, Any] = {}  # what makes and reads marks there
        self._live = 0

    def in_forward(self) -> bool:
        """Whether what runs now is the model's forward, and not what is recomputed for backward."""
        return self._turned is None and self.is_here()

    def everything(self) -> list[Part]:
        """The model itself, the modules below it, the loss."""
        return [self.root, *self.parts.values(), self.loss]

    def registrations(self) -> Iterator[Any]:
        """Follow calls of the modules below the model."""
        for module, part in self.parts.items():
            before, after = self._hooks_of(part)
            yield module.register_forward_pre_hook(before, prepend=True)
            yield module.register_forward_hook(after, always_call=True)

    def _hooks_of(self, part: Part) -> tuple[Callable[..., None], Callable[..., None]]:
        return lambda module, args: self._enter(part), lambda module, args, out: self._leave(part)

    # -- a run --------------------------------------------------------------------------------

    def begin(self) -> None:
        """The model is about to be called."""
        self.stack = [self.root]
        self._marks: list[_Mark] = []
        self._bounds: list[int] = []  # of sequence numbers
        self._owners: list[Part | None] = []  # of the nodes from each bound on
        self._turned = None
        self._mark(None, self.root)

    def switch(self, part: Part | None) -> None:
        """From now on `part` runs, which is no module that is called; None: nothing of interest."""
        before, self.stack[-1:] = self.stack[-1], [part or self.root]
        self._mark(before, part)

    def turn(self) -> None:
        """The backward pass is about to begin."""
        self._turned = len(self._marks)
        self.switch(self.root)

    def finish(self) -> None:
        """The run is over; GPUs go on."""
        self.switch(None)
        self._pending.append((self._marks, self._turned))
        if self._live > _LIVE:
            self.resolve()

    def forget(self) -> None:
        """Drop the runs so far."""
        self._pending.clear()

    def _enter(self, part: Part) -> None:
        if self.is_here():
            before = self.stack[-1]
            self.stack.append(part)
            self._mark(before, part, True)

    def _leave(self, part: Part) -> None:
        now = perf_counter()
        if self.is_here() and part in self.stack:
            before = self.stack[-1]
            while self.stack.pop() is not part:  # calls that were left in other ways
                pass
            self._mark(before, self.stack[-1], now=now)

    def around_gradient(self, node: Any, call: Callable[[list], Any], grads: list) -> Any:
        """The gradients of a node run in the module in which it was made."""
        if self._turned is not None and self.is_here():
            place = bisect_right(self._bounds, node.sequence) - 1
            part = self._owners[max(place, 0)] or self.root
            before = self.stack[-1]
            if part is not before:
                self.stack[-1] = part
                self._mark(before, part)
        return call(grads)

    def _mark(
        self, before: Part | None, part: Part | None, entered: bool = False, now: float = 0.0
    ) -> None:
        if self._backward:
            self._bounds.append(next_sequence_number())
            self._owners.append(part)
        marks = {}
        for each in (before, part):
            if each is not None and each.gpu is not None and each.gpu not in marks:
                marks[each.gpu] = self._mark_on(each.gpu)
        self._marks.append((part, now or perf_counter(), marks, entered))

    def _mark_on(self, gpu: Device) -> Any:
        if gpu not in self._gpus:
            self._gpus[gpu] = backends.load(gpu).events
        self._live += 1
        return self._gpus[gpu].record()

    # -- what the marks say -------------------------------------------------------------------

    def resolve(self) -> None:
        """Wait for the GPUs, and turn the marks of all finished runs into times of the parts."""
        for gpu in self._gpus.values():
            gpu.synchronize()
        for marks, backward_start in self._pending:
            self._times(marks, len(marks) if backward_start is None else backward_start)
            for _, _, made, _ in marks:
                for gpu, mark in made.items():
                    if mark is not None:
                        self._gpus[gpu].recycle([mark])
        self._pending.clear()
        self._live = 0

    def _times(self, marks: list[_Mark], backward_start: int) -> None:
        for part in self.everything():
            part.changes = [0, 0]
            for samples in (*part.host, *(part.device if part.gpu is not None else ())):
                samples.append(0.0)
        caller: Part | None = None
        for number, (mark, following) in enumerate(pairwise(marks)):
            running, start, made, entered = mark
            phase = number >= backward_start
            if running is not None:
                running.host[phase][-1] += (following[1] - start) * 1e6
                if running.gpu is not None:
                    first, last = made[running.gpu], following[2][running.gpu]
                    if first is not None and last is not None:  # and nothing was being captured
                        elapsed = self._gpus[running.gpu].microseconds(first, last)
                        running.device[phase][-1] += elapsed
                if entered or (phase and caller is not running):
                    running.changes[phase] += 1
                    if caller is not None:
                        caller.changes[phase] += 1
            caller = running

    # -- what watching costs ------------------------------------------------------------------

    def correct(self, bare: Watch) -> float:
        """Take off what watching has added to the times; microseconds a call.

        `bare` has noted runs of the same model without entering it, so only as a whole. The excess
        of the median run over the median bare one is spread over the parts by how often they were
        entered, and entered others: both cost about the same.
        """
        watched, unwatched = self.everything(), bare.everything()
        calls = sum([part.changes[0] for part in watched]) / 2
        added = 0.0
        for clock in (lambda part: part.host, lambda part: part.device):
            for phase in (0, 1):
                weight = sum([part.changes[phase] for part in watched if clock(part)[phase]])
                whole = [
                    _whole([clock(part)[phase] for part in parts]) for parts in (watched, unwatched)
                ]
                excess = max(whole[0] - whole[1], 0.0) if weight and whole[1] else 0.0
                if phase == 0 and clock(self.root) is self.root.host and calls:
                    added = excess / calls
                for part in watched:
                    share = excess * part.changes[phase] / max(weight, 1)
                    samples = clock(part)[phase]
                    samples[:] = [max(sample - share, 0.0) for sample in samples]
        return added


def _whole(samples: list[list[float]]) -> float:
    """The median of the sums, run by run, of several parts' times; 0 if there are none."""
    runs = [sum(run) for run in zip(*[times for times in samples if times])]
    return median(runs) if runs else 0.0
