"""DOT text, pictures, files, escaping, notebooks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tensorflow_lite_clone import nn, viz
from tensorflow_lite_clone.viz import dot
from tests.device import DEVICE
from tests.viz.nets import mlp, ones

needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="Graphviz's program dot is not installed"
)
NASTY = [
    'quo"te', "back\\slash \\N \\l", "<b>bold</b>", "a & b &lt; c", "two\nlines", "]; x [",
    "</script><script>alert(1)</script>", "\x00\x1b\ud800 ende", "µ 中文",
]  # fmt: skip


def parse(source: str) -> dict[str, Any]:
    """Graphviz's own reading of DOT text."""
    done = subprocess.run(
        ["dot", "-Tjson0"], input=source.encode(), capture_output=True, check=True
    )
    return json.loads(done.stdout)


def graph_of(name: str) -> viz.Graph:
    """A graph that has a word wherever there can be one."""
    node = viz.Node("a", name, group="g", notes={"note": name}, shape=(2,), dtype=name)
    group = viz.Group("g", name, name, notes={"settings": name})
    return viz.Graph(name, {"a": node, "b": viz.Node("b", "b")}, [viz.Edge("a", "b")], {"g": group})


@needs_dot
@pytest.mark.parametrize("name", NASTY)
def test_names_are_shown_as_they_are(name: str) -> None:
    graph = graph_of(name)
    graph.depth = 9
    drawn = ET.fromstring(dot.run(graph.to_dot(), "svg"))
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in name)
    shown = shown.encode("utf-8", "replace").decode()
    words = [element.text for element in drawn.iter() if element.tag.endswith("}text")]
    titles = " ".join(words).split()
    assert titles[: 2 * len(shown.split())] == (shown + " " + shown).split()
    assert [element.tag for element in drawn.iter() if element.tag.endswith("script")] == []
    assert parse(graph.to_dot())["_subgraph_cnt"] == 1


@pytest.mark.parametrize("name", NASTY)
def test_names_are_data_in_pages_and_files(name: str, tmp_path: Path) -> None:
    graph = graph_of(name)
    page = graph.save(tmp_path / "graph.html").read_text("utf-8")
    data = page.partition('type="application/json">')[2].partition("</script>")[0]
    assert json.loads(data)["nodes"][0]["label"] == name
    assert page.count("<script") == 2
    read = json.loads(graph.save(tmp_path / "graph.json").read_text("utf-8"))
    assert read["groups"][0]["notes"] == {"settings": name}


@needs_dot
@pytest.mark.parametrize(
    "suffix, begins",
    [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")],
)
def test_pictures(suffix: str, begins: bytes, tmp_path: Path) -> None:
    path = viz.forward(mlp(), ones(5, 4)).save(tmp_path / f"net{suffix}")
    assert path == tmp_path / f"net{suffix}"
    assert path.read_bytes().startswith(begins)
    assert os.listdir(tmp_path) == [path.name]


@needs_dot
def test_modules_are_clusters_and_have_tooltips() -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    clusters = [box for box in parse(graph.to_dot())["objects"] if "nodes" in box]
    assert [cluster["label"] for cluster in clusters] == ["0  Linear", "1  ReLU", "2  Linear"]
    graph.depth = 0
    boxes = {box["label"].split("\\n")[0]: box for box in parse(graph.to_dot())["objects"]}
    assert sorted(boxes) == ["0  Linear", "1  ReLU", "2  Linear", "input", "output"]
    assert "in_features=4, out_features=8" in boxes["0  Linear"]["tooltip"]


def test_text_formats_need_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "")
    graph = viz.forward(mlp(), ones(5, 4))
    assert graph.save(tmp_path / "net.dot").read_text() == graph.to_dot()
    assert graph.save(tmp_path / "net.html").read_text() == graph.to_html()
    read = json.loads(graph.save(str(tmp_path / "net.json")).read_text())
    assert [node["label"] for node in read["nodes"]][:4] == [
        "input",
        "0.weight",
        "0.bias",
        "linear",
    ]
    assert read["edges"][0] == {"source": "n0", "target": "n3", "kind": "data"}
    assert read["groups"][0]["title"] == "0  Linear"


def test_json_has_no_nan(tmp_path: Path) -> None:
    graph = viz.backward((ones(2, requires_grad=True) * float("nan")).sum(), gradients=True)
    text = graph.save(tmp_path / "graph.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["nodes"][0]["gradient"] == "nan"


def test_without_graphviz_the_text_is_saved_beside(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    graph = viz.forward(mlp(), ones(5, 4))
    with pytest.raises(
        RuntimeError, match="apt-get install graphviz.*saved as DOT text in"
    ) as info:
        graph.save(tmp_path / "net.svg")
    assert str(tmp_path / "net.dot") in str(info.value)
    assert (tmp_path / "net.dot").read_text() == graph.to_dot()
    assert not (tmp_path / "net.svg").exists()


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins for dot are shell scripts")
def test_a_program_that_fails_or_never_ends(tmp_path: Path, monkeypatch: Any) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho out of memory >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    graph = viz.forward(mlp(), ones(5, 4))
    with pytest.raises(RuntimeError, match="dot failed: out of memory; the graph is saved"):
        graph.save(tmp_path / "net.svg")
    program.write_text("#!/bin/sh\nexec sleep 20\n")
    monkeypatch.setattr(dot, "PATIENCE", 0.1)
    with pytest.raises(RuntimeError, match="not done after 0.1 seconds: fold"):
        graph.save(tmp_path / "net.svg")
    assert graph._repr_svg_() is None


def test_wrong_suffixes(tmp_path: Path) -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    for name in ("net.bmp", "net"):
        with pytest.raises(ValueError, match="expected .svg, .png, .pdf, .dot, .html or .json"):
            graph.save(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: Any) -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    with pytest.raises(FileNotFoundError, match="missing"):
        graph.save(tmp_path / "missing" / "net.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OSError, match="folder.html"):
        graph.save(tmp_path / "folder.html")
    before = graph.save(tmp_path / "net.html").read_bytes()

    def full(*names: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        graph.save(tmp_path / "net.html")
    assert (tmp_path / "net.html").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["folder.html", "net.html"]


@needs_dot
def test_notebooks_show_the_picture() -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    assert "<svg" in graph._repr_svg_()
    assert graph._repr_html_() is None
    assert repr(graph) == "<graph of forward of Sequential: 9 nodes, 8 edges, 3 groups>"


def test_notebooks_show_the_page_without_graphviz(monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "")
    graph = graph_of('"><script>alert(1)</script>')
    assert graph._repr_svg_() is None
    shown = graph._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<script" not in shown


def test_many_open_modules_are_closed_at_first() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.Sequential(*[mlp() for _ in range(20)])

        def forward(self, x: Any) -> Any:
            return sum(part(x) for part in self.parts)

    graph = viz.forward(Deep().to(DEVICE), ones(2, 4))
    assert len(graph.collapse().nodes) < 60 < len(graph.nodes)
    assert graph.to_dot() == dot.text(graph.collapse(0))
