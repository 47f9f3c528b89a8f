"""Streams and the memory they use, with stand-ins for both: nothing here needs a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy import runtime


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
