"""What runs for words and ops is looked up once, also where threads change it meanwhile."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.dispatch.op import TABLE


class Slow(Backend):
    """A device whose words take long to look up; what they are changes with its state."""

    name = "slow"
    xp = SimpleNamespace(exp=lambda x: x)
    primitives = SimpleNamespace()

    def __init__(self) -> None:
        self.state = "before"
        self.asked, self.go_on = threading.Event(), threading.Event()
        super().__init__()

    def made(self) -> Any:
        found = self.state
        self.asked.set()
        assert self.go_on.wait(10)
        return lambda *values: found

    def foreign(self, call: Callable[..., Any], is_view: bool = False) -> Callable[..., Any]:
        return self.made()

    def gradient(self, function: Any) -> Any:
        return self.made()

    def change(self) -> None:
        with hooks.changing:
            self.state = "after"
            self.forget()
            self.F.forget()
            hooks.forget()


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    yield found
    table.namespaces.remove(found.F)
    hooks.forget()


@pytest.mark.parametrize("what", ["word", "op", "gradient"])
def test_a_thread_keeps_nothing_that_is_outdated(slow: Slow, what: str) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "word": lambda: slow.F.exp(1),
        "op": lambda: table.run(TABLE["exp"], slow, (1,), {}),
        "gradient": lambda: slow.gradients["a function"](1),
    }
    call, found = calls[what], []
    looking = threading.Thread(target=lambda: found.append(call()))
    looking.start()
    assert slow.asked.wait(10)
    changing = threading.Thread(target=slow.change)
    changing.start()
    changing.join(0.05)  # it waits for the look-up
    slow.go_on.set()
    looking.join(10)
    changing.join(10)
    assert found == ["before"]
    assert call() == "after"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_waits_for_no_thread_of_its_parent(slow: Slow) -> None:
    thread = threading.Thread(target=lambda: slow.F.exp(1))
    thread.start()
    assert slow.asked.wait(10)
    threading.Timer(0.05, slow.go_on.set).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        child = os.fork()
    if not child:
        os._exit(0 if hooks.changing.acquire(timeout=5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join(10)


def test_a_hook_that_another_thread_takes_away_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    def leaving(*what: Any) -> Callable[[], None]:
        hooks.on_launch.remove(leaving)
        return lambda: None

    def staying(*what: Any) -> Callable[[], None]:
        told.append(what[0])
        return lambda: told.append("end")

    monkeypatch.setattr(hooks, "on_launch", [leaving, staying])
    for end in hooks.tell_launch("kernel", "", (), ()):
        end()
    assert told == ["kernel", "end"]
