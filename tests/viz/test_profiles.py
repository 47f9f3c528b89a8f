"""Colours from profiles and from measurements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import viz
from tests.viz.nets import labels, mlp, ones


def event(name: str, **measures: Any) -> Any:
    """What a profile says of one operation."""
    plain = {
        "kind": "op", "sequence_nr": -1, "self_cpu_time_total": 0.0, "device_time_total": 0.0,
        "cpu_memory_usage": 0, "device_memory_usage": 0,
    }  # fmt: skip
    return SimpleNamespace(name=name, **{**plain, **measures})


def profile(*events: Any) -> Any:
    return SimpleNamespace(events=lambda: list(events))


def times(graph: viz.Graph) -> list[float | None]:
    return [node.time for node in graph.nodes.values() if node.kind == "op"]


def test_events_are_matched_by_their_names_in_order() -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    prof = profile(
        event("linear", self_cpu_time_total=5.0),
        event("linear", kind="module", self_cpu_time_total=100.0),
        event("aten::relu_", self_cpu_time_total=2.0),
        event("copy_", self_cpu_time_total=7.0),
        event("linear", self_cpu_time_total=3.0),
        event("linear", self_cpu_time_total=9.0),  # of another call
        event("sum", self_cpu_time_total=1.0),
    )
    colored = graph.color_by("time", prof)
    assert times(colored) == [5.0, 2.0, 3.0]
    assert times(graph) == [None, None, None]
    text = colored.to_dot()
    assert "5 µs" in text
    assert '#e2583d"' in text  # the hottest


def test_events_are_matched_by_the_number_of_their_node() -> None:
    output = mlp()(ones(5, 4)).sum()
    graph = viz.backward(output)
    numbers = [node.sequence for node in graph.nodes.values() if node.kind == "op"]
    prof = profile(
        event("linear", self_cpu_time_total=50.0),
        event("other", sequence_nr=numbers[0], self_cpu_time_total=5.0),
        event("AddmmBackward0", kind="backward", sequence_nr=numbers[0], self_cpu_time_total=7.0),
        event("relu", sequence_nr=numbers[1], self_cpu_time_total=2.0),
        event("sum", sequence_nr=numbers[3], self_cpu_time_total=4.0),
    )
    assert labels(graph) == ["Addmm", "Relu", "Addmm", "Sum"]
    assert times(graph.color_by("time", prof)) == [12.0, 2.0, None, 4.0]


def test_a_profile_of_ours() -> None:
    model, x = mlp(), ones(5, 4)
    with tlc.profiler.profile(profile_memory=True) as prof:
        loss = model(x).sum()
        loss.backward()
    for graph in (viz.forward(model, x), viz.backward(loss)):
        assert all(time > 0 for time in times(graph.color_by("time", prof)))
        assert graph.color_by("memory", prof).colors == "memory"


def test_the_device_counts_where_there_is_one() -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    prof = profile(
        event("linear", self_cpu_time_total=5.0, device_time_total=50.0, device_memory_usage=2048),
        event("relu", self_cpu_time_total=90.0, device_time_total=3.0),
    )
    assert times(graph.color_by("time", prof)) == [50.0, 3.0, None]
    colored = graph.color_by("memory", prof)
    assert "2 KiB" in colored.to_dot()


def test_measurements_without_a_profile() -> None:
    graph = viz.forward(mlp(), ones(5, 4), time=True)
    assert graph.color_by("time").colors == "time"
    memory = graph.color_by("memory")
    assert [n.memory for n in memory.nodes.values() if n.kind == "op"] == [160, None, 60]
    output = mlp()(ones(5, 4))
    assert "|grad|" in viz.backward(output, gradients=True).color_by("gradient").to_dot()
    saved = viz.backward(output).color_by("memory")
    assert [n.memory for n in saved.nodes.values() if n.kind == "op"] == [80, 160, 256]


def test_color_by_invalid_keys_raise() -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    with pytest.raises(ValueError, match="expected one of kind, time, memory, gradient"):
        graph.color_by("beauty")
    with pytest.raises(ValueError, match="no node has a time: give a profile"):
        graph.color_by("time")
    with pytest.raises(ValueError, match="no node has a time"):
        graph.color_by("time", profile(event("sum", self_cpu_time_total=1.0)))
    with pytest.raises(ValueError, match="no node has a gradient"):
        graph.color_by("gradient")
    with pytest.raises(ValueError, match="a profile has no 'gradient'"):
        graph.color_by("gradient", profile())
