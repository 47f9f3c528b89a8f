"""Grids of processes: four of them. What is compared with literals, PyTorch 2.13 gave."""

from __future__ import annotations

import copy
import pickle

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh, init_device_mesh
from tests.distributed.process_groups import HERE, world_here


def grid(*shape, names=None):
    return init_device_mesh(HERE, shape, mesh_dim_names=names)


def text(mesh):
    return repr(mesh).replace(f"'{HERE}'", "'cpu'")


def ranks(mesh, dim=None):
    return dist.get_process_group_ranks(mesh.get_group(dim))


def two_by_two(rank, size):
    mesh = grid(2, 2, names=("dp", "tp"))
    dp, tp = mesh["dp"], mesh["tp"]
    sums = []
    for dim in ("dp", "tp"):
        x = torch.tensor([float(rank)], device=HERE)
        dist.all_reduce(x, group=mesh.get_group(dim))
        sums.append(x.item())
    return (
        [text(m) for m in (mesh, dp, tp, mesh["dp", "tp"])],
        (mesh.size(), mesh.size(1), mesh.ndim, mesh.shape, mesh.get_rank()),
        (mesh.get_coordinate(), mesh.get_local_rank("dp"), mesh.get_local_rank(1)),
        (mesh.mesh.tolist(), str(mesh.mesh.dtype), dp.mesh.tolist(), tp.mesh.tolist()),
        [dist.get_process_group_ranks(group) for group in mesh.get_all_groups()],
        (ranks(dp), ranks(tp), dp.get_coordinate(), tp.get_local_rank(), dp.ndim),
        sums,
    )


def test_a_grid_of_two_by_two():
    for rank, found in enumerate(world_here(4).run(two_by_two)):
        row, column = divmod(rank, 2)
        in_column, in_row = [column, column + 2], [2 * row, 2 * row + 1]
        assert found == (
            [
                "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))",
                "DeviceMesh((dp=2), 'cpu', stride=(2,))",
                "DeviceMesh((tp=2), 'cpu', stride=(1,))",
                "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))",
            ],
            (4, 2, 2, (2, 2), rank),
            ((row, column), row, column),
            ([[0, 1], [2, 3]], "torch.int32", in_column, in_row),
            [in_column, in_row],
            (in_column, in_row, (row,), column, 1),
            [float(sum(in_column)), float(sum(in_row))],
        )


def flattened(rank, size):
    mesh = grid(2, 1, 2, names=("a", "b", "c"))
    whole, part = mesh._flatten(), mesh["a", "c"]._flatten("ac")
    inner = mesh["b", "c"]._flatten()
    return (
        [text(m) for m in (mesh["a", "c"], whole, part, mesh["ac"], mesh["a_b_c"], inner)],
        (mesh._flatten() is whole, mesh["a", "b"]["a"] == mesh["a"]),
        (whole.mesh.tolist(), ranks(whole), ranks(inner), inner.get_local_rank()),
    )


