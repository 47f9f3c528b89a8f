"""Schedules as data: complete, in order, few micro-batches under way, and no deadlocks."""

from __future__ import annotations

import pytest

from tensorflow_lite_clone.distributed.pipelining.plan import (
    BACKWARD,
    FORWARD,
    Action,
    Tick,
    forwards_only,
    gpipe,
    in_flight,
    interleaved,
    looped,
    needs,
    one_forward_one_backward,
    program,
    timeline,
)

SIZES = [(1, 1), (1, 4), (2, 2), (2, 5), (3, 3), (4, 4), (4, 8), (4, 9), (8, 32)]
ORDERS = {
    "gpipe": lambda p, m: gpipe(p, m),
    "1f1b": lambda p, m: one_forward_one_backward(p, m),
    "interleaved": lambda p, m: interleaved(p, m - m % max(1, m // p), 2),
    "interleaved of three": lambda p, m: interleaved(p, m - m % max(1, m // p), 3),
    "looped": lambda p, m: looped(p, m, 2),
}
cases = pytest.mark.parametrize("size", SIZES, ids=str)
kinds = pytest.mark.parametrize("kind", ORDERS)


def run(ticks: list[list[Tick]], last_stage: int) -> set[Action]:
    """Run programs as on a device where each process does one thing at a time.

    A communication ends when both sides have come to it; the communications of a tick are posted
    together, and the process goes on when all have ended. Gives the actions that were run. Raises
    AssertionError for an action whose needs are not there, and for processes that wait for each
    other.
    """
    position = [0] * len(ticks)
    entered = [False] * len(ticks)
    open_: list[set] = [set() for _ in ticks]
    have: list[set] = [set() for _ in ticks]  # what has been computed or has arrived, by process
    done: set[Action] = set()
    while any(at < len(each) for at, each in zip(position, ticks, strict=True)):
        moved = False
        for rank, each in enumerate(ticks):
            if position[rank] == len(each):
                continue
            tick = each[position[rank]]
            if not entered[rank]:
                if tick.action is not None:
                    for needed in needs(tick.action, last_stage):
                        assert needed in have[rank], f"{tick.action} on {rank} before {needed}"
                    assert tick.action not in done
                    have[rank].add(tick.action)
                    done.add(tick.action)
                open_[rank] = {("send", action, peer) for action, peer in tick.sends}
                open_[rank] |= {("receive", action, peer) for action, peer in tick.receives}
                entered[rank] = moved = True
            for which, action, peer in list(open_[rank]):
                other = ("receive" if which == "send" else "send", action, rank)
                if other in open_[peer]:
                    sender, receiver = (rank, peer) if which == "send" else (peer, rank)
                    step = -1 if action.kind == FORWARD else 1
                    sent = action._replace(stage=action.stage + step)
                    assert sent in have[sender]
                    have[receiver].add(sent)
                    open_[rank].remove((which, action, peer))
                    open_[peer].remove(other)
                    moved = True
            if entered[rank] and not open_[rank]:
                position[rank] += 1
                entered[rank] = False
                moved = True
        assert moved, f"a deadlock: {open_}"
    return done


@cases
@kinds
def test_all_is_done_in_order_and_nobody_waits_for_ever(kind, size):
    orders = ORDERS[kind](*size)
    stages = max(action.stage for order in orders for action in order) + 1
    numbers = {action.microbatch for order in orders for action in order}
    everything = {
        Action(stage, each, number)
        for stage in range(stages)
        for each in (FORWARD, BACKWARD)
        for number in numbers
    }
    assert numbers == set(range(len(numbers)))
    for rank, order in enumerate(orders):
        assert len(order) == len(set(order))
        assert {action.stage % size[0] for action in order} == {rank}
    assert run(program(orders), stages - 1) == everything
    forwards = {action for action in everything if action.kind == FORWARD}
    assert run(program(forwards_only(orders)), stages - 1) == forwards


def test_the_check_notices_what_is_wrong():
    good = program(gpipe(2, 2))
    run(good, 1)
    swapped = [good[0], [*good[1][:1], good[1][2], good[1][1], *good[1][3:]]]
    with pytest.raises(AssertionError, match="1F1 on 1 before 0F1"):
        run(swapped, 1)
    first, second, *rest = good[0]
    late = [[first._replace(sends=()), second._replace(sends=first.sends + second.sends), *rest]]
    run([*late, good[1]], 1)  # sent a tick later, which only costs time
    lost = [[first._replace(sends=()), second, *rest], good[1]]
    with pytest.raises(AssertionError, match="a deadlock"):
        run(lost, 1)


def test_orders_that_cannot_be_run_are_refused():
    with pytest.raises(RuntimeError, match="wait for each other: \\[0B0, 1F0\\]"):
        program([[Action(0, "B", 0), Action(0, "F", 0)], [Action(1, "F", 0), Action(1, "B", 0)]])


@cases
def test_the_bubble_is_that_of_the_formula(size):
    processes, microbatches = size
    for orders in (gpipe(*size), one_forward_one_backward(*size)):
        ticks = program(orders)[0]
        idle = sum(tick.action is None for tick in ticks)
        assert len(ticks) == 2 * (microbatches + processes - 1)
        assert idle / len(ticks) == (processes - 1) / (microbatches + processes - 1)


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_more_stages_per_process_shrink_the_bubble(stages):
    ticks = program(interleaved(4, 16, stages))[0]
    idle = len(ticks) - 2 * 16 * stages
    assert idle == 2 * (4 - 1)  # ticks that are `stages` times shorter


@cases
def test_how_many_microbatches_are_under_way(size):
    processes, microbatches = size
    assert in_flight(gpipe(*size)) == [microbatches] * processes
    assert in_flight(one_forward_one_backward(*size)) == [
        min(processes - rank, microbatches) for rank in range(processes)
    ]


def test_orders_are_those_of_pytorch():
    """As PyTorch 2.13 prints them, without the ticks in which it lets processes wait."""
    found = [" ".join(map(str, order)) for order in interleaved(2, 4, 2)]
    assert found == [
        "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
        "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3",
    ]
    found = [" ".join(map(str, order)) for order in interleaved(2, 3, 2)]
    assert found == [
        "0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2",
        "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1B0 1B1 1B2",
    ]
    found = [" ".join(map(str, order)) for order in looped(2, 4, 2)]
    assert found == [
        "0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 2B3 2B2 2B1 2B0 0B3 0B2 0B1 0B0",
        "1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 3B3 3B2 3B1 3B0 1B3 1B2 1B1 1B0",
    ]
    with pytest.raises(ValueError, match="multiple of the number of rounds \\(2\\), but got 5"):
        interleaved(2, 5, 2)


def test_timelines_are_drawn():
    assert timeline(one_forward_one_backward(2, 3)).splitlines() == [
        "F0 F1 .  B0 F2 B1 .  B2",
        ".  F0 B0 F1 B1 F2 B2",
    ]
    assert timeline(looped(1, 1, 2)) == "0F0 1F0 1B0 0B0"
