"""Pictures of the graph that autograd built."""

from __future__ import annotations

from tensorflow_lite_clone.viz.graph import make_dot, render

__all__ = ["make_dot", "render"]