def test_flattened_dimensions():
    for rank, found in enumerate(world_here(4).run(flattened)):
        row = [rank // 2 * 2, rank // 2 * 2 + 1]
        assert found == (
            [
                "DeviceMesh((a=2, c=2), 'cpu', stride=(2, 1))",
                "DeviceMesh((a_b_c=4), 'cpu', stride=(1,))",
                "DeviceMesh((ac=4), 'cpu', stride=(1,))",
                "DeviceMesh((ac=4), 'cpu', stride=(1,))",
                "DeviceMesh((a_b_c=4), 'cpu', stride=(1,))",
                "DeviceMesh((b_c=2), 'cpu', stride=(1,))",
            ],
            (True, True),
            ([0, 1, 2, 3], [0, 1, 2, 3], row, rank % 2),
        )


def unpicklable(mesh):
    try:
        pickle.dumps(mesh)
    except TypeError as error:
        return "is of the processes that made it" in str(error)


def other_grids(rank, size):
    part = DeviceMesh(HERE, [2, 0])  # in this order, and not of all
    inside = None
    if part.get_coordinate() is not None:
        x = [torch.empty(1, device=HERE) for _ in range(2)]
        dist.all_gather(x, torch.tensor([float(rank)], device=HERE), part.get_group())
        inside = part.get_local_rank(), [y.item() for y in x]
    world = DeviceMesh.from_group(dist.group.WORLD, HERE, mesh_dim_names=("w",))
    mesh = grid(2, 2, names=("a", "b"))
    again = DeviceMesh.from_group(mesh.get_all_groups(), HERE, mesh.mesh, mesh_dim_names=("x", "y"))
    with mesh as entered:
        from tensorflow_lite_clone.distributed.device_mesh import _get_current_mesh

        current = entered is mesh and _get_current_mesh() is mesh
    return (
        inside,
        (text(world), world.get_group() is dist.group.WORLD, text(grid(4))),
        (text(again), again["y"].mesh.tolist() == mesh["b"].mesh.tolist()),
        (mesh == grid(2, 2, names=("a", "b")), mesh == grid(2, 2), mesh == "a"),
        hash(mesh) == hash(grid(2, 2, names=("a", "b"))),
        copy.deepcopy(mesh) is mesh,
        current,
        unpicklable(mesh),
    )


def test_other_grids():
    for rank, found in enumerate(world_here(4).run(other_grids)):
        assert found[0] == {0: (1, [2.0, 0.0]), 2: (0, [2.0, 0.0])}.get(rank)
        assert found[1:] == (
            ("DeviceMesh((w=4), 'cpu', stride=(1,))", True, "DeviceMesh((4,), 'cpu', stride=(1,))"),
            ("DeviceMesh((x=2, y=2), 'cpu', stride=(2, 1))", True),
            (True, False, False),
            True,
            True,
            True,
            True,
        )


ERRORS = {
    "too_big": (lambda m: grid(8), "RuntimeError", "Mesh should not be bigger than default world"),
    "names_twice": (lambda m: grid(2, 2, names=("a", "a")), "RuntimeError", "must be unique"),
    "few_names": (lambda m: grid(2, 2, names=("a",)), "RuntimeError", "should have same length"),
    "number": (lambda m: init_device_mesh("cuda:1", (4,)), "RuntimeError", "Device type with ind"),
    "nothing": (lambda m: DeviceMesh(HERE), "TypeError", "The mesh argument is required"),
    "twice": (lambda m: DeviceMesh(HERE, [0, 0]), "ValueError", ""),
    "outside": (lambda m: DeviceMesh(HERE, [0, 7]), "ValueError", "Rank 7 is out of range"),
    "name": (lambda m: m["x"], "KeyError", "Invalid mesh_dim_names ('x',) specified. Valid mesh_d"),
    "order": (lambda m: m["tp", "dp"], "KeyError", "Mesh dim indices should be in ascending order"),
    "overlap": (lambda m: m["tp", "tp"], "RuntimeError", "Slicing overlapping dim_names ('tp', "),
    "no_names": (lambda m: grid(4)["x"], "RuntimeError", "Cannot slice a DeviceMesh without mesh_"),
    "not_in_part": (lambda m: m["dp"]["tp"], "KeyError", "Valid mesh_dim_names are ['dp']"),
    "which_group": (lambda m: m.get_group(), "RuntimeError", "Found the DeviceMesh have 2 dimensi"),
    "which_rank": (lambda m: m.get_local_rank(), "RuntimeError", "Found the DeviceMesh have 2 dim"),
    "group": (lambda m: m.get_group("x"), "KeyError", "Mesh dimension 'x' does not exist."),
    "taken": (lambda m: m._flatten("dp"), "ValueError", "dp already exists for submesh of the Dev"),
    "no_groups": (lambda m: DeviceMesh.from_group([], HERE), "ValueError", "Expects at least one"),
    "groups": (
        lambda m: DeviceMesh.from_group(m.get_all_groups(), HERE),
        "ValueError",
        "Must pass mesh if passing multiple ProcessGroups",
    ),
    "other_ranks": (
        lambda m: DeviceMesh.from_group(dist.group.WORLD, HERE, mesh=[0, 1]),
        "ValueError",
        "Invalid mesh [0, 1] for ProcessGroup with ranks [0, 1, 2, 3]",
    ),
}


def refused(rank, size):
    mesh = grid(2, 2, names=("dp", "tp"))
    errors = {}
    for name, (call, *_) in ERRORS.items():
        try:
            call(mesh)
        except Exception as error:
            errors[name] = type(error).__name__, str(error)
    return errors


def test_device_mesh_invalid_arguments_raise():
    for errors in world_here(4).run(refused):
        assert list(errors) == list(ERRORS)
        for name, (kind, message) in errors.items():
            assert kind == ERRORS[name][1] and ERRORS[name][2] in message, (name, kind, message)


def test_outside_of_a_with_block():
    from tensorflow_lite_clone.distributed.device_mesh import _get_current_mesh

    with pytest.raises(RuntimeError, match="No device mesh is currently active!"):
        _get_current_mesh()
