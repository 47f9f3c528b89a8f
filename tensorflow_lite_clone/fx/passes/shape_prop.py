"""Shapes and dtypes of a graph's values, noted by running it, as ``torch.fx.passes.shape_prop``."""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.strides import channels_last, channels_last_3d, contiguous_format
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.interpreter import Interpreter
from tensorflow_lite_clone.fx.node import Node, map_aggregate
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values.

    `memory_format` is the first of contiguous, channels_last and channels_last_3d in which it lies,
    None if it lies in none of them. Tensors are not quantized here, so `qparams` is empty.
    """

    shape: Any
    dtype: DType
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The `TensorMetadata` of a tensor; a sparse one has neither strides nor memory format."""
    strided = not result.is_sparse
    memory_format = None
    if include_contiguity and strided:
        formats = {4: [channels_last], 5: [channels_last_3d]}.get(result.ndim, [])
        for candidate in (contiguous_format, *formats):
            if result.is_contiguous(memory_format=candidate):
                memory_format = candidate
                break
    stride = tuple(result.stride()) if strided else ()
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, stride, memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph node by node and notes what each gives.

    Afterwards ``node.meta["tensor_meta"]`` is the `TensorMetadata` of the node's result, in the
    lists, tuples and dictionaries that the tensors are in, and ``node.meta["type"]`` its type. With
    a `fake_mode` nothing is calculated: the tensors are fake. A node that fails raises RuntimeError
    with the node's text, from what it raised::

        traced = torch.fx.symbolic_trace(torch.nn.Linear(3, 4))
        ShapeProp(traced).propagate(torch.ones(2, 3))
        [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """What a node gives, which is noted in its `meta`."""
        try:
            with self.fake_mode or nullcontext():
                result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        tensors: list[Tensor] = []

        def describe(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            tensors.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, describe)
        if tensors:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the module, a fake one of a tensor under a `fake_mode`."""
        return self._faked(super().fetch_attr(target))

    def propagate(self, *args: Any) -> Any:
        """Run the graph for sample inputs; returns what it gives."""
        return super().run(*[self._faked(value) for value in args])

    def _faked(self, value: Any) -> Any:
        if self.fake_mode is None or not isinstance(value, Tensor):
            return value
        return self.fake_mode.from_tensor(value)
