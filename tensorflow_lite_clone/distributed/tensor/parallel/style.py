"""How a layer's parameters are cut, and what goes in and comes out.

The scheme is that of Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053), with activations cut
along the sequence as in Korthikanti et al. 2022, arXiv:2205.05198. A layer computes with plain
tensors: its parts of the parameters, and its part of the input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.tensor._dtensor import DTensor
from tensorflow_lite_clone.distributed.tensor._layout import Layout, normalized, place_in
from tensorflow_lite_clone.distributed.tensor._modules import lay_out
from tensorflow_lite_clone.distributed.tensor._moves import moved
from tensorflow_lite_clone.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
)
from tensorflow_lite_clone.nn.modules.linear import Linear
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.sparse import Embedding
from tensorflow_lite_clone.tensor import Tensor

WHOLE, TERMS = (Replicate(),), (Partial(),)


class ParallelStyle(ABC):
    """What `parallelize_module` does to a module: ``_apply(module, device_mesh)``, in place."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Cut the module, and return it."""


class _LayerStyle(ParallelStyle):
    """A style of `Linear` and `Embedding`: one input, one output."""

    input_layouts: tuple[Placement]
    output_layouts: tuple[Placement]
    use_local_output: bool

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = Linear if isinstance(module, Linear) else Embedding
        if not isinstance(module, kind):
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
            )
        lay_out(module, device_mesh, self.src_data_rank, **self._placements(kind))
        module.register_forward_pre_hook(partial(self._before, device_mesh))
        module.register_forward_hook(partial(self._after, device_mesh), always_call=True)
        return module

    def _placements(self, kind: type[Module]) -> dict[str, Any]:
        raise NotImplementedError

    def _before(self, mesh: DeviceMesh, module: Any, inputs: tuple) -> tuple:
        raise NotImplementedError

    def _after(self, mesh: DeviceMesh, module: Any, inputs: tuple, output: Any) -> Any:
        raise NotImplementedError

    def _given(self, whole: DTensor) -> Any:
        """The output, laid out as it was asked for."""
        result = whole.redistribute(placements=self.output_layouts)
        return result.to_local() if self.use_local_output else result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"
        )


def as_dtensor(x: Any, mesh: DeviceMesh, layouts: tuple[Placement]) -> DTensor:
    """A layer's input, as what its layout says if it is a plain tensor."""
    return x if isinstance(x, DTensor) else DTensor.from_local(x, mesh, layouts)


