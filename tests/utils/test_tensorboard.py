"""SummaryWriter: the same messages in the same files as PyTorch's."""

from __future__ import annotations

import inspect
import io
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc

pytest.importorskip("tensorboard", reason="tensorboard is not installed")
pytest.importorskip("PIL", reason="pictures need Pillow")
pytest.importorskip("matplotlib", reason="figures need Matplotlib")

import torch.utils.tensorboard as theirs  # noqa: E402
import torch.utils.tensorboard.summary as their_summary  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

import tensorflow_lite_clone.utils.tensorboard as ours  # noqa: E402
from tensorflow_lite_clone.utils.tensorboard import summary as our_summary  # noqa: E402
from tests.tools.markdown import ROOT  # noqa: E402

LIBRARIES = ((tlc, ours, our_summary), (torch, theirs, their_summary))


def values(lib, *shape):
    return lib.linspace(0, 1, int(np.prod(shape))).reshape(shape)


SUMMARIES = {
    "scalar": lambda lib, s: s.scalar("a b/c", lib.tensor(2.5)),
    "scalar of one": lambda lib, s: s.scalar("a", lib.tensor([[2]], dtype=lib.bfloat16)),
    "scalar of an array": lambda lib, s: s.scalar("a", np.float64(0.1)),
    "new scalar": lambda lib, s: s.scalar("a", 0.1, new_style=True),
    "double": lambda lib, s: s.scalar("a", 0.1, new_style=True, double_precision=True),
    "scalar of a list": lambda lib, s: s.scalar("a", [1.0]),
    "scalar of many": lambda lib, s: s.scalar("a", np.ones((2, 2))),
    "scalar of text": lambda lib, s: s.scalar("a", "x"),
    "text": lambda lib, s: s.text("a b", "hé"),
    "histogram": lambda lib, s: s.histogram("h", values(lib, 3, 5), "auto"),
    "joined": lambda lib, s: s.histogram("h", values(lib, 30), 7, 3),
    "joined evenly": lambda lib, s: s.histogram("h", values(lib, 30) ** 3, [0.2, 0.5, 0.6, 2], 2),
    "integers": lambda lib, s: s.histogram("h", lib.arange(9), "doane"),
    "no values": lambda lib, s: s.histogram("h", lib.zeros(0), "auto"),
    "elsewhere": lambda lib, s: s.histogram("h", lib.zeros(3), [1, 2, 3]),
    "raw": lambda lib, s: s.histogram_raw("h", 0, 1, 2, 3, 4, [1, 2], [3, 4]),
    "curve": lambda lib, s: s.pr_curve(
        "p", np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.4, 1]), 200, np.array([1, 2, 0.5, 1])
    ),
    "few": lambda lib, s: s.pr_curve("p", np.array([0, 1]), np.array([0.1, 0.9]), 4),
    "raw curve": lambda lib, s: s.pr_curve_raw("p", *[[1.0, 2.0]] * 6, num_thresholds=2),
    "int64": lambda lib, s: s.tensor_proto("t", lib.arange(3)),
    "bool": lambda lib, s: s.tensor_proto("t", lib.tensor([[True, False]])),
    "float64": lambda lib, s: s.tensor_proto("t", lib.tensor(0.1, dtype=lib.float64)),
    "complex": lambda lib, s: s.tensor_proto("t", lib.tensor([1 + 2j, 3j])),
    "points": lambda lib, s: s.mesh("m", values(lib, 1, 2, 3), values(lib, 1, 2, 3), None, None),
    "mesh": lambda lib, s: s.mesh(
        "m", values(lib, 1, 4, 3), None, lib.tensor([[[0, 1, 2]]]), {"camera": {"cls": "P"}}, "d"
    ),
    "layout": lambda lib, s: s.custom_scalars(
        {"T": {"a": ["Multiline", ["x/.*"]], "b": ["Margin", ["u", "v", "w"]]}, "U": {}}
    ),
    "bad margin": lambda lib, s: s.custom_scalars({"T": {"b": ["Margin", ["u", "v"]]}}),
    "sound": lambda lib, s: s.audio("s", lib.linspace(-1.2, 1.1, 50)[None], 8),
    "noise": lambda lib, s: s.audio("s", lib.ones(2, 3)),
    "picture": lambda lib, s: s.image("i", values(lib, 3, 4, 5), dataformats="CHW"),
    "gray": lambda lib, s: s.image("i", values(lib, 1, 4, 5), dataformats="CHW"),
    "plane": lambda lib, s: s.image("i", values(lib, 4, 5) * 1.2, dataformats="WH"),
    "bytes": lambda lib, s: s.image("i", lib.arange(60).reshape(4, 5, 3).byte(), 1, "HWC"),
    "transparent": lambda lib, s: s.image("i", values(lib, 4, 5, 4), 1, "HWC"),
    "grid": lambda lib, s: s.image("i", values(lib, 11, 1, 4, 5)),
    "resized": lambda lib, s: s.image("i", values(lib, 2, 3, 4, 5), 2.5),
    "twice": lambda lib, s: s.image("i", values(lib, 2, 3), 1, "HH"),
    "other rank": lambda lib, s: s.image("i", values(lib, 2, 3)),
    "boxes": lambda lib, s: s.image_boxes(
        "i", values(lib, 3, 20, 30), lib.tensor([[2, 3, 18, 12]]), 2
    ),
    "hyperparameters": lambda lib, s: s.hparams(
        {"lr": 0.1, "n": 3, "b": True, "s": "x", "t": lib.tensor([2.0]), "none": None},
        {"accuracy": 1.0},
        {"lr": [0.1, 0.2], "s": ["x", "y"], "b": [True]},
    ),
    "other values": lambda lib, s: s.hparams({"a": [1]}, {}),
    "other choices": lambda lib, s: s.hparams({"a": 1}, {"b": 2}, {"a": ["x"]}),
    "no dictionary": lambda lib, s: s.hparams([], {}),
    "no metrics": lambda lib, s: s.hparams({}, 3),
}


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), " ".join(str(error).split())


