"""Tensors on their way between stages of different processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.dtypes import ALL, DType, int64
from tensorflow_lite_clone.distributed.pipelining.plan import Action, Tick
from tensorflow_lite_clone.distributed.point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
)
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.work import Work
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.tensor import Tensor

#: What a process gives to another: activations, or gradients with None where there is none.
Values = Sequence[Tensor | None]

#: How many numbers a message has that describes tensors.
_LENGTH = 256
#: How many ticks' communication a process has under way at most, and keeps the tensors of.
_UNDER_WAY = 2


class PipeliningMetadataError(RuntimeError):
    """What a stage takes or gives is not what was agreed on."""


class Layout(NamedTuple):
    """What a process must know of a tensor to receive it."""

    shape: tuple[int, ...]
    dtype: DType
    requires_grad: bool

    def __str__(self) -> str:
        gradient = ", requires_grad=True" if self.requires_grad else ""
        return f"Tensor({self.shape}, {self.dtype}{gradient})"


Layouts = list[Layout | None]


def layouts_of(values: Values) -> Layouts:
    """What a process must know to receive these."""
    return [None if x is None else Layout(tuple(x.shape), x.dtype, x.requires_grad) for x in values]


def encoded(layouts: Layouts) -> list[int]:
    """Layouts as `_LENGTH` numbers. ValueError where they are too many."""
    numbers = [len(layouts)]
    for layout in layouts:
        if layout is None:
            numbers.append(-1)
        else:
            shape, dtype, requires_grad = layout
            numbers += [ALL.index(dtype), int(requires_grad), len(shape), *shape]
    if len(numbers) > _LENGTH:
        raise ValueError(f"{len(layouts)} tensors are too many to go from a stage to the next")
    return numbers + [0] * (_LENGTH - len(numbers))


def decoded(numbers: list[int]) -> Layouts:
    """The layouts that `encoded` wrote."""
    count, *rest = numbers
    layouts: Layouts = []
    words = iter(rest)
    for _ in range(count):
        index = next(words)
        if index < 0:
            layouts.append(None)
        else:
            requires_grad, dimensions = bool(next(words)), next(words)
            shape = tuple([next(words) for _ in range(dimensions)])
            layouts.append(Layout(shape, ALL[index], requires_grad))
    return layouts


class Exchange:
    """Sends and receives of a process, tick by tick.

    The first time that something is sent, a message before it tells its layout, and both sides keep
    that. From then on the host reads nothing, and waits only where `wait` of a communication does.
    """

    def __init__(self, device: Any, group: ProcessGroup) -> None:
        self._device = device
        self._group = group
        self._known: dict[Action, Layouts] = {}
        self._arriving: dict[Action, tuple[Values, list[Work]]] = {}
        # Tensors that are sent are kept until they are gone.
        self._under_way: deque[tuple[list[Work], list[P2POp]]] = deque()

    def post(self, tick: Tick, results: dict[Action, Values]) -> None:
        """Begin what a tick sends, out of `results`, and receives."""
        self._learn(tick, results)
        sends: list[P2POp] = []
        for action, peer in tick.sends:
            values = results.pop(action)
            self._check(action, layouts_of(values))
            given = [x.detach().contiguous() for x in values if x is not None]
            sends += [self._operation(isend, x, peer) for x in given]
        receives: list[tuple[Action, P2POp]] = []
        for action, peer in tick.receives:
            received = [
                layout and empty(layout.shape, dtype=layout.dtype, device=self._device)
                for layout in self._known[action]
            ]
            self._arriving[action] = received, []
            taken = [x for x in received if x is not None]
            receives += [(action, self._operation(irecv, x, peer)) for x in taken]
        operations = [*sends, *[operation for _, operation in receives]]
        works = batch_isend_irecv(operations) if operations else []
        for (action, _), work in zip(receives, works[len(sends) :], strict=True):
            self._arriving[action][1].append(work)
        self._under_way.append((works, operations))
        self.finish(_UNDER_WAY)

    def take(self, action: Action) -> Values:
        """What was received for an action; leaves of the graph that want gradients, where the
        sender's do."""
        values, works = self._arriving.pop(action)
        for work in works:
            work.wait()
        for value, layout in zip(values, self._known[action], strict=True):
            if value is not None and layout is not None:
                value.requires_grad_(layout.requires_grad)
        return values

    def finish(self, but: int = 0) -> None:
        """Wait for all communication but that of the last ticks."""
        while len(self._under_way) > but:
            for work in self._under_way.popleft()[0]:
                work.wait()

    def _operation(self, kind: Any, value: Tensor, peer: int) -> P2POp:
        return P2POp(kind, value, group=self._group, group_peer=peer)

    def _learn(self, tick: Tick, results: dict[Action, Values]) -> None:
        """Tell the receivers what they do not know yet, and be told."""
        operations, told = [], {}
        for action, peer in tick.sends:
            if action not in self._known:
                self._known[action] = layouts_of(results[action])
                message = tensor(encoded(self._known[action]), device=self._device)
                operations.append(self._operation(isend, message, peer))
        for action, peer in tick.receives:
            if action not in self._known:
                told[action] = empty(_LENGTH, dtype=int64, device=self._device)
                operations.append(self._operation(irecv, told[action], peer))
        for work in batch_isend_irecv(operations) if operations else []:
            work.wait()
        for action, message in told.items():
            self._known[action] = decoded(message.tolist())

    def _check(self, action: Action, layouts: Layouts) -> None:
        expected = self._known[action]
        if layouts != expected:
            kind = "outputs" if action.kind == "F" else "input gradients"
            stage = action.stage + (-1 if action.kind == "F" else 1)
            raise PipeliningMetadataError(
                f"Stage {stage}: the {kind} of microbatch {action.microbatch} are "
                f"[{', '.join(map(str, layouts))}], and in the first step they were "
                f"[{', '.join(map(str, expected))}]; other shapes need a schedule of their own"
            )
