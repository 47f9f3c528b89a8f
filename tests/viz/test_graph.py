"""Pictures of graphs: the DOT text, and the method that writes it."""

from __future__ import annotations

from pathlib import Path

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import viz


def test_dot_text_names_operations_and_parameters() -> None:
    w = tlc.ones(3, requires_grad=True)
    text = viz.make_dot((w * 2).sum(), {"w": w})
    assert text.startswith("digraph")
    for label in ("Sum\\nscalar", "Mul\\n3", "w\\n3  float32"):
        assert label in text


def test_tensors_have_the_method_without_importing_viz(tmp_path: Path) -> None:
    y = tlc.ones(3, requires_grad=True).sum()
    path = y.render(tmp_path / "graph.dot")
    assert path.read_text() == viz.make_dot(y)
