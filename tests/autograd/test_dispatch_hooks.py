"""Hooks in the dispatcher and the engine: their order, their end, what they may change."""

from __future__ import annotations

import threading

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.autograd import profiler as older
from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.profiler import older as ranges
from tests.device import DEVICE


def noting(seen: list[str], name: str):
    def wrapper(op, backend, call):
        def noted(*arrays, **parameters):
            seen.append(f"{name} {op.name}")
            return call(*arrays, **parameters)

        return noted

    return wrapper


def test_the_newest_wrapper_is_outermost_and_all_end() -> None:
    seen: list[str] = []
    x = tlc.ones(2, device=DEVICE)
    first, second = noting(seen, "first"), noting(seen, "second")
    hooks.add(first)
    hooks.add(second)
    x.exp()
    assert seen == ["second exp", "first exp"]
    hooks.remove(first)
    x + 1
    assert seen[2:] == ["second add"]
    hooks.remove(second)
    x.exp()
    assert len(seen) == 3 and hooks.around_op == []
    with pytest.raises(ValueError):
        hooks.remove(second)


def test_an_override_that_comes_later_is_wrapped_too() -> None:
    seen: list[str] = []
    x = tlc.ones(2)
    wrapper = noting(seen, "seen")
    hooks.add(wrapper)
    try:
        x.exp()
        table.override("exp", "numpy")(lambda F, x: F.sin(x))
        assert x.exp().tolist() == x.sin().tolist()
    finally:
        hooks.remove(wrapper)
        del table.overrides["exp", "numpy"]
        TABLE["exp"].calls.clear()  # type: ignore[union-attr]
    assert seen == ["seen exp", "seen exp", "seen sin"]
    assert x.exp().tolist() == pytest.approx([2.7182817] * 2)


def test_an_error_passes() -> None:
    def wrapper(op, backend, call):
        def failing(*arrays, **parameters):
            raise LookupError(op.name)

        return failing

    x = tlc.ones(2, device=DEVICE)
    hooks.add(wrapper)
    try:
        with pytest.raises(LookupError, match="add"):
            x + x
    finally:
        hooks.remove(wrapper)
    assert (x + x).tolist() == [2.0, 2.0]


def test_wrappers_may_come_and_go_while_another_thread_works() -> None:
    x = tlc.ones(8, device=DEVICE)
    stop = threading.Event()
    wrong: list[object] = []

    def work() -> None:
        while not stop.is_set():
            if (x.exp() + 1).sum().item() == 0:
                wrong.append(x)

    worker = threading.Thread(target=work)
    worker.start()
    for _ in range(200):
        wrapper = noting([], "seen")
        hooks.add(wrapper)
        hooks.remove(wrapper)
    stop.set()
    worker.join()
    seen: list[str] = []
    wrapper = noting(seen, "seen")
    hooks.add(wrapper)
    x.exp()
    hooks.remove(wrapper)
    x.exp()
    assert wrong == [] and seen == ["seen exp"]  # no stale callable was kept


def test_hooks_around_gradients_see_and_change_them() -> None:
    seen: list[tuple] = []

    def doubled(node, call, grads):
        results = call(grads)
        seen.append((node.name(), len(results)))
        return [None if g is None else g * 2 for g in results]

    x = tlc.ones(2, device=DEVICE, requires_grad=True)
    y = (x * 3).sum()
    hooks.around_gradient.append(doubled)
    try:
        y.backward()
    finally:
        hooks.around_gradient.remove(doubled)
    assert seen == [("SumBackward0", 1), ("MulBackward0", 2)]
    assert x.grad.tolist() == [12.0, 12.0]


def test_writers_are_told_of_writes() -> None:
    seen: list[str] = []

    def writer(op, call, arrays, parameters):
        seen.append("copy" if op is None else op.name)
        call()

    x = tlc.zeros(3, device=DEVICE)
    hooks.around_write.append(writer)
    try:
        x += 1
        x.mul_(2)
        x.exp_()
        x.fill_(4)
        x.zero_()
        x[0] = 5
        x.copy_(x)
    finally:
        hooks.around_write.remove(writer)
    assert seen[:5] == ["add", "mul", "copy", "fill", "zero"] and len(seen) == 7
    assert x.tolist() == [5.0, 0.0, 0.0]


def test_regions() -> None:
    seen: list[str] = []

    def region(name, call):
        seen.append(name)
        return call()

    hooks.around_region.append(region)
    try:
        assert hooks.run_region("mine", lambda: 3) == 3
    finally:
        hooks.around_region.remove(region)
    assert seen == ["mine"]


def test_emit_nvtx_opens_and_closes_ranges(monkeypatch) -> None:
    seen: list[str] = []

    class Range:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            seen.append(f"({self.name}")

        def __exit__(self, *error: object) -> None:
            seen.append(")")

    monkeypatch.setattr(ranges.nvtx, "range", Range)
    x = tlc.ones(2, device=DEVICE, requires_grad=True)
    with older.emit_nvtx(record_shapes=True):
        y = x.exp()
    with older.emit_nvtx():
        y.backward(tlc.ones(2, device=DEVICE))
    with older.emit_nvtx(enabled=False):
        x.exp()
    assert seen[:2] == ["(exp, sizes = [[2]]", ")"]
    assert seen[2].startswith("(ExpBackward0, seq = ") and seen[3:] == [")"]
