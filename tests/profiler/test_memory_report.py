"""Memory by line, and over time as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.profiler import memory_by_line, memory_timeline, profile
from tensorflow_lite_clone.profiler.memory_report import MemoryLine
from tests.device import DEVICE

KIB = 1024
EVENTS = [
    (1.0, "cuda:0", 4 * KIB, 14 * KIB, "a.py:1"),  # ten were in use before
    (2.0, "cpu", 2 * KIB, 2 * KIB, "b.py:2"),
    (3.0, "cuda:0", 6 * KIB, 20 * KIB, "b.py:2"),
    (4.0, "cuda:0", -4 * KIB, 16 * KIB, "a.py:1"),
    (5.0, "cuda:0", 3 * KIB, 19 * KIB, "a.py:1"),
    (6.0, "cpu", -2 * KIB, 0, "b.py:2"),
]


def test_by_line() -> None:
    assert memory_by_line(EVENTS) == [
        MemoryLine("before the profile", "cuda:0", 10 * KIB, 0, 10 * KIB),
        MemoryLine("b.py:2", "cuda:0", 6 * KIB, 0, 6 * KIB),
        MemoryLine("a.py:1", "cuda:0", 7 * KIB, 4 * KIB, 4 * KIB),
        MemoryLine("b.py:2", "cpu", 2 * KIB, 2 * KIB, 2 * KIB),
    ]
    assert memory_by_line([]) == []


def test_timeline(tmp_path: Path) -> None:
    memory_timeline(EVENTS, tmp_path / "chart.svg")
    text = (tmp_path / "chart.svg").read_text()
    for words in (
        "cuda:0: peak 20 KiB after 3.0 us",
        "b.py:2: 6 KiB",
        "before the profile: 10 KiB",
    ):
        assert f"<!-- {words} -->" in text
    memory_timeline(EVENTS, tmp_path / "chart.png", device="cpu")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_timeline_of_many_sources_and_events(tmp_path: Path) -> None:
    events = []
    total = 0
    for number in range(9000):
        delta = KIB if number < 5000 else -KIB
        place = number if number < 5000 else number - 5000
        total += delta
        events.append((float(number), "cpu", delta, total, f"{'folder/' * 20}m.py:{place % 20}"))
    memory_timeline(events, tmp_path / "chart.svg")
    text = (tmp_path / "chart.svg").read_text()
    assert "<!-- cpu: peak 4.88 MiB after 5.00 ms -->" in text
    assert "<!-- others -->" in text and f"<!-- {'folder/' * 20}" not in text
    assert text.count("m.py:") == 10


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="profile_memory=True"):
        memory_timeline([], tmp_path / "chart.png")
    with pytest.raises(
        ValueError, match="no memory events on cuda:1: there are some on cuda:0, cpu"
    ):
        memory_timeline(EVENTS, tmp_path / "chart.png", device="cuda:1")
    assert list(tmp_path.iterdir()) == []


def test_of_a_profile(tmp_path: Path) -> None:
    with profile(profile_memory=True, with_stack=True) as profiled:
        kept = tlc.ones(512, 512, device=DEVICE)
        kept = kept + 1
        for _ in range(3):
            kept * 2
    lines = [line for line in memory_by_line(profiled) if "test_memory_report" in line.where]
    mine = [line for line in lines if line.allocated >= 512 * 512 * 4 * 3]
    assert len(mine) == 1 and mine[0].freed == mine[0].allocated
    memory_timeline(profiled, tmp_path / "chart.png", tlc.empty(1, device=DEVICE).device)
    assert (tmp_path / "chart.png").stat().st_size > 1000
