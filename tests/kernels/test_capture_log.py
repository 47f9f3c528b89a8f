"""What is written of captured kernels, over arrays in the host's memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy import benchmark, capture_log, device_facts
from tensorflow_lite_clone.backends.cupy.fusion import deferred, joining, launch, source
from tensorflow_lite_clone.dispatch import capture, hooks
from tests.kernels.waiting import Computed, chain, given, host, in_place, waiting

__all__ = ["chain"]


class Launched(Computed):
    """A plan that tells of its launch."""

    def __init__(self, *formed: Any) -> None:
        super().__init__(*formed)
        self.text = source.write(formed[0], formed[1], formed[3])

    def into(self, operands: tuple, results: tuple) -> None:
        for watch in launch.on_generated_launch:
            watch(self.text)
        told(self.text.name, "", (1,), (256,))()
        super().into(operands, results)


def told(*what: Any) -> Callable[[], None]:
    ends = [launching(*what) for launching in hooks.on_launch]

    def end() -> None:
        for each in ends:
            each()

    return end


@pytest.fixture
def made(chain: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A record of a graph that is being captured."""
    facts = device_facts.Facts("a device", 90, 1, 1)
    monkeypatch.setattr(joining, "Plan", Launched)
    monkeypatch.setattr(device_facts, "here", lambda: facts)
    monkeypatch.setattr(benchmark, "copy_speed", lambda: 1e9)
    monkeypatch.setattr(benchmark, "seconds", lambda step: benchmark.bytes_of(step) / 5e8)
    graph = SimpleNamespace(dot=lambda: "digraph {}")
    monkeypatch.setattr(capture.state, "graph", graph)
    monkeypatch.setattr(hooks, "on_launch", [deferred.launching])
    found = capture_log.CaptureLog(0)
    found._device = nullcontext()
    return found


def rows(folder: Path) -> list[list[str]]:
    """The entries of the table."""
    lines = (folder / "kernels.md").read_text().splitlines()
    return [line.strip("| ").split(" | ") for line in lines if re.match(r"\| \d", line)]


def test_capture_log_writes_a_table_and_its_files(made: Any, chain: Any, tmp_path: Path) -> None:
    x, row = given(*range(6)).reshape(2, 3), given(1, 2, 3)
    more, sine = waiting(lambda F, x, y: x + y), waiting(lambda F, x: F.sin(x))
    double = in_place(lambda F, x: x * 2)
    with made:
        y = more(x, row)
        assert double(y)
        end = told("softmax<float>", "/somewhere/softmax.cu", (3, 2), (128,))
        end()
        z = more(sine(x), row)
        chain.flush()
    np.testing.assert_allclose(host(z), np.sin(host(x)) + host(row), 1e-6)
    assert hooks.on_launch == [deferred.launching]
    assert not deferred.on_joined
    assert not launch.on_generated_launch
    made.write(tmp_path, "A step")

    first, kernel, last = rows(tmp_path)  # what waited comes before what did not
    assert first[:3] == ["1", "[001_body](001_body.cu)", "body (2 times)"]
    assert first[3:] == ["float32 2 x 3, float32 3", "float32 2 x 3", "0.00", "0.1", "50%"]
    assert kernel[1] == "`softmax<float>` of softmax.cu, 3 x 2 blocks of 128"
    assert last[1] == "[003_body](003_body.cu)"
    assert "3 launches, 2 of them of formulas" in (tmp_path / "kernels.md").read_text()
    assert "x0 + x1" not in (tmp_path / "003_body.cu").read_text()
    assert "sin(" in (tmp_path / "003_body.cu").read_text()
    drawn = (tmp_path / "003_body.dot").read_text()
    assert drawn.count("->") == 4  # x to sin, this and the row to the sum, which is the result
    assert '"sin"' in drawn
    assert 'label="x1\\nfloat32 3"' in drawn
    assert (tmp_path / "graph_1.dot").read_text() == "digraph {}"


def test_capture_log_writes_and_measures_equal_kernels_once(
    made: Any, chain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Any] = []
    monkeypatch.setattr(benchmark, "seconds", measured.append)
    more = waiting(lambda F, x: x + 1)
    with made:
        kept = [more(given(1, 2)), told("a", "", (), ())(), more(given(3, 4))]
        told("a", "", (), ())()
        kept.append(more(given(1, 2, 3)))
        chain.flush()
    made.write(tmp_path, "A step")
    generated = "[001_body](001_body.cu)"
    assert [row[1] for row in rows(tmp_path)] == [generated, "`a`", generated, "`a`", generated]
    sums = (tmp_path / "kernels.md").read_text().partition("| kernel | launches |")[2]
    assert re.findall(r"`(\w+)` \| (\d)", sums) == [("001_body", "3"), ("a", "2")]
    assert [benchmark.bytes_of(step) for step in measured] == [16, 24]


def test_capture_log_leaves_out_other_threads_and_eager_kernels(
    made: Any, chain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made:
        made._thread += 1
        told("a", "", (), ())()
        made._thread -= 1
        monkeypatch.setattr(capture.state, "graph", None)
        told("b", "", (), ())()
    made.write(tmp_path, "A step")
    assert rows(tmp_path) == []


def test_layout_bytes_count_repeated_elements_once() -> None:
    f32 = np.dtype(np.float32)
    assert benchmark.ArrayLayout((4, 3), (0, 4), f32, 0).bytes == 12
    assert benchmark.ArrayLayout((), (), f32, 0).bytes == 4
    assert benchmark.ArrayLayout((2, 3), (-12, 4), f32, 0).bytes == 24
