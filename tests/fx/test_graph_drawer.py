"""Pictures of graphs as text; PyTorch's are drawn by a package that is not needed here."""

from __future__ import annotations

from typing import Any

import tensorflow_lite_clone as tlc
from tests.fx.against_torch import module
from tests.fx.networks import NETWORKS


def _traced(name: str) -> tuple[Any, Any, tuple]:
    net, inputs = NETWORKS[name](tlc)
    return tlc.fx.symbolic_trace(net), net, inputs


def test_graph_drawer() -> None:
    traced, _, inputs = _traced("residual")
    module(tlc, "fx.passes.shape_prop").ShapeProp(traced).propagate(*inputs)
    drawer = module(tlc, "fx.passes.graph_drawer").FxGraphDrawer(traced, "net")
    text = drawer.get_dot_graph().to_string()
    assert text.startswith('digraph "net" {') and text.count("->") == _arrows(traced)
    assert "name=%conv1|op_code=call_module" in text and "conv1.weight" in text
    assert "shape=(2, 3, 5, 5)" in text and "target=_operator.add" in text
    plain = module(tlc, "fx.passes.graph_drawer").FxGraphDrawer(
        traced, "net", ignore_parameters_and_buffers=True
    )
    assert "conv1.weight" not in str(plain.get_dot_graph())


def _arrows(traced: Any) -> int:
    uses = sum(len(node.users) for node in traced.graph.nodes)
    called = [traced.get_submodule(n.target) for n in traced.graph.nodes if n.op == "call_module"]
    members = [[*each.named_parameters(), *each.named_buffers()] for each in called]
    return uses + sum(map(len, members))


def test_graph_drawer_of_called_graphs(tmp_path: Any) -> None:
    traced, net, _ = _traced("mlp")
    split_module = module(tlc, "fx.passes.split_module").split_module
    split = split_module(traced, net, lambda node: int(node.target) // 2)
    drawer = module(tlc, "fx.passes.graph_drawer").FxGraphDrawer(split, "net")
    assert sorted(drawer.get_all_dot_graphs()) == ["net", *[f"net_submod_{i}" for i in range(3)]]
    assert drawer.get_submod_dot_graph("submod_0").write_dot(tmp_path / "first.dot")
    assert "ReLU" in (tmp_path / "first.dot").read_text()
