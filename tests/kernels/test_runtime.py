"""Streams and the memory they use, with stand-ins for both: nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import pytest

pytest.importorskip("cupy")

import cupy

from tensorflow_lite_clone.backends.cupy import runtime
from tensorflow_lite_clone.backends.cupy.graphs import Graph
from tensorflow_lite_clone.dispatch import capture


def test_default_streams_of_two_devices_have_one_pointer(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def end_of(stream: Any, index: int) -> Any:
        ended.append((stream.ptr, index))
        return SimpleNamespace(done=True)

    monkeypatch.setattr(runtime, "_end_of", end_of)
    default, side = (SimpleNamespace(ptr=pointer, device_id=-1) for pointer in (0, 5))
    array = SimpleNamespace(data=SimpleNamespace(mem=SimpleNamespace(device_id=0)))
    for stream, index in ((default, 0), (default, 1), (default, None), (side, 1)):
        runtime.lend(array, stream, index)
    assert not ended
    assert len(runtime._lent) == 1
    del array
    runtime.settle()
    assert ended == [(0, 0), (0, 1), (5, 1)]
    assert not runtime._lent


class Stream:
    """Notes what it waits for."""

    def __init__(self, ptr: int, capturing: bool = False) -> None:
        self.ptr, self.capturing, self.waited = ptr, capturing, []  # type: ignore[var-annotated]

    def is_capturing(self) -> bool:
        return self.capturing

    def wait_event(self, event: Any) -> None:
        self.waited.append(event.stream.ptr)


class Event:
    def __init__(self, disable_timing: bool) -> None:
        self.stream: Any = None

    def record(self, stream: Any) -> None:
        self.stream = stream


@pytest.mark.parametrize("current", [0, 1])
def test_all_streams_wait_but_those_that_are_captured(
    current: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [Stream(0), Stream(5), Stream(6), Stream(7, capturing=True)]
    monkeypatch.setattr(runtime, "_streams", WeakValueDictionary())
    monkeypatch.setattr(runtime, "default_stream", lambda: streams[0])
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: streams[current])
    monkeypatch.setattr(cupy.cuda, "Event", Event)
    runtime.let_all_wait()
    assert [stream.waited for stream in streams] == [[], [], [], []]  # there is no other
    runtime._streams.update({id(stream): stream for stream in streams[1:]})
    monkeypatch.setattr(capture.state, "graph", object())
    runtime.let_all_wait()
    assert [stream.waited for stream in streams] == [[], [], [], []]
    monkeypatch.setattr(capture.state, "graph", None)
    runtime.let_all_wait()
    ptr = streams[current].ptr
    expected = [[ptr], [ptr], [ptr], []]
    expected[current] = []
    assert [stream.waited for stream in streams] == expected


def test_a_capture_whose_end_fails_leaves_nothing_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = []

    @contextmanager
    def deferring() -> Iterator[None]:
        waits.append(True)
        try:
            yield
        finally:
            waits.pop()

    def fail() -> None:
        raise ValueError("at the boundary")

    graph = Graph(0, lambda: None, deferring)
    graph._stream = SimpleNamespace(end_capture=lambda: None)
    graph._waiting.enter_context(deferring())
    monkeypatch.setattr(capture, "on_boundary", [fail])
    with pytest.raises(ValueError, match="at the boundary"):
        graph.end()
    assert not waits
