"""``torch.fx.passes.utils``: matching and fusing parts of graphs."""

from __future__ import annotations

from tensorflow_lite_clone.fx.passes.utils.common import (
    HolderModule,
    compare_graphs,
    lift_subgraph_as_module,
)

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]
