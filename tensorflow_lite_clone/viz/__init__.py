"""Pictures of graphs: what autograd built, what a model runs, and what modules it is made of."""

from __future__ import annotations

from tensorflow_lite_clone.viz.backward import backward
from tensorflow_lite_clone.viz.faces import make_dot, render
from tensorflow_lite_clone.viz.forward import forward
from tensorflow_lite_clone.viz.graph import Graph
from tensorflow_lite_clone.viz.model import Edge, Group, Node
from tensorflow_lite_clone.viz.modules import modules

__all__ = ["Edge", "Graph", "Group", "Node", "backward", "forward", "make_dot", "modules", "render"]
