"""utils.runs.SummaryWriter: PyTorch's interface, whole lines, and no harm to the program."""

from __future__ import annotations

import base64
import inspect
import io
import json
import math
import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils import runs
from tests.device import DEVICE
from tests.tools.markdown import ROOT


def lines(folder):
    """The records in a folder's files; a number that is not JSON's is an error."""

    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    return [
        json.loads(line, parse_constant=refuse)
        for path in sorted(folder.rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def logged(folder, log, **options):
    """The one record that `log(writer)` writes."""
    with runs.SummaryWriter(folder, **options) as writer:
        log(writer)
    (record,) = lines(folder)
    return record


def on_device(values):
    return tlc.tensor(values, device=DEVICE)


def program(text, folder):
    """Run a program in a folder; its standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-X", "dev", "-c", text]  # says what was not closed
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_signatures():
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    compared = 0
    for name, function in inspect.getmembers(tensorboard.SummaryWriter, inspect.isfunction):
        if name == "add_onnx_graph" or name.startswith("_") and name != "__init__":
            continue
        mine, other = (
            [(p.name, p.default) for p in inspect.signature(f).parameters.values()]
            for f in (getattr(runs.SummaryWriter, name), function)
        )
        assert mine == other, name
        compared += 1
    assert compared > 20


def test_a_scalar(tmp_path):
    record = logged(tmp_path, lambda w: w.add_scalar("loss/a", on_device([2.5]), 3, 7.25))
    assert record == {"kind": "scalar", "tag": "loss/a", "value": 2.5, "step": 3, "time": 7.25}
    (path,) = tmp_path.iterdir()
    assert path.match(f"events.*.{os.getpid()}.jsonl")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have(tmp_path, value):
    record = logged(tmp_path, lambda w: w.add_scalar("loss", value))
    assert record["value"] == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    reader = runs.Reader(tmp_path)
    reader.poll()
    assert str(reader.events[0].value) == str(value)


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 7])
def test_histograms_are_pytorchs(tmp_path, bins):
    summary = pytest.importorskip("torch.utils.tensorboard.summary")
    values = np.random.default_rng(0).normal(size=200)
    record = logged(tmp_path, lambda w: w.add_histogram("h", values, 1, bins, max_bins=50))
    ends = runs.SummaryWriter(tmp_path / "other").default_bins if bins == "tensorflow" else bins
    expected = summary.make_histogram(values, ends, 50)
    value = record["value"]
    assert value.pop("limits") == list(expected.bucket_limit)
    assert value.pop("counts") == list(expected.bucket)
    assert value.pop("nonfinite") == 0
    assert value == {name: getattr(expected, name) for name in value}


def test_histograms_of_values_that_are_not_finite(tmp_path):
    values = on_device([1.0, math.nan, 2.0, math.inf])
    value = logged(tmp_path, lambda w: w.add_histogram("h", values))["value"]
    assert (value["num"], value["nonfinite"], sum(value["counts"])) == (2, 2, 2)
    (tmp_path / "b").mkdir()
    value = logged(tmp_path / "b", lambda w: w.add_histogram("h", values[1:2]))["value"]
    assert (value["nonfinite"], value["counts"]) == (1, [])


def test_curves_are_pytorchs(tmp_path):
    summary = pytest.importorskip("torch.utils.tensorboard.summary")
    labels, guesses = np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.4, 1])
    value = logged(tmp_path, lambda w: w.add_pr_curve("p", labels, guesses))["value"]
    assert list(value.values()) == summary.compute_curve(labels, guesses, 127).tolist()
    assert list(value) == ["tp", "fp", "tn", "fn", "precision", "recall"]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pictures_need_no_pillow_to_be_written(tmp_path, monkeypatch, channels):
    Image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels)).astype(np.uint8)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "PIL", None)
        record = logged(tmp_path, lambda w: w.add_image("i", pixels, dataformats="HWC"))
    assert record["value"]["type"] == "image/png"
    with Image.open(io.BytesIO(base64.b64decode(record["value"]["data"]))) as image:
        read = np.asarray(image)
    np.testing.assert_array_equal(read, np.repeat(pixels, 3 if channels == 1 else 1, axis=2))


def test_every_kind(tmp_path):
    pytest.importorskip("PIL", reason="boxes and videos need Pillow")
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="figures need Matplotlib")
    grid = tlc.linspace(0, 1, 48).reshape(1, 3, 4, 4)
    with runs.SummaryWriter(tmp_path, purge_step=5, filename_suffix=".x") as writer:
        writer.add_scalars("both/of", {"a": 1, "b": tlc.tensor(2)}, 0)
        writer.add_histogram_raw("raw", 0, 1, 2, 3, 4, [1, 2], [3, 4], 2)
        writer.add_images("pictures", grid, 3)
        writer.add_image_with_boxes("boxes", grid[0], np.array([[1, 1, 3, 3]]))
        writer.add_figure("figure", pyplot.figure(figsize=(1, 1), dpi=20), 1)
        writer.add_video("video", grid[None])
        writer.add_audio("sound", tlc.linspace(-1, 1, 9)[None], 1, 100)
        writer.add_text("note", "*hé* <b>", 1)
        writer.add_tensor("tensor", tlc.arange(3), 1)
        writer.add_pr_curve_raw("curve", *[np.ones(2)] * 6, 1, num_thresholds=2)
        writer.add_mesh("mesh", tlc.zeros(1, 2, 3))
        writer.add_custom_scalars_multilinechart(["x"])
        writer.add_embedding(tlc.ones(2, 3), ["a", "b"], tlc.ones(2, 3, 4, 4), 1, "points")
        writer.add_hparams({"lr": 0.1, "b": True, "none": None}, {"accuracy": 1.0}, run_name="run")
        with pytest.warns(UserWarning, match="add_graph"):
            writer.add_graph(tlc.nn.Linear(1, 1))
        assert writer.get_logdir() == tmp_path
    found = {record["tag"]: record for record in lines(tmp_path)}
    kinds = [found[tag]["kind"] for tag in ("pictures", "boxes", "figure", "video", "sound")]
    assert kinds == ["image"] * 4 + ["audio"]
    assert found["video"]["value"]["type"] == "image/gif"
    assert found["note"]["value"] == "*hé* <b>"
    assert found["tensor"]["value"] == {"dtype": "int64", "shape": [3], "values": [0, 1, 2]}
    assert found["hparams"]["value"]["hparams"] == {"lr": 0.1, "b": True}
    assert found["purge"]["step"] == 5
    assert len(found["points"]["value"]["labels"]) == 2
    reader = runs.Reader(tmp_path)
    reader.poll()
    assert reader.problems == []
    assert {e.run for e in reader.events} == {".", "both_of_a", "both_of_b", "run"}
    assert all(reader.load(event) is not None for event in reader.events)
    assert all(path.name.endswith(".x.jsonl") for path in tmp_path.glob("*.jsonl"))


WRONG = {
    "a scalar of many": lambda w, lib: w.add_scalar("a", np.ones(2)),
    "no values": lambda w, lib: w.add_histogram("h", lib.zeros(0)),
    "counts": lambda w, lib: w.add_histogram_raw("h", 0, 1, 2, 3, 4, [1], [3, 4]),
    "labels": lambda w, lib: w.add_embedding(lib.ones(2, 3), ["a"]),
    "points": lambda w, lib: w.add_embedding(lib.ones(3)),
    "margins": lambda w, lib: w.add_custom_scalars_marginchart(["a"]),
    "hyperparameters": lambda w, lib: w.add_hparams({"a": [1]}, {}),
    "no dictionary": lambda w, lib: w.add_hparams([], {}),
    "a step": lambda w, lib: w.add_scalar("a", 1, "x"),
    "a picture": lambda w, lib: w.add_image("a", lib.ones(2, 2), dataformats="HH"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_as_in_pytorch(tmp_path, name):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    seen = []
    for module, lib in ((tensorboard, torch), (runs, tlc)):
        with module.SummaryWriter(tmp_path / lib.__name__) as writer:
            with pytest.raises(Exception) as caught:  # noqa: B017
                WRONG[name](writer, lib)
            seen.append(caught.type)
    assert seen[0] is seen[1]


# -- when it writes -------------------------------------------------------------------------------


def test_the_queue(tmp_path):
    writer = runs.SummaryWriter(tmp_path, max_queue=3)
    counts = []
    for step in range(4):
        writer.add_scalar("a", 1, step)
        counts.append(len(lines(tmp_path)))
    assert counts == [0, 0, 3, 3]
    writer.flush()
    assert len(lines(tmp_path)) == 4
    writer.close()
    writer.add_scalar("a", 1, 4)  # opens a file again
    writer.close()
    assert [record["step"] for record in lines(tmp_path)] == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 2


def test_writer_flushes_after_flush_secs(tmp_path):
    with runs.SummaryWriter(tmp_path, flush_secs=0.02) as writer:
        writer.add_scalar("a", 1)
        deadline = time.monotonic() + 10
        while not lines(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(lines(tmp_path)) == 1


def test_writer_flushes_at_exit(tmp_path):
    said = program(
        "from tensorflow_lite_clone.utils.runs import SummaryWriter\n"
        "SummaryWriter('x').add_scalar('a', 1)\n"
        "SummaryWriter('y')",
        tmp_path,
    )
    assert said == ""
    assert len(lines(tmp_path)) == 1


def test_threads_write_whole_lines(tmp_path):
    with runs.SummaryWriter(tmp_path, flush_secs=0.001) as writer:

        def work(number):
            for step in range(100):
                writer.add_scalar(f"thread {number}", step, step)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    reader = runs.Reader(tmp_path)
    reader.poll()
    assert reader.problems == []
    whole = [(step, float(step)) for step in range(100)]
    assert reader.scalars()["."] == {f"thread {number}": whole for number in range(6)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_its_own_file(tmp_path):
    program(
        "import os\n"
        "from tensorflow_lite_clone.utils.runs import SummaryWriter\n"
        "writer = SummaryWriter('x')\n"
        "writer.add_scalar('before', 1)\n"
        "child = os.fork()\n"
        "writer.add_scalar('after', 1)\n"
        "writer.close()\n"
        "child and os.waitpid(child, 0)\n",
        tmp_path,
    )
    assert sorted(record["tag"] for record in lines(tmp_path)) == ["after", "after", "before"]
    assert len(list((tmp_path / "x").iterdir())) == 2


def test_two_writers_in_one_folder(tmp_path):
    writers = [runs.SummaryWriter(tmp_path) for _ in range(2)]
    for step in range(20):
        writers[step % 2].add_scalar("a", step, step)
    for writer in writers:
        writer.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert sorted(record["step"] for record in lines(tmp_path)) == list(range(20))


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk(tmp_path):
    writer = runs.SummaryWriter(tmp_path, max_queue=1)
    writer.add_scalar("a", 0, 0)
    (path,) = tmp_path.iterdir()
    (held,) = [fd for fd in os.listdir("/proc/self/fd") if _link(fd) == str(path)]
    spare = os.dup(int(held))
    with open("/dev/full", "wb", buffering=0) as full:
        os.dup2(full.fileno(), int(held))
    with pytest.warns(UserWarning, match="No space left on device; what is logged is dropped"):
        writer.add_scalar("a", 1, 1)
    writer.add_scalar("a", 2, 2)  # warns no more
    os.dup2(spare, int(held))  # there is room again
    os.close(spare)
    writer.add_scalar("a", 3, 3)
    writer.close()
    reader = runs.Reader(tmp_path)
    reader.poll()
    assert reader.scalars() == {".": {"a": [(0, 0.0), (3, 3.0)]}}
    assert reader.problems == []


def _link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


def test_a_disk_that_fills_up_within_a_line(tmp_path):
    pytest.importorskip("resource")
    said = program(
        "import resource\n"
        "from tensorflow_lite_clone.utils.runs import SummaryWriter\n"
        "writer = SummaryWriter('x', max_queue=1)\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))\n"
        "for step in range(100): writer.add_scalar('a', step, step)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "for step in range(100, 103): writer.add_scalar('a', step, step)\n",
        tmp_path,
    )
    assert said.count("UserWarning") == 1
    reader = runs.Reader(tmp_path)
    reader.poll()
    steps = [event.step for event in reader.events]
    assert steps[-3:] == [100, 101, 102]
    assert steps[:-3] == list(range(len(steps) - 3))
    assert len(reader.problems) == 1
    assert "1 line is malformed" in reader.problems[0]


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="the program goes on"):
        writer = runs.SummaryWriter(tmp_path / "file" / "run", max_queue=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer.add_scalar("a", 1)
        writer.close()


# -- what a loop wants ----------------------------------------------------------------------------


def test_gradients(tmp_path):
    values = torch.linspace(-1, 1, 6).reshape(2, 3)
    model, other = tlc.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    other.weight.data.copy_(values)
    model.weight.data.copy_(tlc.tensor(values.tolist()))
    model.frozen = tlc.nn.Parameter(tlc.ones(2))  # without a gradient
    model.to(DEVICE)
    for net, x in ((model, on_device([[1.0, 1, 1]])), (other, torch.ones(1, 3))):
        (net(x) ** 2 - net(x)).sum().backward()
    with runs.SummaryWriter(tmp_path) as writer:
        writer.add_gradients(model, 3, histograms=True)
        writer.add_gradients(tlc.nn.ReLU(), 4)  # nothing to say
    found = {record["tag"]: record["value"] for record in lines(tmp_path)}
    norms = {name: p.grad.norm().item() for name, p in other.named_parameters()}
    for name, norm in norms.items():
        assert found[f"gradient norm/{name}"] == pytest.approx(norm, rel=1e-5)
        assert found[f"gradients/{name}"]["num"] == getattr(other, name).numel()
    assert found["gradient norm/all"] == pytest.approx(math.hypot(*norms.values()), rel=1e-5)
    assert len(found) == 5


def test_gradients_that_are_sparse_or_not_finite(tmp_path):
    model = tlc.nn.Embedding(4, 2, sparse=True).to(DEVICE)
    (model(on_device([1, 1])) * on_device([math.inf, 1.0])).sum().backward()
    with runs.SummaryWriter(tmp_path) as writer:
        writer.add_gradients(model, histograms=True)
    found = {record["tag"]: record["value"] for record in lines(tmp_path)}
    assert found["gradient norm/weight"] == found["gradient norm/all"] == "Infinity"
    assert found["gradients/weight"]["nonfinite"] == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here")
def test_memory(tmp_path):
    held = on_device([1.0] * 500_000)
    with runs.SummaryWriter(tmp_path) as writer:
        writer.add_memory(2)
    found = {record["tag"]: record["value"] for record in lines(tmp_path)}
    assert 10 < found.pop("memory/process (MB)") < 1e6
    assert found.keys() == ({"memory/GPU (MB)"} if held.is_cuda else set())
    assert all(value >= 2 for value in found.values())
