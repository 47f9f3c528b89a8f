"""Checkpoints in folders, in one process: the format beside PyTorch's, whole or not at all."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import torch
from torch.distributed.checkpoint._nested_dict import flatten_state_dict

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.distributed.checkpoint as dcp
from tensorflow_lite_clone.distributed.checkpoint import _nested, _pickles, _shards
from tests.device import DEVICE
from tests.distributed import test_checkpoint_resharding as resharding
from tests.distributed.flat_pieces import flat_shards
from tests.distributed.process_groups import world

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it compiles with what is deprecated
    import torch.distributed.checkpoint as torch_dcp


def nested(lib, filled=True):
    """Values of all kinds, or the same with nothing in them."""
    lib.manual_seed(3)
    one = 1 if filled else 0
    return {
        "model": lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)).state_dict()
        if filled
        else {
            name: lib.zeros_like(value)
            for name, value in lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
            .state_dict()
            .items()
        },
        "half": lib.ones(2, 2, dtype=lib.bfloat16) * one,
        "mask": lib.tensor([True, False]) & bool(one),
        "complex": lib.tensor([1 + 2j]) * one,
        "scalar": lib.tensor(2.5) * one,
        "empty": lib.empty(0, 3),
        "column": (lib.arange(12.0) * one).reshape(3, 4)[:, 1],
        "turned": (lib.arange(6.0) * one).reshape(2, 3).T,
        "list": [one, lib.arange(3) * one, {"a": [one, 2 * one]}],
        "numbers": [one, 2 * one],
        "pair": (one, "x" * one),
        "word": "text" * one,
        "nothing": None if filled else 5,
        "deep": {"er": {"est": {"value": 3.5 * one}}},
    }


def same(a, b):
    """Whether two nested values, of either library, are equal to the bit."""
    if isinstance(a, tlc.Tensor | torch.Tensor):
        x, y = [
            v.detach().to(dtype=(tlc if isinstance(v, tlc.Tensor) else torch).float32).cpu().numpy()
            if str(v.dtype).endswith("bfloat16")
            else v.detach().cpu().numpy()
            for v in (a, b)
        ]
        return str(a.dtype) == str(b.dtype) and np.array_equal(x, y)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def save(state, path, **options):
    return dcp.save(state, checkpoint_id=path, no_dist=True, **options)


def load(state, path, **options):
    dcp.load(state, checkpoint_id=path, no_dist=True, **options)


def cause(error):
    """What the one process raised."""
    return error.value.failures[0][0]


@pytest.mark.parametrize("writer", [tlc, torch])
@pytest.mark.parametrize("reader", [tlc, torch])
def test_either_reads_what_either_writes(writer, reader, tmp_path):
    modules = {tlc: dcp, torch: torch_dcp}
    state = nested(writer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, that it saves alone
        modules[writer].save(state, checkpoint_id=tmp_path / "saved", no_dist=True)
        target = nested(reader, filled=False)
        assert not same(target, state)
        modules[reader].load(target, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert same(target, state)


def test_the_contents_are_told_as_by_torch(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch_dcp.save(nested(torch), checkpoint_id=tmp_path / "theirs", no_dist=True)
    ours = save(nested(tlc), tmp_path / "ours")
    assert str(ours.state_dict_metadata) == str(theirs.state_dict_metadata)
    assert ours.planner_data == theirs.planner_data
    assert ours.version == theirs.version
    assert {str(key) for key in ours.storage_data} == {str(key) for key in theirs.storage_data}
    assert sorted(os.listdir(tmp_path / "ours")) == sorted(os.listdir(tmp_path / "theirs"))
    read = dcp.FileSystemReader(tmp_path / "theirs").read_metadata()
    assert str(read) == str(theirs)


def test_torch_reads_what_several_processes_write(tmp_path):
    world(4).run(resharding.save, str(tmp_path), "grid")
    state = {"pieces": {}, "replicated": {}, "step": 0, "rank 3": 0}
    for name, shape in resharding.SHAPES.items():
        state["pieces"][name] = torch.zeros(shape, dtype=torch.float64)
        state["replicated"][name] = torch.zeros(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it loads alone
        torch_dcp.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["step"] == 12 and state["rank 3"] == 3
    for name in resharding.SHAPES:
        assert same(state["pieces"][name], resharding.whole(name))
        assert same(state["replicated"][name], resharding.whole(name).to(tlc.float32))


@pytest.mark.parametrize(
    "state",
    [
        {"a": [[1, 2], [3]]},
        {"a": [[1, "tensor"]]},
        {"a": [{"b": 1}]},
        {"a": [{}]},
        {"a": ("tensor",), "b": [("tensor",)]},
        {"a": {1: {2: "tensor"}, (1, 2): 3}},
        {"a": {"b": {}}, "c": None},
        {"a": [[{"x": 1}], 2]},
        {"a": [1, {"b": [1, {}]}], "c": [set()]},
        {"a": [[], "tensor"], "d": []},
        {},
    ],
)
def test_nested_states_are_flattened_as_by_torch(state):
    def made(lib, value):
        if value == "tensor":
            return lib.ones(1)
        if isinstance(value, dict):
            return {key: made(lib, part) for key, part in value.items()}
        return (
            type(value)(made(lib, v) for v in value) if isinstance(value, list | tuple) else value
        )

    flat, paths = flatten_state_dict(made(torch, state))
    leaves = _nested.flattened(made(tlc, state))
    assert {name: leaf.path for name, leaf in leaves.items()} == paths
    assert same({name: leaf.value for name, leaf in leaves.items()}, flat)


def test_two_values_by_one_name(tmp_path):
    with pytest.raises(dcp.CheckpointException, match="duplicated flatten key a.b"):
        save({"a": {"b": 1}, "a.b": 2}, tmp_path / "saved")
    assert os.listdir(tmp_path) == []


def test_objects_give_and_take_their_states(tmp_path):
    model = tlc.nn.Linear(2, 2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.25, momentum=0.5)
    save({"model": model, "optimizer": optimizer, "step": 7}, tmp_path / "saved")
    with tlc.no_grad():
        model.weight.zero_()
    optimizer.param_groups[0]["lr"] = 9.0
    weight, state = model.weight, {"model": model, "optimizer": optimizer, "step": 0}
    load(state, tmp_path / "saved")
    assert same(dict(model.state_dict()), before) and model.weight is weight
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert state == {"model": model, "optimizer": optimizer, "step": 7}


def test_states_of_random_generators(tmp_path):
    state = {"torch": tlc.get_rng_state(), "python": random.getstate()}
    save(state, tmp_path / "saved")
    expected = tlc.rand(3), random.random()
    load(state, tmp_path / "saved")
    tlc.set_rng_state(state["torch"])
    random.setstate(state["python"])
    assert same((tlc.rand(3), random.random()), expected)


def test_dictionaries_keep_the_kinds_of_their_keys(tmp_path):
    save({"a": {1: "one", 2: tlc.ones(1)}}, tmp_path / "saved")
    state = {"a": {1: "", 2: tlc.zeros(1)}}
    load(state, tmp_path / "saved")
    assert same(state, {"a": {1: "one", 2: tlc.ones(1)}})


def test_tensors_are_filled_where_they_are(tmp_path):
    save({"a": tlc.ones(3, 2)}, tmp_path / "saved")
    memory = tlc.zeros(2, 3, device=DEVICE)
    state = {"a": memory.T}
    load(state, tmp_path / "saved")
    assert memory.sum().item() == 6 and memory.device.type == tlc.device(DEVICE).type
    whole = {"a": tlc.zeros(3, 2, dtype=tlc.float64)}
    load(whole, tmp_path / "saved")
    assert same(whole, {"a": tlc.ones(3, 2, dtype=tlc.float64)})


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ({"a": (2,), "missing": 3}, RuntimeError),
        ({"a": (3,)}, ValueError),
        ({"a": 5}, ValueError),
    ],
)
def test_a_load_that_does_not_fit_fails_as_torchs(state, kind, tmp_path):
    messages = []
    for lib, module in ((tlc, dcp), (torch, torch_dcp)):
        path = tmp_path / module.__name__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.save({"a": lib.ones(2), "more": 1}, checkpoint_id=path, no_dist=True)
            made = {k: lib.zeros(v) if isinstance(v, tuple) else v for k, v in state.items()}
            with pytest.raises(module.CheckpointException) as error:
                module.load(made, checkpoint_id=path, no_dist=True)
        assert type(cause(error)) is kind
        messages.append(str(cause(error)).replace("tensorflow_lite_clone", "torch"))
    assert messages[0] == messages[1]


def test_partial_load_keeps_missing_entries(tmp_path):
    save({"a": 1, "b": 2}, tmp_path / "saved")
    state = {"a": 0, "c": 3}
    load(state, tmp_path / "saved", planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert state == {"a": 1, "c": 3}


def test_bad_calls(tmp_path):
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({}, no_dist=True)
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.load({}, no_dist=True)
    with pytest.warns(UserWarning, match="the intent is to save in a single process"):
        dcp.save({}, checkpoint_id=tmp_path / "alone")
    with pytest.warns(UserWarning, match="the intent is to load in a single process"):
        dcp.load({}, checkpoint_id=tmp_path / "alone")
    with pytest.raises(dcp.CheckpointException) as error:
        load({"a": 1}, tmp_path / "nowhere")
    assert isinstance(cause(error), FileNotFoundError)


def test_older_names(tmp_path):
    with pytest.warns(FutureWarning, match="deprecated"):
        dcp.save_state_dict({"a": 1}, dcp.FileSystemWriter(tmp_path / "saved"), no_dist=True)
    state = {"a": 0}
    with pytest.warns(FutureWarning, match="deprecated"):
        dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path / "saved"), no_dist=True)
    assert state == {"a": 1}


def test_an_older_checkpoint_is_replaced_and_other_files_stay(tmp_path):
    save({"a": tlc.ones(2), "b": 1}, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    names = set(os.listdir(tmp_path))
    save({"a": tlc.zeros(2)}, tmp_path)
    assert len(names) == len(os.listdir(tmp_path)) == 3 and (tmp_path / "notes.txt").exists()
    state = {"a": tlc.ones(2)}
    load(state, tmp_path)
    assert same(state, {"a": tlc.zeros(2)})
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists") as error:
        save({}, None, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    assert isinstance(cause(error), RuntimeError)


@pytest.mark.parametrize("options", [{"thread_count": 3}, {"single_file_per_rank": False}])
def test_several_files(options, tmp_path):
    state = {f"a{n}": tlc.arange(n + 1) for n in range(7)}
    save(state, None, storage_writer=dcp.FileSystemWriter(tmp_path / "saved", **options))
    found = list((tmp_path / "saved").glob("*.distcp"))
    assert len(found) == options.get("thread_count", 7)
    target = {name: tlc.zeros_like(value) for name, value in state.items()}
    load(target, tmp_path / "saved")
    assert same(target, state)


# What is cut short.


class FullDisk(dcp.DefaultSavePlanner):
    """There is no room for the value `full`."""

    def resolve_data(self, write_item):
        if write_item.index.fqn == "full":
            raise OSError(28, "No space left on device")
        return super().resolve_data(write_item)


@pytest.mark.parametrize("again", [False, True])
def test_a_failed_save_leaves_what_was_there(again, tmp_path):
    path = tmp_path / "saved"
    if again:
        save({"a": tlc.ones(2)}, path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(dcp.CheckpointException, match="No space left") as error:
        save({"a": tlc.zeros(2), "full": 1}, path, planner=FullDisk())
    assert isinstance(cause(error), OSError)
    assert sorted(tmp_path.rglob("*")) == before
    if again:
        state = {"a": tlc.zeros(2)}
        load(state, path)
        assert same(state, {"a": tlc.ones(2)})


KILLED = """
import os, sys
import tensorflow_lite_clone as torch
import tensorflow_lite_clone.distributed.checkpoint as dcp
from tensorflow_lite_clone.distributed.checkpoint import filesystem

