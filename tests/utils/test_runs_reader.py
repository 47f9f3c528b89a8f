"""utils.runs.Reader: files that grow, break off, vanish, or hold what is no record."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorflow_lite_clone.utils import runs
from tensorflow_lite_clone.utils.runs.purges import without_purged
from tensorflow_lite_clone.utils.runs.reader import Event
from tests.processes import running
from tests.tools.markdown import ROOT


def line(step, value=1.0, **other):
    record = {"kind": "scalar", "tag": "a", "step": step, "time": 1.0, "value": value}
    return json.dumps({**record, **other}) + "\n"


def polled(folder):
    reader = runs.Reader(folder)
    reader.poll()
    return reader


def steps(reader):
    return [event.step for event in reader.events]


def test_a_file_that_grows(tmp_path):
    path = tmp_path / "e.jsonl"
    reader = polled(tmp_path)
    assert (reader.events, reader.problems) == ([], [])
    first, second = line(0), line(1)
    path.write_text(first + second[:20])
    reader.poll()
    assert steps(reader) == [0]
    assert reader.problems == ["e.jsonl: the last line has no end yet"]
    with path.open("a") as file:
        file.write(second[20:])
    reader.poll()
    assert (steps(reader), reader.problems, reader.generation) == ([0, 1], [], 0)


def test_runs_are_folders(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    for number, place in enumerate((".", "b", "b/c")):
        (tmp_path / place / "e.jsonl").write_text(line(number))
    (tmp_path / "b" / "notes.txt").write_text("no records")
    assert {(e.run, e.step) for e in polled(tmp_path).events} == {(".", 0), ("b", 1), ("b/c", 2)}


def test_a_folder_that_comes_later(tmp_path):
    reader = polled(tmp_path / "later")
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "e.jsonl").write_text(line(0))
    reader.poll()
    assert steps(reader) == [0]


MALFORMED = {
    "text": "what\n",
    "half": line(1)[:30] + "\n",
    "a list": "[]\n",
    "a number": "3\n",
    "no tag": '{"kind": "scalar", "step": 1, "time": 1, "value": 1}\n',
    "a tag of another type": line(1, tag=3),
    "a kind of another type": line(1, kind=["scalar"]),
    "a step of text": line("1"),
    "a step of a float": line(1.5),
    "a boolean step": line(True),
    "a huge step": line(10**400),
    "no time": line(1, time=None),
    "an endless time": line(1, time="Infinity"),
    "a scalar of text": line(1, "x"),
    "a scalar of a list": line(1, [1]),
    "a boolean scalar": line(1, True),
    "a huge scalar": line(1, 10**400),
    "brackets": "[" * 100_000 + "\n",
    "bytes": "\udcff\udcfe\n",
    "zeros": "\0" * 50 + "\n",
    "histogram": line(1, {"limits": [1, 2], "counts": [1]}, kind="histogram"),
    "histogram of text": line(1, {"limits": ["x"], "counts": [1]}, kind="histogram"),
    "picture": line(1, {"type": "image/svg+xml", "data": ""}, kind="image"),
    "picture of text": line(1, {"type": "image/png", "data": '"><script>'}, kind="image"),
    "curve": line(1, {"precision": [1], "recall": 3}, kind="pr_curve"),
    "hyperparameters": line(1, {"hparams": {"a": {}}, "metrics": []}, kind="hparams"),
    "long text": line(1, 3, kind="text"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_line_is_counted(tmp_path, name):
    text = line(0) + MALFORMED[name] + "\n" + line(2)
    (tmp_path / "e.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    reader = polled(tmp_path)
    assert steps(reader) == [0, 2]
    assert reader.problems == ["e.jsonl: 1 line is malformed and left out"]


@settings(max_examples=60)
@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([line(5).encode()]))))
def test_no_bytes_are_an_error(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("any")
    reader = runs.Reader(folder)
    with (folder / "e.jsonl").open("ab", buffering=0) as file:
        for piece in pieces:
            file.write(piece)
            reader.poll()
        file.write(b"\n" + line(7).encode())
    reader.poll()
    assert steps(reader)[-1] == 7


def test_a_line_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr("tensorflow_lite_clone.utils.runs.reader._LONGEST", 200)
    (tmp_path / "e.jsonl").write_text(line(0) + "x" * 1000 + "\n" + line(1))
    reader = polled(tmp_path)
    assert steps(reader) == [0, 1]
    assert reader.problems == ["e.jsonl: 1 line is malformed and left out"]


def test_a_file_that_is_cut(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(line(0) + line(1))
    reader = polled(tmp_path)
    path.write_text(line(5))
    reader.poll()
    assert (steps(reader), reader.generation) == ([5], 1)


def test_a_file_that_is_replaced(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(line(0))
    reader = polled(tmp_path)
    (tmp_path / "new").write_text(line(3) + line(4))
    (tmp_path / "new").rename(path)
    reader.poll()
    assert steps(reader) == [3, 4]


def test_a_file_that_vanishes(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(line(ord(name)))
    reader = polled(tmp_path)
    (tmp_path / "a.jsonl").unlink()
    reader.poll()
    assert (steps(reader), reader.generation) == ([ord("b")], 1)


@pytest.mark.parametrize(("opener", "name"), [("builtins.open", "e.jsonl"), ("os.scandir", ".")])
def test_reader_reports_permission_errors(tmp_path, monkeypatch, opener, name):
    (tmp_path / "e.jsonl").write_text(line(0))

    def refuse(path, *arguments):
        raise PermissionError(13, "Permission denied", path)

    reader = runs.Reader(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(opener, refuse)
        reader.poll()
    assert reader.problems == [f"{name}: Permission denied"]
    reader.poll()
    assert (steps(reader), reader.problems) == ([0], [])


def test_links_do_not_lead_out(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
    (outside / "secret.jsonl").write_text(line(9))
    (inside / "e.jsonl").write_text(line(0))
    (inside / "link.jsonl").symlink_to(outside / "secret.jsonl")
    (inside / "folder").symlink_to(outside)
    (inside / "broken.jsonl").symlink_to(outside / "nothing")
    assert steps(polled(inside)) == [0]


def test_reader_skips_pipes_and_folders(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")  # opening it would wait for ever
    (tmp_path / "folder.jsonl").mkdir()
    assert polled(tmp_path).problems == []


def test_large_values_stay_in_the_file(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(line(0) + line(1, "hello", kind="text") + line(2, [1], kind="new kind"))
    reader = polled(tmp_path)
    assert [event.value for event in reader.events] == [1.0, None, None]
    assert [reader.load(event) for event in reader.events] == [1.0, "hello", [1]]
    path.write_text("x" * 500)
    with pytest.raises(LookupError, match="no longer holds 'a'"):
        reader.load(reader.events[1])


def test_a_purge_hides_what_was_before(tmp_path):
    (tmp_path / "other").mkdir()
    for folder, first in ((tmp_path, 0), (tmp_path / "other", 0)):
        with runs.SummaryWriter(folder) as writer:
            for step in range(first, 4):
                writer.add_scalar("a", step, step)
    reader = polled(tmp_path)
    with runs.SummaryWriter(tmp_path, purge_step=2) as writer:
        writer.add_scalar("a", 20, 2)
    reader.poll()
    assert reader.generation == 1
    for seen in (reader, polled(tmp_path)):
        assert seen.scalars()["."] == {"a": [(0, 0), (1, 1), (2, 20)]}
        assert len(seen.scalars()["other"]["a"]) == 4


def test_purges_among_events_of_several_runs(tmp_path):
    """Purged all at once is what purging one after the other leaves."""
    draw = random.Random(0)
    for _ in range(50):
        events, left, purges = [], [], []
        for now in range(120):
            run, step, then = draw.choice("ab"), draw.randrange(9), now - draw.choice([0, 0, 30])
            event = Event(run, "purge" if draw.random() < 0.2 else "scalar", "t", step, then, 1.0)
            if event.kind == "purge":
                purges.append((len(events), event))
                left = [e for e in left if e.run != run or e.step < step or e.time > then]
            else:
                events.append(event)
                left.append(event)
        assert without_purged(events, purges) == left


def test_many_purges_take_no_longer_than_many_lines(tmp_path):
    """A file of a few thousand purges must not keep the page's server from answering."""
    record = '{{"kind": "{}", "tag": "", "step": {}, "time": {}, "value": {}}}\n'.format
    (tmp_path / "a.jsonl").write_text(
        "".join(record("scalar", step, 1, 1) for step in range(40_000))
        + "".join(record("purge", 40_000 - step, 2, "null") for step in range(20_000))
    )
    begin = time.process_time()
    reader = polled(tmp_path)
    assert len(reader.events) == 20_001 and reader.generation == 1
    assert time.process_time() - begin < 10  # it is half a second; each by itself would be 90


