"""The short forms: `make_dot`, `render`, the method of tensors; the example."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from examples import graph as example
from tensorflow_lite_clone import viz


def test_dot_text_names_operations_and_parameters() -> None:
    w = tlc.ones(3, requires_grad=True)
    text = viz.make_dot((w * 2).sum(), {"w": w})
    assert text.startswith("digraph")
    for label in ("Sum\\nscalar", "Mul\\n3", "w\\n3  float32"):
        assert label in text


def test_shapes_can_be_left_out() -> None:
    text = viz.make_dot(tlc.ones(3, requires_grad=True).exp(), show_shapes=False)
    assert '[label="Exp" ' in text
    assert "float32\\n" not in text


def test_tensors_have_the_method_without_importing_viz(tmp_path: Path) -> None:
    y = tlc.ones(3, requires_grad=True).sum()
    path = y.render(tmp_path / "graph.dot")
    assert path.read_text() == viz.make_dot(y) == viz.backward(y).to_dot()
    with pytest.raises(ValueError, match="expected .svg"):
        viz.render(y, tmp_path / "graph.gif")


def test_the_example_draws_three_graphs(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["graph", "--folder", str(tmp_path / "new")])
    example.main()
    written = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert written == ["backward.html", "forward.html", "modules.html"]
    assert "graph of forward of Classifier" in capsys.readouterr().out