@parameterized.expand(SUMMARIES)
def test_messages(name):
    mine, other = (outcome(lambda: SUMMARIES[name](lib, s)) for lib, _, s in LIBRARIES)  # noqa: B023
    if isinstance(other, tuple) and isinstance(other[0], type):
        assert mine[0] is other[0]
        assert mine[1][:14] == other[1][:14]
    else:
        assert mine == other


def test_hyperparameters_that_are_no_dictionary(tmp_path):
    def of(lib_writer):
        with lib_writer.SummaryWriter(tmp_path) as writer:
            return outcome(lambda: writer.add_hparams([1], {"loss": 1.0}))

    assert of(ours) == of(theirs)


def test_half_precision_can_be_read_back():
    """PyTorch writes the bits of float32 here, which TensorBoard reads as other numbers."""
    x = tlc.tensor([[1.5, -2.0]], dtype=tlc.float16)
    message = our_summary.tensor_proto("t", x).value[0].tensor
    assert tensor_util.make_ndarray(message).tolist() == [[1.5, -2.0]]
    message = our_summary.tensor_proto("t", x.bfloat16()).value[0].tensor
    assert [hex(bits) for bits in message.half_val] == ["0x3fc0", "0xc000"]


def test_videos():
    from PIL import Image

    frames = tlc.zeros(3, 2, 3, 8, 6)
    frames[1, 1] = 1
    made = our_summary.video("v", frames, fps=2).value[0].image
    assert (made.height, made.width, made.colorspace) == (16, 12, 3)
    with Image.open(io.BytesIO(made.encoded_image_string)) as film:
        assert (film.n_frames, film.info["duration"], film.size) == (2, 500, (12, 16))
        film.seek(1)
        assert [film.convert("L").getpixel(place) for place in ((2, 2), (8, 2), (2, 10))] == [
            0, 255, 0,
        ]  # fmt: skip


def test_signatures():
    for mine, other in ((ours.SummaryWriter, theirs.SummaryWriter), (our_summary, their_summary)):
        for name, function in inspect.getmembers(other, inspect.isfunction):
            if name.startswith("_") and name != "__init__" or not hasattr(mine, name):
                continue
            shown = [
                [(p.name, p.default) for p in inspect.signature(f).parameters.values()]
                for f in (getattr(mine, name), function)
            ]
            if inspect.getmodule(function) is inspect.getmodule(other):
                assert shown[0] == shown[1], name


