"""Functions of elements over DTensors: each process computes with its own parts.

Which functions these are follows from the table of ops: those whose op works element by element.
Operands are cut as the one is that is cut along most dimensions of the mesh; terms of sums are
added first. What is broadcast along a dimension that is cut is whole, and its gradient is a sum of
terms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.shape import Size, broadcast_shapes
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.distributed.tensor._dtensor import DTensor, LocalParameter
from tensorflow_lite_clone.distributed.tensor._layout import Layout, Placements, resting
from tensorflow_lite_clone.distributed.tensor._moves import moved
from tensorflow_lite_clone.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
)
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise
from tensorflow_lite_clone.tensor import Tensor

_OPERATORS = """
    add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv ifloordiv
    mod rmod imod pow rpow ipow and rand iand or ror ior xor rxor ixor lshift rshift eq ne lt le gt
    ge neg pos abs invert
""".split()


def _cut_most(tensors: list[DTensor]) -> DTensor:
    def cuts(tensor: DTensor) -> tuple[int, int]:
        return sum([isinstance(p, Shard) for p in tensor.placements]), tensor.ndim

    return max(tensors, key=cuts)


def _within(placement: Placement, shape: Size, own: Size, shift: int) -> Placement:
    """A placement of a tensor of `shape` for one of shape `own` that is broadcast with it.

    `shift` is by how many dimensions the number of a cut dimension is smaller.
    """
    if not isinstance(placement, Shard):
        return Replicate()
    dim = placement.dim - shift
    sizes = shape[placement.dim], own[dim] if 0 <= dim < len(own) else 1
    return Shard(dim) if sizes[0] == sizes[1] else Replicate()


def _part(x: DTensor, shape: Size, placements: Placements) -> Tensor:
    """This process's part of an operand of a result of `shape` with these placements."""
    shift = len(shape) - x.ndim
    own = tuple([_within(placement, shape, x.shape, shift) for placement in placements])
    gradient = tuple(
        [Partial() if isinstance(cut, Shard) and cut_own == Replicate() else cut_own
         for cut, cut_own in zip(placements, own)]
    )  # fmt: skip
    return moved(x._local_tensor, x._spec, own, gradient)


def _whole(value: Any, name: str) -> Any:
    """An argument, parameters as the DTensors that they are; RuntimeError for other tensors."""
    if isinstance(value, LocalParameter):
        return value.dtensor
    if isinstance(value, Tensor) and not isinstance(value, DTensor):
        raise RuntimeError(
            f"{name}() got mixed torch.Tensor and DTensor: distribute_tensor makes a DTensor of a "
            "Tensor"
        )
    return value


def _by_parts(name: str, function: Callable[..., Any], in_place: bool) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        values = [_whole(value, name) for value in (*args, *kwargs.values())]
        tensors = [value for value in values if isinstance(value, DTensor)]
        mesh = tensors[0].device_mesh
        if any([tensor.device_mesh != mesh for tensor in tensors]):
            raise RuntimeError(f"{name}() got DTensors of several meshes")
        shape = Size(broadcast_shapes(*[tensor.shape for tensor in tensors]))
        first = tensors[0] if in_place else _cut_most(tensors)
        if in_place and resting(first.placements) != first.placements:
            raise RuntimeError(f"{name}() cannot write into terms of a sum: {first.placements}")
        shift = first.ndim - len(shape)
        placements = tuple([_within(p, first.shape, shape, shift) for p in first.placements])
        parts = [
            _part(value, shape, placements) if isinstance(value, DTensor) else value
            for value in values
        ]
        made = function(*parts[: len(args)], **dict(zip(kwargs, parts[len(args) :])))
        if in_place:
            return first
        layout = Layout(mesh, placements, shape)
        if isinstance(made, tuple):
            return type(made)([DTensor(part, layout) for part in made])
        return made if made is NotImplemented else DTensor(made, layout)

    return call


def _is_elementwise(op: Any) -> bool:
    if not is_op(op) or "axis" in op.forward.__code__.co_varnames:
        return False
    record = PRIMITIVES.get(op.primitive or "")
    return issubclass(op, Pointwise) or (record is not None and record.kind is kinds.elementwise)


for _own in [name for name, op in TABLE.items() if _is_elementwise(op)]:
    for _name in (_own, f"{_own}_"):
        for _place in ("torch", "functional", "special", "method"):
            if (_found := EXPORTS[_place].get(_name)) is not None:
                DTensor.functions.setdefault(_name, _by_parts(_name, _found, _name != _own))
for _symbol in _OPERATORS:
    if (_found := EXPORTS["method"].get(f"__{_symbol}__")) is not None:
        _in_place = _symbol[0] == "i" and _symbol[1:] in _OPERATORS
        setattr(DTensor, f"__{_symbol}__", _by_parts(f"__{_symbol}__", _found, _in_place))
