"""Observers: what they are called with, and that nothing of them is left."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.trace import Observer
from tensorflow_lite_clone.trace.observer import _LISTS


class Log(Observer):
    """Writes down the names of the methods that are called, and of the ops."""

    def __init__(self):
        self.seen, self.handles = [], []

    def around_op(self, op, backend, call):
        def logged(*arrays, **parameters):
            self.seen.append((op.name, self.is_here()))
            return call(*arrays, **parameters)

        return logged

    def around_write(self, op, call, arrays, parameters):
        self.seen.append("write")
        call()

    def around_gradient(self, node, call, grads):
        self.seen.append("gradient")
        return call(grads)

    def around_function(self, name, call, tensors, parameters):
        self.seen.append(name)
        return call()

    def around_region(self, name, call):
        self.seen.append(name)
        return call()

    def on_node(self, node):
        self.seen.append("node")

    def on_storage(self, storage):
        self.seen.append("storage")

    def on_memory_write(self, root):
        self.seen.append("memory")

    def on_wait(self, what, size):
        self.seen.append("wait")

    def registrations(self):
        return self.handles


def entered():
    return [len(entries) for entries in (hooks.around_op, *_LISTS.values())]


def test_an_observer_is_called_with_what_runs() -> None:
    x = tlc.ones(3, requires_grad=True)
    with Log() as log:
        y = x.exp()
        y.sum().backward()
        with tlc.no_grad():
            x.mul_(2)
    assert ("exp", True) in log.seen and "node" in log.seen and "gradient" in log.seen
    assert "write" in log.seen and "memory" in log.seen
    seen = len(log.seen)
    x.detach().exp().add_(1)
    assert len(log.seen) == seen


def test_regions_functions_storages_and_launches_have_methods_as_well() -> None:
    with Log() as log:
        hooks.run_region("batch", list)
        hooks.run_function("cells", tuple, (), {})
        tlc.tensor([1.0])
    assert {"batch", "cells", "storage"} <= set(log.seen)


def test_is_here_holds_in_the_thread_that_entered() -> None:
    with Log() as log:
        other = threading.Thread(target=lambda: tlc.ones(2).exp())
        other.start()
        other.join()
    assert ("exp", False) in log.seen and ("exp", True) not in log.seen
    assert not log.is_here()


def test_an_observer_may_look_at_ops_that_have_run() -> None:
    class Shapes(Observer):
        def on_op(self, op, backend, arrays, parameters, result):
            seen.append((op.name, [x.shape for x in arrays], parameters, result.shape))

    seen = []
    with Shapes():
        tlc.ones(2, 3).sum(1)
    assert next(one for one in seen if one[0] == "sum")[1::2] == ([(2, 3)], (2,))


def test_only_the_methods_that_are_defined_are_entered() -> None:
    class Waits(Observer):
        def __init__(self):
            self.on_launch = None

        def on_wait(self, what, size):
            pass

    before = entered()
    with Waits():
        assert sum(entered()) == sum(before) + 1
    assert entered() == before


class Handle:
    def __init__(self):
        self.removed = False

    def remove(self):
        self.removed = True


def test_everything_is_left_after_an_error_inside_and_while_entering() -> None:
    before, log = entered(), Log()
    log.handles.append(Handle())
    with pytest.raises(KeyError), log:
        raise KeyError
    assert entered() == before and log.handles[0].removed

    def failing():
        yield first
        raise KeyError

    first, log = Handle(), Log()
    log.registrations = failing
    with pytest.raises(KeyError):
        log.__enter__()
    assert entered() == before and first.removed


def test_an_observer_can_be_entered_again_but_not_twice() -> None:
    log = Log()
    for _ in range(2):
        with log, pytest.raises(RuntimeError, match="this Log is watching already"):
            log.__enter__()
    assert entered() == [0] * len(entered())


# Who enters hooks without an observer, and why.
ELSEWHERE = {
    "backends/cupy/backend.py": "while a graph is captured its hooks are the innermost",
    "backends/cupy/capture_log.py": "its hook comes before those of captures that run already",
    "compiler/dynamo/function.py": "its hook before seeding stays for good",
    "dispatch/capture.py": "it lies below",
}


def test_hooks_are_entered_by_observers_alone() -> None:
    root = Path(tlc.__file__).parent
    lists = "|".join([name for name, value in vars(hooks).items() if isinstance(value, list)])
    entering = re.compile(rf"\bhooks\.(add\(|({lists})\.(append|insert)\()")
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if entering.search(path.read_text())
    }
    assert found == {*ELSEWHERE, "trace/observer.py"}
