"""Schedules as data: which process does what, and what it sends and receives, tick by tick.

A schedule is an order of actions per process: ``F`` is the forward of a stage for a micro-batch,
``B`` its backward. `program` lets a clock run over the orders. In each tick a process does its next
action if what that needs is there, and then all results of the tick are exchanged. A process posts
the sends and receives of a tick together, and ticks in order. So no order that the clock gets
through can deadlock, even where all communication of a process is one queue: what a tick needs
was sent in an earlier one.
"""

from __future__ import annotations

from collections import deque
from itertools import accumulate
from typing import NamedTuple

FORWARD, BACKWARD = "F", "B"


class Action(NamedTuple):
    """A stage's forward or backward for one micro-batch; prints as ``2F0``."""

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"

    def __repr__(self) -> str:
        return str(self)


class Tick(NamedTuple):
    """What a process does in one unit of time.

    `sends` and `receives` name the actions that need what is sent, each with the process at the
    other end.
    """

    action: Action | None
    sends: tuple[tuple[Action, int], ...]
    receives: tuple[tuple[Action, int], ...]


#: What each process does, in this order.
Orders = list[list[Action]]


def gpipe(processes: int, microbatches: int) -> Orders:
    """All forwards, then all backwards (GPipe, Huang et al. 2019)."""
    return [
        [Action(rank, kind, index) for kind in (FORWARD, BACKWARD) for index in range(microbatches)]
        for rank in range(processes)
    ]


def one_forward_one_backward(processes: int, microbatches: int) -> Orders:
    """Forwards until the first gradient arrives, then a forward and a backward by turns.

    At most as many micro-batches are on their way in a process as there are stages from its own
    to the last (PipeDream-flush, Narayanan et al. 2021).
    """
    return [
        _alternate(
            [Action(rank, FORWARD, index) for index in range(microbatches)],
            [Action(rank, BACKWARD, index) for index in range(microbatches)],
            processes - rank - 1,
        )
        for rank in range(processes)
    ]


def _alternate(forwards: list[Action], backwards: list[Action], warm_up: int) -> list[Action]:
    """`warm_up` forwards, a forward and a backward by turns, and the backwards that are left."""
    ahead = min(warm_up, len(forwards))
    order = forwards[:ahead]
    for forward, backward in zip(forwards[ahead:], backwards, strict=False):
        order += [forward, backward]
    return order + backwards[len(forwards) - ahead :]


def interleaved(processes: int, microbatches: int, stages_per_process: int) -> Orders:
    """`one_forward_one_backward` with several stages per process: `processes` apart.

    Micro-batches go in rounds of about as many as there are processes; each round passes all stages
    of a process before the next (Narayanan et al. 2021). ValueError where the number of
    micro-batches is no multiple of the number of rounds.
    """
    rounds = max(1, microbatches // processes)
    if microbatches % rounds:
        raise ValueError(
            f"Interleaved 1F1B requires the number of microbatches to be a multiple of the number "
            f"of rounds ({rounds}), but got {microbatches}."
        )
    together = microbatches // rounds
    local = range(stages_per_process)

    def actions(rank: int, kind: str, order: range) -> list[Action]:
        return [
            Action(rank + place * processes, kind, first + index)
            for first in range(0, microbatches, together)
            for place in order
            for index in range(together)
        ]

    return [
        _alternate(
            actions(rank, FORWARD, local),
            actions(rank, BACKWARD, local[::-1]),
            (stages_per_process - 1) * together + 2 * (processes - rank - 1),
        )
        for rank in range(processes)
    ]


def looped(processes: int, microbatches: int, stages_per_process: int) -> Orders:
    """`gpipe` with several stages per process: a stage has all micro-batches before the next
    (Lamy-Poirier 2022)."""
    stages = range(stages_per_process)
    return [
        [
            Action(rank + place * processes, kind, index)
            for kind, direction in ((FORWARD, 1), (BACKWARD, -1))
            for place in stages[::direction]
            for index in range(microbatches)[::direction]
        ]
        for rank in range(processes)
    ]


def forwards_only(orders: Orders) -> Orders:
    """The orders without their backwards."""
    return [[action for action in order if action.kind == FORWARD] for order in orders]


def needs(action: Action, last_stage: int) -> list[Action]:
    """The actions whose results an action takes."""
    stage, kind, microbatch = action
    if kind == FORWARD:
        return [Action(stage - 1, FORWARD, microbatch)] if stage else []
    own = [Action(stage, FORWARD, microbatch)]
    return own if stage == last_stage else [*own, Action(stage + 1, BACKWARD, microbatch)]


def taker(action: Action, last_stage: int) -> Action | None:
    """The action of the neighbouring stage that takes an action's result."""
    stage = action.stage + (1 if action.kind == FORWARD else -1)
    return action._replace(stage=stage) if 0 <= stage <= last_stage else None


def program(orders: Orders) -> list[list[Tick]]:
    """The ticks of each process. RuntimeError for orders that wait for each other for ever."""
    place = {action.stage: rank for rank, order in enumerate(orders) for action in order}
    last_stage = max(place)
    queues = [deque(order) for order in orders]
    ticks: list[list[Tick]] = [[] for _ in orders]
    done: set[Action] = set()
    while any(queues):
        now = [
            queue.popleft() if queue and done.issuperset(needs(queue[0], last_stage)) else None
            for queue in queues
        ]
        if not any(now):
            raise RuntimeError(f"these wait for each other: {[q[0] for q in queues if q]}")
        sends: list[list[tuple[Action, int]]] = [[] for _ in orders]
        receives: list[list[tuple[Action, int]]] = [[] for _ in orders]
        for rank, action in enumerate(now):
            waiting = taker(action, last_stage) if action else None
            if waiting and place[waiting.stage] != rank:
                sends[rank].append((waiting, place[waiting.stage]))
                receives[place[waiting.stage]].append((waiting, rank))
        for rank, action in enumerate(now):
            ticks[rank].append(Tick(action, tuple(sends[rank]), tuple(receives[rank])))
        done.update(filter(None, now))
    return ticks


def timeline(orders: Orders) -> str:
    """The ticks as text: a line per process, a column per tick, dots where it waits.

    Actions are named without their stage where each process has one.
    """
    single = all(len({action.stage for action in order}) == 1 for order in orders)

    def cell(action: Action | None) -> str:
        if action is None:
            return "."
        return f"{action.kind}{action.microbatch}" if single else str(action)

    rows = [[cell(tick.action) for tick in ticks] for ticks in program(orders)]
    width = max(len(text) for row in rows for text in row)
    return "\n".join(" ".join(text.ljust(width) for text in row).rstrip(" .") for row in rows)


def in_flight(orders: Orders) -> list[int]:
    """How many micro-batches' activations each process holds at a time, summed over its stages."""
    return [
        max(accumulate([1 if action.kind == FORWARD else -1 for action in order]))
        for order in orders
    ]