def die(*arguments):
    os._exit(9)

folder, when, again = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
if again:
    dcp.save({"a": torch.ones(2), "b": torch.ones(3)}, checkpoint_id=folder, no_dist=True)
if when == "writing":
    files, saved = iter(["one"]), filesystem._saved
    filesystem._saved = lambda tensor: saved(tensor) if next(files, None) else die()
elif when == "written":
    filesystem._expect_visible = die
else:
    os.replace = os.rename = die
dcp.save({"a": torch.zeros(2), "b": torch.zeros(3)}, checkpoint_id=folder, no_dist=True)
"""


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("when", ["writing", "written", "renaming"])
def test_a_killed_save_leaves_what_was_there(when, again, tmp_path):
    path = tmp_path / "saved"
    command = [sys.executable, "-c", KILLED, str(path), when, str(again)]
    assert subprocess.run(command, cwd=os.getcwd()).returncode == 9
    assert path.exists() == again
    state = {"a": tlc.zeros(2), "b": tlc.zeros(3)}
    if again:
        load(state, path)
        assert same(state, {"a": tlc.ones(2), "b": tlc.ones(3)})
    assert len(list(tmp_path.rglob("*"))) > (3 if again else 0)  # what the killed one left
    save({"a": tlc.full((2,), 5.0), "b": tlc.ones(3)}, path)
    load(state, path)
    assert same(state, {"a": tlc.full((2,), 5.0), "b": tlc.ones(3)})
    assert not list(tmp_path.glob("*.tmp")) and len(list(path.glob("*.distcp"))) == 1


def test_damaged_files(tmp_path):
    save({"a": tlc.ones(100), "word": "text"}, tmp_path)
    (path,) = tmp_path.glob("*.distcp")
    whole = path.read_bytes()
    at = whole.index(np.ones(100, np.float32).tobytes())
    for data, message in (
        (whole[:at] + b"x" + whole[at + 1 :], "a in .*distcp cannot be read"),
        (whole[: at + 10], "a in .*distcp ends early"),
    ):
        path.write_bytes(data)
        with pytest.raises(dcp.CheckpointException, match=message) as error:
            load({"a": tlc.zeros(100)}, tmp_path)
        assert isinstance(cause(error), RuntimeError)
    metadata = tmp_path / ".metadata"
    for data in (b"", b"xxx", metadata.read_bytes()[:-20]):
        metadata.write_bytes(data)
        with pytest.raises(dcp.CheckpointException, match="is damaged, or no checkpoint"):
            load({"a": tlc.zeros(100)}, tmp_path)


def test_no_file_runs_code(tmp_path):
    save({"a": 1}, tmp_path)
    attack = b"\x80\x04cposix\nsystem\n(X\x04\x00\x00\x00exittR."
    (tmp_path / ".metadata").write_bytes(attack)
    with pytest.raises(dcp.CheckpointException, match="posix"):
        load({"a": 0}, tmp_path)
    metadata = save({"a": 1}, tmp_path)
    for info in metadata.storage_data.values():
        info.relative_path = "../elsewhere"
    (tmp_path / ".metadata").write_bytes(_pickles.dumps(metadata))
    with pytest.raises(dcp.CheckpointException, match="names a file outside of it"):
        load({"a": 0}, tmp_path)


# While training goes on.


def test_async_save_writes_what_was_there_when_it_was_called(tmp_path):
    gate = threading.Event()

    class Waits(dcp.DefaultSavePlanner):
        def create_local_plan(self):
            assert gate.wait(10)
            return super().create_local_plan()

    model = tlc.nn.Linear(2, 1).to(DEVICE)
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {"model": model, "log": [1, 2]}
    future = dcp.async_save(state, checkpoint_id=tmp_path / "saved", planner=Waits(), no_dist=True)
    model(tlc.ones(1, 2, device=DEVICE)).sum().backward()
    optimizer.step()
    state["log"].append(3)
    assert not future.done() and not (tmp_path / "saved").exists()
    gate.set()
    assert isinstance(future.result(10), dcp.Metadata)
    assert not same(dict(model.state_dict()), before)
    target = {"model": model, "log": None}
    load(target, tmp_path / "saved")
    assert same(dict(model.state_dict()), before) and target["log"] == [1, 2]


def test_async_save_tells_of_failures_later(tmp_path):
    future = dcp.async_save(
        {"full": 1}, checkpoint_id=tmp_path / "saved", planner=FullDisk(), no_dist=True
    )
    with pytest.raises(dcp.CheckpointException, match="No space left"):
        future.result(10)
    assert os.listdir(tmp_path) == []


def test_async_save_with_a_stager(tmp_path):
    values = tlc.ones(2)
    for path, later in (("one", True), ("two", False)):
        stager = dcp.staging.DefaultStager(dcp.staging.StagingOptions(use_async_staging=later))
        saved = dcp.async_save(
            {"a": values}, checkpoint_id=tmp_path / path, async_stager=stager, no_dist=True
        )
        if later:
            saved.staging_completion.result(10)
        values.add_(1)
        (saved.upload_completion if later else saved).result(10)
        state = {"a": tlc.zeros(2)}
        load(state, tmp_path / path)
        assert state["a"].tolist() == [1.0 if later else 2.0] * 2
        stager.close()


# Other forms.


def test_files_of_torch_save_and_back(tmp_path):
    state = nested(tlc)
    tlc.save(state, tmp_path / "file.pt")
    dcp.format_utils.torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "folder")
    dcp.format_utils.dcp_to_torch_save(tmp_path / "folder", tmp_path / "again.pt")
    assert same(tlc.load(tmp_path / "again.pt"), {**state, "model": dict(state["model"])})
    assert same(torch.load(tmp_path / "again.pt"), {**state, "model": dict(state["model"])})


@pytest.mark.parametrize("keys", [None, {"model"}, {"list", "column"}, {"deep.er", "model.0.bias"}])
def test_a_part_of_a_checkpoint_read_into_nothing(keys, tmp_path):
    save(nested(tlc), tmp_path)
    found = {}
    for lib, checkpoint in ((tlc, dcp), (torch, torch_dcp)):
        planner = checkpoint.default_planner._EmptyStateDictLoadPlanner(keys)
        reader = checkpoint.FileSystemReader(tmp_path)
        found[lib] = {}
        checkpoint.state_dict_loader._load_state_dict(
            found[lib], reader, planner=planner, no_dist=True
        )
    assert same(found[tlc], found[torch]) and found[tlc]


@pytest.mark.parametrize("shape", [(), (7,), (5, 3), (3, 4, 2), (2, 1, 3, 2)])
def test_pieces_of_flattened_tensors_as_boxes(shape):
    count = math.prod(shape)
    whole = tlc.arange(count).reshape(shape)
    for start in range(count + 1):
        for stop in range(start, count + 1):
            piece = whole.flatten()[start:stop]
            marks = tlc.zeros(shape)
            for offsets, local in flat_shards(shape, start, piece):
                box = _shards.narrowed(whole, offsets, local.shape)
                assert box.tolist() == local.tolist()
                _shards.narrowed(marks, offsets, local.shape).add_(1)
            expected = [float(start <= n < stop) for n in range(count)]
            assert marks.flatten().tolist() == expected
