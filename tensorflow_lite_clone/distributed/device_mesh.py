"""Processes in a grid; of one process, so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.distributed.distributed_c10d import (
    _get_default_group,
    init_process_group,
    is_initialized,
    new_group,
)
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.store import HashStore
from tensorflow_lite_clone.ops.create import tensor
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The ranks `mesh` of processes on devices of a kind, with names for the grid's dimensions."""

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None
    ) -> None:
        self.device_type = device_type
        self.mesh = mesh if isinstance(mesh, Tensor) else tensor(mesh)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh.numel() != 1:
            raise NotImplementedError(
                f"a mesh of {self.mesh.numel()} processes (planned: several devices and processes)"
            )
        if not is_initialized():
            init_process_group(rank=0, world_size=1, store=HashStore())
        self._groups = [new_group([0]) for _ in self.mesh.shape]

    @property
    def ndim(self) -> int:
        """How many dimensions the grid has."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, or are along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    def get_rank(self) -> int:
        """The number of this process in the world."""
        return _get_default_group().rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension."""
        self._dim(mesh_dim)
        return 0

    def get_coordinate(self) -> tuple[int, ...]:
        """The place of this process along all dimensions."""
        return (0,) * self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the processes along a dimension."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return list(self._groups)

    def _dim(self, mesh_dim: int | str | None) -> int:
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim}: the names are {names}")
            return names.index(mesh_dim)
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions: `mesh_dim` needs to be given"
            )
        return mesh_dim or 0

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The grid of some of the dimensions, by name."""
        names = (names,) if isinstance(names, str) else names
        for name in names:
            self._dim(name)
        part = self.mesh.reshape([1] * len(names))
        return DeviceMesh(self.device_type, part, mesh_dim_names=names)

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __repr__(self) -> str:
        if self.mesh_dim_names is None:
            return f"DeviceMesh({self.shape}, '{self.device_type}')"
        sizes = ", ".join([f"{n}={size}" for n, size in zip(self.mesh_dim_names, self.shape)])
        return f"DeviceMesh(({sizes}), '{self.device_type}')"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """All processes in a grid of a shape, in order."""
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_shape):
        raise RuntimeError(
            f"Each mesh_dim_name must be unique, one for each of {len(mesh_shape)} dimensions: "
            f"{mesh_dim_names}"
        )
    ranks: Any = 0
    for size in reversed(mesh_shape):
        if size != 1:
            raise NotImplementedError(
                f"a mesh of {mesh_shape} processes (planned: several devices and processes)"
            )
        ranks = [ranks]
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