def test_tensorboards_files_are_named(tmp_path):
    (tmp_path / "events.out.tfevents.1.host").touch()
    assert "tensorboard --logdir" in polled(tmp_path).problems[0]


WRITER = """
import time
from tensorflow_lite_clone.utils import runs

class Stuck:
    def __init__(self, file): self.file, self.lines = file, 0
    def write(self, data):
        self.lines += 1
        if self.lines <= 20:
            return self.file.write(data)
        self.file.write(bytes(data[:9]))
        print("within a line", flush=True)
        time.sleep(600)

writer = runs.SummaryWriter("run", max_queue=1)
writer.file_writer._file = Stuck(writer.file_writer._file)
for step in range(30):
    writer.add_scalar("loss", step, step)
"""


def test_a_writer_that_is_killed_within_a_line(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER]
    with running(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"within a line\n"
        reader = polled(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait()
    reader.poll()
    assert reader.problems[0].endswith("the last line has no end yet")
    (path,) = [p for p in tmp_path.rglob("*.jsonl") if not p.read_bytes().endswith(b"\n")]
    whole = path.read_bytes().count(b"\n")
    assert steps(reader)[-whole:] == list(range(whole))
    # The run goes on, in a file of its own.
    with runs.SummaryWriter(tmp_path / "run", purge_step=10) as writer:
        writer.add_scalar("loss", -1, 10)
    reader.poll()
    assert reader.scalars()["run"]["loss"][-1] == (10, -1.0)
    assert max(steps(reader)) == 10
