"""Checkpoints of several processes: written by some number of them, and read by another."""

from __future__ import annotations

import os
import threading
from math import prod

import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.distributed as dist
import tensorflow_lite_clone.distributed.checkpoint as dcp
from tensorflow_lite_clone.distributed.checkpoint import _shards
from tensorflow_lite_clone.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)
from tests.distributed.flat_pieces import flat_shards
from tests.distributed.process_groups import World, world

SHAPES = {"matrix": (7, 5), "line": (11,), "cube": (3, 4, 5), "point": (), "nothing": (0, 3)}


def whole(name, dtype=tlc.float64):
    """The tensor of a name: no two elements are equal."""
    shape = SHAPES[name]
    return tlc.arange(prod(shape), dtype=dtype).reshape(shape) + 0.1


class Pieces:
    """A tensor of which each process has some boxes, cut in one of several ways."""

    def __init__(self, full, layout, rank, size):
        self.whole, self.dtype = tuple(full.shape), full.dtype
        self.boxes = getattr(self, layout)(full.detach().clone(), rank, size)

    def __shards__(self):
        return self.whole, self.boxes

    @staticmethod
    def rows(full, rank, size):
        """Slices along the first dimension; the last processes may have none."""
        if not full.ndim:
            return [((), full)]
        each = -(-full.shape[0] // size)
        part = full[rank * each : (rank + 1) * each]
        return [((rank * each, *[0] * (full.ndim - 1)), part)] if part.numel() else []

    @staticmethod
    def flat(full, rank, size):
        """Pieces of the flattened tensor, of unequal lengths."""
        ends = [full.numel() * n * n // (size * size) for n in range(size + 1)]
        piece = full.flatten()[ends[rank] : ends[rank + 1]].clone()
        return flat_shards(full.shape, ends[rank], piece)

    @staticmethod
    def grid(full, rank, size):
        """Blocks of two dimensions, each of which two processes have."""
        if full.ndim < 2:
            return Pieces.rows(full, rank % 2, 2)
        cut = (full.shape[0] // 2, full.shape[1] // 2)
        x, y = [(0, cut[0]), (cut[0], full.shape[0])], [(0, cut[1]), (cut[1], full.shape[1])]
        found = []
        for block in {rank % 4, (rank + 1) % 4} if size == 4 else range(4):
            (a, b), (c, d) = x[block // 2], y[block % 2]
            found.append(((a, c, *[0] * (full.ndim - 2)), full[a:b, c:d]))
        return [(offsets, part) for offsets, part in found if part.numel()]


def state_of(rank, size, layout, filled):
    """A state dict of sharded, replicated and other values, or the same with nothing in it."""
    scale = 1 if filled else 0
    state = {"pieces": {}, "replicated": {}, "step": 12 * scale, f"rank {rank}": rank * scale}
    for name in SHAPES:
        full = whole(name) * scale
        state["pieces"][name] = Pieces(full, layout, rank, size) if layout else full
        state["replicated"][name] = full.to(tlc.float32)
    return state


def expect_filled(state, rank):
    for name in SHAPES:
        full = whole(name)
        assert state["replicated"][name].tolist() == full.to(tlc.float32).tolist()
        for offsets, local in _shards.shards_of(state["pieces"][name]):
            assert local.tolist() == _shards.narrowed(full, offsets, local.shape).tolist()
    assert state["step"] == 12 and state[f"rank {rank}"] == rank


def save(rank, size, path, layout):
    dcp.save(state_of(rank, size, layout, True), checkpoint_id=path)


def load_and_save(rank, size, path, layout, following=None):
    state = state_of(rank, size, layout, False)
    dcp.load(state, checkpoint_id=path, no_dist=not dist.is_initialized())
    expect_filled(state, rank)
    if following:
        for other in range(4):
            state[f"rank {other}"] = other  # for a world that may be larger
        dcp.save(state, checkpoint_id=following, no_dist=not dist.is_initialized())


@pytest.mark.parametrize(
    "layouts",
    [
        ("rows", "rows", None, "rows"),
        ("flat", "grid", None, "grid"),
        ("grid", "flat", None, "flat"),
    ],
)
def test_from_four_to_two_to_one_to_four(layouts, tmp_path):
    paths = [str(tmp_path / f"saved{n}") for n in range(4)]
    four, two, one, again = layouts
    world(4).run(save, paths[0], four)
    world(4).run(load_and_save, paths[0], four)
    world(2).run(load_and_save, paths[0], two, paths[1])
    load_and_save(0, 1, paths[1], one, paths[2])
    world(4).run(load_and_save, paths[2], again, paths[3])
    assert sorted(os.listdir(tmp_path)) == ["saved0", "saved1", "saved2", "saved3"]


PLACEMENTS = {
    "rows": (Shard(0), Replicate()),
    "columns": (Replicate(), Shard(1)),
    "blocks": (Shard(0), Shard(1)),
    "rows of rows": (Shard(0), Shard(0)),
    "copies": (Replicate(), Replicate()),
}


def save_on_a_mesh(rank, size, path):
    mesh = dist.init_device_mesh("cpu", (2, 2))
    state = {name: distribute_tensor(whole("matrix"), mesh, p) for name, p in PLACEMENTS.items()}
    dcp.save(state, checkpoint_id=path)
    terms = DTensor.from_local(whole("matrix"), mesh, (Partial(), Replicate()))
    with pytest.raises(dcp.CheckpointException, match="terms that are still to be reduced"):
        dcp.save({"terms": terms}, checkpoint_id=path)


def load_on_a_mesh(rank, size, path):
    mesh, full = dist.init_device_mesh("cpu", (2,)), whole("matrix")
    for placement in (Shard(0), Shard(1), Replicate()):
        state = {name: distribute_tensor(full * 0, mesh, [placement]) for name in PLACEMENTS}
        dcp.load(state, checkpoint_id=path)
        for value in state.values():
            assert value.full_tensor().tolist() == full.tolist()


def test_tensors_on_meshes(tmp_path):
    world(4).run(save_on_a_mesh, str(tmp_path / "saved"))
    world(2).run(load_on_a_mesh, str(tmp_path / "saved"))
    state = {name: whole("matrix") * 0 for name in PLACEMENTS}
    dcp.load(state, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert all(value.tolist() == whole("matrix").tolist() for value in state.values())


def save_replicated(rank, size, path):
    state = {f"a{n}": tlc.ones(100 * (n + 1)) for n in range(8)}
    planner = dcp.DefaultSavePlanner()
    dcp.save({**state, "who": rank}, checkpoint_id=path, planner=planner)
    return sum(item.tensor_storage_size() or 0 for item in planner.plan.items)


def test_replicated_tensors_are_written_once_and_in_equal_shares(tmp_path):
    written = world(4).run(save_replicated, str(tmp_path / "saved"))
    assert sum(written) == 4 * 100 * 36
    assert max(written) <= 4 * 1000
    state = {"who": None}
    dcp.load(state, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert state == {"who": 0}  # of values that are no tensors the lowest rank's


def save_subgroup(rank, size, path):
    group = dist.new_group([1, 3])
    if rank in (1, 3):
        dcp.save({"rank": rank, f"of {rank}": rank}, checkpoint_id=path, process_group=group)


def test_a_group_of_some_processes(tmp_path):
    world(4).run(save_subgroup, str(tmp_path / "saved"))
    state = {"rank": 0, "of 1": 0, "of 3": 0}
    dcp.load(state, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert state == {"rank": 1, "of 1": 1, "of 3": 3}


def load_one_file(rank, size, path):
    options = {
        "checkpoint_id": path,
        "storage_reader": dcp.format_utils.BroadcastingTorchSaveReader(),
        "planner": dcp.format_utils.DynamicMetaLoadPlanner(),
    }
    state = {"pieces": {}, "replicated": {}}
    for name in SHAPES:
        state["pieces"][name] = Pieces(whole(name) * 0, "rows", rank, size)
        state["replicated"][name] = whole(name, tlc.float32) * 0
    dcp.load(state, **options)
    expect_filled({**state, "step": 12, f"rank {rank}": rank}, rank)
    for values, message in (
        ({"more": tlc.ones(1)}, "has no tensors .'more'"),
        ({"replicated": {"line": tlc.ones(3)}}, "Size mismatch between saved torch.Size"),
        ({"step": 3}, "Non-tensor value identified at step"),
    ):
        with pytest.raises(dcp.CheckpointException, match=message) as error:
            dcp.load(values if rank == 1 else {}, **options)
        assert list(error.value.failures) == [1]


def test_one_file_for_all_processes(tmp_path):
    path = str(tmp_path / "file.pt")
    tlc.save(state_of(0, 1, None, True), path)
    world(4).run(load_one_file, path)


# What fails.


class Fails(dcp.DefaultSavePlanner):
    """Fails at one step in one process."""

    def __init__(self, step, mine):
        super().__init__()
        self.step, self.mine = step, mine

    def at(self, step):
        if self.mine and step == self.step:
            raise OSError(28, "No space left on device")

    def create_local_plan(self):
        self.at("plan")
        return super().create_local_plan()

    def create_global_plan(self, plans):
        self.at("agree")
        return super().create_global_plan(plans)

    def resolve_data(self, item):
        self.at("write")
        return super().resolve_data(item)


def save_and_fail(rank, size, path, step, culprit):
    with pytest.raises(dcp.CheckpointException, match="No space left") as error:
        dcp.save(
            {f"a{n}": tlc.full((3,), 5.0) for n in range(4)},
            checkpoint_id=path,
            planner=Fails(step, rank == culprit),
        )
    total = tlc.ones(1)
    dist.all_reduce(total)  # nobody is left behind
    return list(error.value.failures), type(error.value.failures[culprit][0]).__name__, int(total)


@pytest.mark.parametrize(("step", "culprit"), [("plan", 2), ("agree", 0), ("write", 1)])
@pytest.mark.parametrize("again", [False, True])
def test_a_failure_of_one_is_told_to_all(step, culprit, again, tmp_path):
    path = str(tmp_path / "saved")
    if again:
        world(4).run(save_replicated, path)
    before = sorted(tmp_path.rglob("*"))
    results = world(4).run(save_and_fail, path, step, culprit)
    assert results == [([culprit], "OSError", 4)] * 4
    assert sorted(tmp_path.rglob("*")) == before


class Silent:
    """Has no state to give in one process."""

    def __init__(self, rank):
        self.rank = rank

    def state_dict(self):
        if self.rank == 1:
            raise KeyError("nothing")
        return {}

    def load_state_dict(self, state):
        raise AssertionError


def ask_the_silent(rank, size, path):
    calls = (
        lambda state: dcp.save(state, checkpoint_id=path),
        lambda state: dcp.load(state, checkpoint_id=path),
        lambda state: dcp.async_save(state, checkpoint_id=path).result(20),
    )
    failures = []
    for call in calls:
        with pytest.raises(dcp.CheckpointException, match="nothing") as error:
            call({"a": Silent(rank)})
        failures.append(list(error.value.failures))
    return failures


def test_objects_that_fail_to_give_their_states(tmp_path):
    path = str(tmp_path / "saved")
    assert world(2).run(ask_the_silent, path)[1] == [[1], [0, 1], [1]]
    assert os.listdir(tmp_path) == []


def load_what_one_lacks(rank, size, path):
    state = {"replicated": {"point": tlc.zeros(())}}
    if rank == 1:
        state["missing"] = 1
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint") as error:
        dcp.load(state, checkpoint_id=path)
    return list(error.value.failures)


def test_a_load_that_fails_for_one_fails_for_all(tmp_path):
    world(2).run(save, str(tmp_path), "rows")
    assert world(2).run(load_what_one_lacks, str(tmp_path)) == [[1], [1]]


def save_boxes(rank, size, path, boxes, message):
    pieces = Pieces(whole("matrix"), "rows", rank, size)
    pieces.boxes = [(offsets, tlc.zeros(sizes)) for offsets, sizes in boxes[rank]]
    with pytest.raises(dcp.CheckpointException, match=message):
        dcp.save({"a": pieces}, checkpoint_id=path)


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([[((0, 0), (4, 5))], []], "the processes have 20 elements of a, which has 35"),
        ([[((0, 0), (4, 5))], [((3, 0), (3, 5))]], "in a .* overlaps"),
    ],
)
def test_boxes_that_do_not_make_a_whole(boxes, message, tmp_path):
    world(2).run(save_boxes, str(tmp_path / "saved"), boxes, message)
    assert os.listdir(tmp_path) == []


# While training goes on.


def save_in_a_thread(rank, size, path):
    gate = threading.Event()

    class Waits(dcp.DefaultSavePlanner):
        def create_local_plan(self):
            assert gate.wait(20)
            return super().create_local_plan()

    state = state_of(rank, size, "flat", True)
    future = dcp.async_save(state, checkpoint_id=path, planner=Waits())
    total = tlc.full((1,), float(rank))
    for _ in range(20):
        dist.all_reduce(total)
        if rank == 1:
            gate.set()  # its thread waits in the middle of the others' training
        for _, local in _shards.shards_of(state["pieces"]["matrix"]):
            local.zero_()
    state["replicated"]["line"].zero_()
    gate.set()
    assert set(future.result(20).state_dict_metadata) >= {"pieces.matrix", "step"}
    return float(total)


def test_async_save(tmp_path):
    path = str(tmp_path / "saved")
    assert world(2).run(save_in_a_thread, path) == [2.0**19] * 2
    world(2).run(load_and_save, path, "rows")


# Processes that end: the last test, as it ends a world.


def save_and_die(rank, size, path):
    class Dies(dcp.DefaultSavePlanner):
        def resolve_data(self, item):
            if rank == 1:
                os._exit(9)
            return super().resolve_data(item)

    dcp.save({f"a{n}": tlc.ones(3) for n in range(4)}, checkpoint_id=path, planner=Dies())


def test_a_process_that_ends_while_writing_leaves_what_was_there(tmp_path):
    path = tmp_path / "saved"
    world(2).run(save, str(path), "rows")
    few = World(2, "gloo", 20.0)
    (_, survivor), (_, dead) = few.outcomes(save_and_die, str(path))
    assert survivor is not None and "ended with" in dead
    load_and_save(0, 1, str(path), None)