def log_everything(lib, module, folder):
    from matplotlib import pyplot

    with module.SummaryWriter(folder, purge_step=2, filename_suffix=".x") as writer:
        for step in range(3):
            writer.add_scalar("loss/train", lib.tensor(1 / (step + 1)), step, walltime=5.0)
        writer.add_scalars("both/of", {"a": 1, "b": lib.tensor(2)}, 0)
        writer.add_histogram("weights", values(lib, 50) * 4 - 1, 1)
        writer.add_histogram("some", values(lib, 50), 1, bins="fd", max_bins=3)
        writer.add_histogram_raw("raw", 0, 1, 2, 3, 4, [1, 2], [3, 4], 2)
        writer.add_images("pictures", values(lib, 2, 3, 4, 4), 3)
        writer.add_image_with_boxes("boxes", values(lib, 3, 9, 9), np.array([[1, 1, 5, 5]]))
        writer.add_text("note", "*hello*", 1)
        writer.add_tensor("tensor", lib.arange(3), 1)
        writer.add_pr_curve("curve", lib.tensor([0, 1]), lib.tensor([0.2, 0.7]), 1)
        writer.add_pr_curve_raw("raw curve", *[lib.ones(2).numpy()] * 6, 1, num_thresholds=2)
        writer.add_audio("sound", values(lib, 1, 9), 1, 100)
        writer.add_mesh("mesh", values(lib, 1, 2, 3))
        writer.add_custom_scalars_multilinechart(["x"], "c", "t")
        writer.add_custom_scalars_marginchart(["x", "y", "z"])
        writer.add_hparams({"lr": 0.1}, {"accuracy": lib.tensor(1.0)}, run_name="run")
        figure = pyplot.figure(figsize=(1, 1), dpi=20)
        writer.add_figure("figure", figure, 1)
        assert not pyplot.fignum_exists(figure.number)
        writer.add_figure("figures", [figure, figure], 1, close=False)
        writer.add_embedding(lib.ones(2, 3), ["a", "b"], values(lib, 2, 3, 4, 4), 1, "a/tag")
        writer.add_embedding(values(lib, 2, 2), [["a", 1], ["b", 2]], metadata_header=["n", "i"])
        writer.flush()
        assert writer.get_logdir() == folder
    writer.add_scalar("later", 1.0)
    writer.close()


