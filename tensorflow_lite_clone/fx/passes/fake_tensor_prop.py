"""A graph run on tensors without values, as ``torch.fx.passes.fake_tensor_prop``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensorMode
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.interpreter import Interpreter
from tensorflow_lite_clone.fx.node import Node, map_aggregate
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph without calculating, and notes the fake tensors in ``node.meta["val"]``.

    The module's own parameters and buffers are as good as fake. See `FakeTensorMode` for what is
    raised where a program needs values.
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = mode or FakeTensorMode(allow_non_fake_inputs=True)

    def run_node(self, n: Node) -> Any:
        """What a node gives, which is noted in its `meta`."""
        result = super().run_node(n)

        def describe(value: Any) -> Any:
            if isinstance(value, Tensor):
                return self._mode.describe(value)
            return value if isinstance(value, int | float) else None

        value = map_aggregate(result, describe)
        if value is not None:
            n.meta["val"] = value
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph for inputs, of which tensors are described by fake ones."""
        fakes = [self._mode.from_tensor(x) if isinstance(x, Tensor) else x for x in args]
        return self.propagate_dont_convert_inputs(*fakes)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph for inputs that are fake already."""
        with self._mode:
            return super().run(*args)
