"""Processes in a grid, with a group of processes along each of its lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.core.dtypes import int32
from tensorflow_lite_clone.distributed.distributed_c10d import (
    _get_default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.store import HashStore
from tensorflow_lite_clone.ops.create.constructors import as_tensor
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]

#: The meshes whose ``with`` blocks this process is in, the innermost last.
_entered: list[DeviceMesh] = []


class DeviceMesh:
    """The ranks `mesh` of processes on devices of a kind, with names for the grid's dimensions.

    Every process of the world has to make it: there is a group of processes for each line of the
    grid. A process outside of the grid has no place in it, and no groups. Without a process group
    there is one after it. On ``"cuda"`` a process that has not used a GPU takes the one of its
    number on its machine.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
    ) -> None:
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        self.device_type = device_type
        self.mesh = as_tensor(mesh, device="cpu").detach().to(int32)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if not is_initialized():
            _start(self.mesh.numel())
        if self.mesh.numel() > get_world_size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {get_world_size()}, but found "
                f"{self.mesh.numel()} ranks!"
            )
        if device_type == "cuda":
            _choose_gpu()
        self._root = self
        self._flattened: dict[str, DeviceMesh] = {}
        self._strides: tuple[Any, ...] = tuple(self.mesh.contiguous().stride())
        self._set_place()
        self._groups: list[ProcessGroup] = []
        if _init_backend:
            for dim, size in enumerate(self.shape):
                self._groups += _own_group(self.mesh.movedim(dim, -1).reshape(-1, size))

    def _set_place(self) -> None:
        place = (self.mesh == get_rank()).nonzero().tolist()
        self._place = tuple(place[0]) if place else None
        ranks = tuple(self.mesh.flatten().tolist())
        self._key = self.device_type, self.shape, ranks, self.mesh_dim_names

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
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """The number of this process in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process along all dimensions; None if it is not in the grid."""
        return self._place

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension; RuntimeError if it is not in the grid."""
        dim = self._dim(mesh_dim)
        if self._place is None:
            raise RuntimeError(f"process {get_rank()} is not in {self}")
        return self._place[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the processes along a dimension, in the order of the grid."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return list(self._groups)

    def _dim(self, mesh_dim: int | str | None) -> int:
        """The number of a dimension; it may be left out where there is one."""
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(
                    f"Mesh dimension '{mesh_dim}' does not exist.",
                    f"Available mesh dimensions are: mesh_dim_names={names}",
                )
            return names.index(mesh_dim)
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        return mesh_dim or 0

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the grid along some dimensions in which this process is.

        A name can also be that of a grid which `_flatten` made. Raises KeyError for other names
        and for another order, RuntimeError for a name given twice and a grid without names.
        """
        own = self.mesh_dim_names
        if not own:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == own:
            return self
        if len(names) == 1 and names[0] in self._root._flattened:
            return self._root._flattened[names[0]]
        if any([name not in own for name in names]):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(own)}."
            )
        if len(set(names)) < len(names):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        dims = [own.index(name) for name in names]
        if dims != sorted(dims):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in "
                "ascending order."
            )
        place = self._place or (0,) * self.ndim
        part = self.mesh[tuple([slice(None) if d in dims else place[d] for d in range(self.ndim)])]
        made = self._derived(part, names, tuple([self._strides[d] for d in dims]))
        made._groups = [self._groups[d] for d in dims] if self._groups else []
        return made

    def _derived(self, mesh: Tensor, names: tuple[str, ...], strides: tuple) -> DeviceMesh:
        made = DeviceMesh(self.device_type, mesh, mesh_dim_names=names, _init_backend=False)
        made._root, made._strides = self._root, strides
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> Any:
        """The same processes along one dimension, with one group; every process has to ask.

        It is called `mesh_dim_name`, or by the names of the dimensions with ``_`` between them,
        and found under that name afterwards. Raises ValueError for a name of the grid itself.
        """
        own, root = self.mesh_dim_names, self._root
        if not own:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(own)
        if self.ndim == 1 and own == (name,):
            return self
        outer = root.mesh_dim_names or ()
        if name in outer:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {own}. Please specify "
                "another valid mesh_dim_name.",
            )
        if name not in root._flattened:
            made = self._derived(self.mesh.flatten(), (name,), _joined(self.shape, self._strides))
            dims = [outer.index(own_name) for own_name in own]
            ends = list(range(-len(dims), 0))
            lines = root.mesh.movedim(dims, ends).reshape(-1, self.mesh.numel())
            made._groups = _own_group(lines)
            root._flattened[name] = made
        return root._flattened[name]

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """The grid of the processes of a group, or of a group for each dimension of `mesh`."""
        groups = group if isinstance(group, list) else [group]
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if not isinstance(group, list):
            ranks = get_process_group_ranks(group)
            if mesh is not None and as_tensor(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            mesh = ranks
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{made.mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        made._groups = list(groups)
        return made

    def __enter__(self) -> DeviceMesh:
        _entered.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _entered.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceMesh:
        return self  # its groups are there once

    def __reduce__(self) -> Any:
        raise TypeError(
            "a DeviceMesh is of the processes that made it, and so is what lies on it: save the "
            "full_tensor() of each, or use torch.distributed.checkpoint"
        )

    def __repr__(self) -> str:
        sizes = str(self.shape)
        if self.mesh_dim_names is not None:
            pairs = zip(self.mesh_dim_names, self.shape)
            sizes = f"({', '.join([f'{name}={size}' for name, size in pairs])})"
        return f"DeviceMesh({sizes}, '{self.device_type}', stride={self._strides})"


def _start(processes: int) -> None:
    """Make the process group: the environment's, or that of this process alone."""
    if processes == 1 and "RANK" not in os.environ:
        init_process_group(rank=0, world_size=1, store=HashStore())
    else:
        init_process_group()


def _choose_gpu() -> None:
    """Make the GPU of this process's number on its machine the current one, if none was chosen."""
    if not cuda.is_initialized() and cuda.current_device() == 0:
        local = int(os.environ.get("LOCAL_RANK", get_rank()))
        cuda.set_device(local % cuda.device_count())


def _own_group(lines: Tensor) -> list[ProcessGroup]:
    """Make a group of each line of ranks, and give that which this process is in, if there is one.

    All processes make all groups, in the same order.
    """
    own = []
    for ranks in lines.tolist():
        whole = ranks == list(range(get_world_size()))
        made = _get_default_group() if whole else new_group(ranks, sort_ranks=False)
        if get_rank() in ranks:
            own.append(made)
    return own


def _joined(sizes: Sequence[int], strides: Sequence[Any]) -> tuple[Any, ...]:
    """The stride of dimensions that are made one: a number where they are regular."""
    pairs = [(size, stride) for size, stride in zip(sizes, strides) if size > 1]
    for (_, outer), (size, inner) in zip(pairs, pairs[1:]):
        if outer != size * inner:
            return (tuple(strides),)
    return (pairs[-1][1] if pairs else 1,)


def _get_current_mesh() -> DeviceMesh:
    """The mesh of the innermost ``with`` block; RuntimeError outside of all."""
    if not _entered:
        raise RuntimeError("No device mesh is currently active!")
    return _entered[-1]


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """The first processes in a grid of a shape, in order; every process has to call it.

    Raises RuntimeError for names that are not unique or too few, for a device type with a number,
    and for a grid of more processes than there are.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in "
                f"mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found "
                f"len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):"
                f"{len(mesh_shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks = as_tensor(list(range(prod(mesh_shape)))).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