def contents(folder):
    """The files, as names without time and process, and what is in them."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(place, name)
            where = os.path.relpath(place, folder)
            if "tfevents" in name:
                events = found.setdefault((where, "events" + ".x" * name.endswith(".x")), [])
                for event in EventFileLoader(path).Load():
                    if event.wall_time != 5.0:
                        event.ClearField("wall_time")
                    events.append(str(event))
            else:
                with open(path, "rb") as file:
                    found[where, name] = file.read()
    for events in found.values():
        if isinstance(events, list):
            events.sort()  # two files of one folder have no order
    return found


def test_files(tmp_path):
    seen = []
    for number, (lib, module, _) in enumerate(LIBRARIES):
        folder = str(tmp_path / str(number))
        log_everything(lib, module, folder)
        seen.append(contents(folder))
    mine, other = seen
    assert mine.keys() == other.keys()
    for name, content in mine.items():
        if name[0] == "." and isinstance(content, list):
            names = {line for event in content for line in event.split("\n") if "tag:" in line}
            assert len(names) == 16
        assert content == other[name], name


def test_event_accumulator(tmp_path):
    with ours.SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", step / 2, step)
    accumulator = EventAccumulator(str(tmp_path)).Reload()
    assert accumulator.Tags()["scalars"] == ["loss"]
    assert [(e.step, e.value) for e in accumulator.Scalars("loss")] == [(0, 0), (1, 0.5), (2, 1)]


def test_summary_writer_default_log_dir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _, module, _ in LIBRARIES:
        with module.SummaryWriter(comment="_note") as writer:
            names.append(re.sub(r"\d+", "#", writer.log_dir))  # a minute may have passed
    assert names[0] == names[1] and names[0].endswith("_note")
    assert len(os.listdir("runs")) in (1, 2)  # two where a second has passed


def network(lib):
    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.act = lib.nn.Linear(4, 4), lib.nn.Tanh()
            self.scale = lib.nn.Parameter(lib.ones(4))

        def forward(self, x):
            return self.act(self.layer(x)) * self.scale

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = lib.nn.Sequential(Block(), lib.nn.Dropout(0.5), Block())
            self.head = lib.nn.Linear(4, 2)

        def forward(self, x, y):
            x = self.body(x)
            return self.head(x) + y, x.relu()

    return Net()


def test_the_graph_of_a_model(tmp_path):
    """The calls stand in the same boxes of modules, and are given the same."""
    found = []
    for lib, module, _ in LIBRARIES:
        model, folder = network(lib), tmp_path / lib.__name__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with module.SummaryWriter(folder) as writer:
                writer.add_graph(model, (lib.ones(3, 4), lib.ones(3, 2)))
        assert model.training and model.body[1].training
        accumulator = EventAccumulator(str(folder)).Reload()
        assert accumulator.Tags()["run_metadata"] == ["step1"]
        graph = accumulator.Graph()
        nodes = {node.name: node for node in graph.node}
        assert len(nodes) == len(graph.node)
        calls = []
        for node in graph.node:
            known = all([source in nodes for source in node.input])
            assert known or node.op == "prim::GetAttr"  # of modules, which PyTorch leaves out
            if node.op.startswith("aten::") and node.op != "aten::dropout":
                sizes = [[d.size for d in s.dim] for s in node.attr["_output_shapes"].list.shape]
                sources = [nodes[source] for source in node.input]
                boxes = [_box(x) for x in sources if x.op in ("IO Node", "prim::GetAttr")]
                calls.append((node.name.rpartition("/")[0], node.op, sizes, boxes))
        inputs = [_box(node) for node in graph.node if node.name.startswith("input/")]
        found.append((calls, inputs, graph.versions.producer))
    assert found[0] == found[1]
    assert ("Net/Sequential[body]/Block[0]", "aten::mul") in [call[:2] for call in found[1][0]]


def _box(node):
    """What a name says of an input or parameter, without what PyTorch repeats with a number."""
    name = re.sub(r"\.\d+$", "", node.name)
    return re.sub(r"(/\w+)\1$", r"\1", name)


def test_verbose_graphs_and_what_cannot_be_exported(tmp_path, capsys):
    class Decides(tlc.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with ours.SummaryWriter(tmp_path) as writer:
        writer.add_graph(tlc.nn.Linear(2, 1), tlc.ones(1, 2), verbose=True)
        assert "Linear/linear" in capsys.readouterr().out
        with pytest.raises(Exception, match="data"):
            writer.add_graph(Decides(), tlc.ones(2))


def test_wrong_arguments(tmp_path):
    cases = [
        lambda lib, w: w.add_histogram_raw("h", 0, 1, 2, 3, 4, [1], [3, 4]),
        lambda lib, w: w.add_embedding(lib.ones(2, 3), ["a"]),
        lambda lib, w: w.add_embedding(lib.ones(2, 3), label_img=lib.ones(3, 3, 2, 2)),
        lambda lib, w: w.add_embedding(lib.ones(3)),
        lambda lib, w: w.add_custom_scalars_marginchart(["a"]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, case in enumerate(cases):
            kinds = []
            for j, (lib, module, _) in enumerate(LIBRARIES):
                with module.SummaryWriter(str(tmp_path / f"{i}{j}")) as writer:
                    kinds.append(outcome(lambda: case(lib, writer))[0])  # noqa: B023
            assert kinds[0] is kinds[1], i


def test_without_tensorboard(tmp_path):
    """Then it is the writer of `utils.runs`, which says so once, when it is made."""
    program = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "from tensorflow_lite_clone.utils import runs\n"
        "from tensorflow_lite_clone.utils.tensorboard import SummaryWriter\n"
        "print('imported', file=sys.stderr)\n"
        "for name in 'ab':\n"
        "    with SummaryWriter(name) as writer:\n"
        "        writer.add_scalar('loss', 1.0, 3)\n"
        "reader = runs.Reader('.')\n"
        "reader.poll()\n"
        "assert reader.scalars() == {name: {'loss': [(3, 1.0)]} for name in 'ab'}\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    silent, _, said = done.stderr.partition("imported")
    assert not silent
    assert said.count("UserWarning") == said.count("pip install tensorboard") == 1
