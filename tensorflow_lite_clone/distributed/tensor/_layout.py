"""Where the parts of a tensor lie: sizes and offsets, without any communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh, _get_current_mesh
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    piece,
)

Placements = tuple[Placement, ...]


@dataclass(frozen=True)
class Layout:
    """A whole tensor's shape, and its placement along each dimension of a mesh.

    `gradient` is how the gradient of this process's part has to be placed, where that does not
    follow from `placements`: as terms, for a whole input of several layers that are cut.
    """

    mesh: DeviceMesh
    placements: Placements
    shape: Size
    gradient: Placements | None = None

    @property
    def placements_of_gradient(self) -> Placements:
        """How the gradient of this process's part has to be placed."""
        return resting(self.placements) if self.gradient is None else self.gradient

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh, by the name that tensors have for it."""
        return self.mesh

    @property
    def groups_of_parts(self) -> tuple[ProcessGroup, ...]:
        """The groups whose processes have other parts, one for each cut."""
        cuts = [i for i, placement in enumerate(self.placements) if isinstance(placement, Shard)]
        return tuple([self.mesh.get_group(i) for i in cuts])

    def with_placements(self, placements: Placements) -> Layout:
        """The same tensor, placed otherwise, as its gradient is."""
        return Layout(self.mesh, placements, self.shape)


def mesh_or_current(mesh: DeviceMesh | None) -> DeviceMesh:
    """The mesh, or that of the ``with`` block around the program."""
    return _get_current_mesh() if mesh is None else mesh


def place_in(mesh: DeviceMesh) -> tuple[int, ...]:
    """This process's place in a mesh; RuntimeError if it has none."""
    place = mesh.get_coordinate()
    if place is None:
        raise RuntimeError(f"process {mesh.get_rank()} is not in {mesh}")
    return place


def normalized(placements: Sequence[Any] | None, mesh: DeviceMesh, ndim: int) -> Placements:
    """Placements for all dimensions of a mesh, their dimensions not negative.

    Raises ValueError for too few or too many and for several kinds of reductions, IndexError for a
    dimension that the tensor has not.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements "
            f"length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found: list[Placement] = []
    for placement in placements:
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
                    f"but got {placement.dim})"
                )
            placement = Shard(placement.dim % ndim)
        found.append(placement)
    operations = {placement.reduce_op for placement in found if isinstance(placement, Partial)}
    if len(operations) > 1:
        raise ValueError(
            "Mixed Partial reduce types are not supported in the same placement list. Found "
            f"reduce ops: {operations}. Please ensure all Partial placements use the same reduce "
            "operation."
        )
    return tuple(found)


def own_part(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part of a tensor, and where it begins."""
    sizes, offsets = list(shape), [0] * len(shape)
    for parts, index, placement in zip(mesh.shape, place_in(mesh), placements):
        if isinstance(placement, Shard):
            start, length = piece(sizes[placement.dim], parts, index)
            sizes[placement.dim] = length
            offsets[placement.dim] += start
    return tuple(sizes), tuple(offsets)


def resting(placements: Placements) -> Placements:
    """How a gradient is placed: as the value, but whole where the value is terms of a sum."""
    return tuple([Replicate() if isinstance(p, Partial) else p for p in placements])