class ColwiseParallel(_LayerStyle):
    """Each process computes a part of a layer's output features.

    A `Linear` ``y = x W^T + b``: W and b are cut along their first dimension. An `Embedding`: the
    table's columns are. The input is made whole; its gradient is the sum over the processes (an
    all_reduce in the backward pass, or a reduce_scatter if the input was cut). The output is cut
    along its last dimension unless `output_layouts` says otherwise, and a plain tensor if
    `use_local_output`. NotImplementedError for other layers.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.use_local_output = use_local_output

    def _placements(self, kind: type[Module]) -> dict[str, Any]:
        if kind is Linear:
            return {"weight": [Shard(0)], "bias": [Shard(0)]}
        return {"weight": [Shard(1)]}

    def _before(self, mesh: DeviceMesh, module: Any, inputs: tuple) -> tuple:
        x = as_dtensor(inputs[0], mesh, self.input_layouts)
        return moved(x._local_tensor, x._spec, WHOLE, TERMS), *inputs[1:]

    def _after(self, mesh: DeviceMesh, module: Any, inputs: tuple, output: Any) -> Any:
        if output is None:  # forward has raised
            return None
        features = module.out_features if isinstance(module, Linear) else module.embedding_dim
        places = normalized([Shard(-1)], mesh, output.ndim)
        shape = Size((*output.shape[:-1], features))
        return self._given(DTensor(output, Layout(mesh, places, shape)))


class RowwiseParallel(_LayerStyle):
    """Each process computes a term of a layer's output from a part of its input features.

    A `Linear` ``y = x W^T + b``: W is cut along its second dimension, as the input is along its
    last; each process adds ``b / processes``. An `Embedding`: the table's rows are cut, the input
    is made whole, and a process gives zeros for rows that it has not. The output is the sum of the
    terms (an all_reduce in the forward pass), or cut as `output_layouts` says (a reduce_scatter).
    NotImplementedError for other layers, and for an `Embedding` with ``max_norm``; ValueError if
    there are fewer rows than processes.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _placements(self, kind: type[Module]) -> dict[str, Any]:
        return {"weight": [Shard(1 if kind is Linear else 0)]}

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if isinstance(module, Embedding):
            rows, parts = module.num_embeddings, device_mesh.size()
            if -(-rows // parts) * (parts - 1) >= rows:
                raise ValueError(f"{rows} rows cannot be cut into {parts} parts")
            if module.max_norm is not None:
                raise NotImplementedError("max_norm of an Embedding whose rows are cut")
            start, stop = _rows(module, device_mesh)
            table: Any = module
            kept = table.padding_idx
            inside = kept is not None and start <= kept < stop
            table.padding_idx = kept - start if inside else None
        return super()._apply(module, device_mesh)

    def _before(self, mesh: DeviceMesh, module: Any, inputs: tuple) -> tuple:
        x = as_dtensor(inputs[0], mesh, self.input_layouts)
        if isinstance(module, Embedding):
            ids = moved(x._local_tensor, x._spec, WHOLE)
            start, stop = _rows(module, mesh)
            inside = (ids >= start) & (ids < stop)
            module.__dict__["_inside"] = inside
            return ((ids - start) * inside,)
        if module.bias is not None:
            bias = module.bias
            module.__dict__["_whole_bias"] = bias
            module._parameters["bias"] = moved(bias, Layout(mesh, WHOLE, bias.shape), TERMS)
        places = normalized([Shard(-1)], mesh, x.ndim)
        return moved(x._local_tensor, x._spec, places), *inputs[1:]

    def _after(self, mesh: DeviceMesh, module: Any, inputs: tuple, output: Any) -> Any:
        attributes = module.__dict__
        if "_whole_bias" in attributes:
            module._parameters["bias"] = attributes.pop("_whole_bias")
        inside = attributes.pop("_inside", None)
        if output is None:  # forward has raised
            return None
        if inside is not None:
            output = output * inside.unsqueeze(-1)
        for dim, placement in enumerate(normalized(self.output_layouts, mesh, output.ndim)):
            if isinstance(placement, Shard) and self.use_local_output:
                expect_even(output, placement.dim, mesh.size(dim))
        return self._given(DTensor(output, Layout(mesh, TERMS, output.shape)))


def expect_even(x: Tensor, dim: int, parts: int) -> None:
    """RuntimeError where plain tensors would be of several sizes, which nothing tells the next."""
    if x.shape[dim] % parts:
        raise RuntimeError(
            f"a dimension of size {x.shape[dim]} cannot be cut evenly into {parts} plain tensors: "
            "pad it, or use use_local_output=False"
        )


def _rows(module: Any, mesh: DeviceMesh) -> tuple[int, int]:
    """The first of a table's rows that this process has, and the first that is after them."""
    length = -(-module.num_embeddings // mesh.size())
    start = place_in(mesh)[0] * length
    return start, min(start + length, module.num_embeddings)


class SequenceParallel(ParallelStyle):
    """A layer with small parameters (a norm, dropout) on activations cut along `sequence_dim`.

    Its parameters are repeated; their gradients are summed over the processes, once in a backward
    pass and parameter. A plain input is this process's slice. The output is a `DTensor`, or with
    `use_local_output` this process's slice.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim = sequence_dim
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        lay_out(module, device_mesh, self.src_data_rank)
        module.register_forward_pre_hook(partial(self._before, device_mesh))
        module.register_forward_hook(partial(self._after, device_mesh), always_call=True)
        return module

    def _before(self, mesh: DeviceMesh, module: Any, inputs: tuple) -> tuple:
        x = as_dtensor(inputs[0], mesh, (Shard(self.sequence_dim),))
        x = x.redistribute(placements=[Shard(self.sequence_dim)])
        parameters = module._parameters
        module.__dict__["_wholes"] = x._spec, dict(parameters)
        for name, value in parameters.items():
            if value is not None:
                parameters[name] = moved(value, Layout(mesh, WHOLE, value.shape), WHOLE, TERMS)
        return x.to_local(), *inputs[1:]

    def _after(self, mesh: DeviceMesh, module: Any, inputs: tuple, output: Any) -> Any:
        layout, parameters = module.__dict__.pop("_wholes", (None, {}))
        module._parameters.update(parameters)
        if output is None or self.use_local_output:
            return output
        return DTensor(output, layout)

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_dim}, "
            f"use_local_output={self.use_local_output})"
        )
