"""`LayerReport`: as text, in files, as pictures."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.profiler import LayerReport, layers
from tensorflow_lite_clone.profiler._layer_report import Timing
from tensorflow_lite_clone.profiler._text import amount, duration, size
from tests.device import DEVICE


@pytest.fixture(scope="module")
def report() -> LayerReport:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))).to(DEVICE)
    return layers(
        model, tlc.rand(3, 4, device=DEVICE), trials=3, warmup=1, backward=True, progress=False
    )


def test_figures_of_samples() -> None:
    assert Timing.of([3.0, 1.0, 2.0, 6.0]) == Timing(3.0, 2.5, 1.0, pytest.approx(2.1602, abs=1e-4))
    assert Timing.of([5.0]) == Timing(5.0, 5.0, 5.0, 0.0)


def test_figures_as_text() -> None:
    assert [amount(n) for n in (0, 7, 999, 1000, 25_557_032, 4 * 10**15)] == [
        "0", "7", "999", "1 k", "25.6 M", "4 P",
    ]  # fmt: skip
    assert [size(n) for n in (0, 1023, 1024, 1536, 5 << 20, None)] == [
        "0 B", "0.999 KiB", "1 KiB", "1.5 KiB", "5 MiB", "-",
    ]  # fmt: skip
    assert [duration(t) for t in (0.04, 12.34, 999.96, 12345.0, 3e6, None)] == [
        "0.0 us", "12.3 us", "1.00 ms", "12.35 ms", "3.00 s", "-",
    ]  # fmt: skip


def test_the_table(report: LayerReport) -> None:
    text = str(report)
    lines = text.splitlines()
    titles = ["Layer", "Type", "Calls", "Forward", "Backward", "%", "Params", "FLOPs", "Memory"]
    assert lines[0].split()[:9] == titles
    assert [line.split()[0] for line in lines[2:7]] == ["0", "1", "0", "1", "1"]
    assert lines[4].startswith("  0")  # in a container
    assert lines[-2].startswith("total") and "100.0" in lines[-2]
    assert "medians of 3 runs" in lines[-1]
    assert len({len(line) for line in lines if line.startswith("-")}) == 1
    assert repr(report).startswith("<LayerReport of Sequential: 5 rows, ")


def test_print(report: LayerReport, capsys, monkeypatch) -> None:
    report.print()
    assert capsys.readouterr().out == f"{report}\n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stdout", Terminal())
    report.print()
    shown = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "━" in shown and "Linear" in shown and "medians of 3 runs" in shown
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stdout", Terminal())
    report.print()
    assert sys.stdout.getvalue() == f"{report}\n"  # type: ignore[attr-defined]


def test_json(report: LayerReport, tmp_path: Path) -> None:
    report.to_json(tmp_path / "report.json")
    read = json.loads((tmp_path / "report.json").read_text())
    assert read["trials"] == 3 and read["clock"] == report.clock and read["model"] == "Sequential"
    assert len(read["rows"]) == 5 and [line["name"] for line in read["containers"]] == ["1"]
    for line, row in zip(read["rows"], report.rows, strict=True):
        assert line["name"] == row.name and line["memory"] == row.memory
        assert Timing(**line["backward"]) == row.backward
        assert [tuple(shape) for shape in line["shape"]] == row.shape


def test_csv(report: LayerReport, tmp_path: Path) -> None:
    report.to_csv(tmp_path / "report.csv")
    with open(tmp_path / "report.csv", newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert [line["name"] for line in read] == [row.name for row in report.lines] + ["total"]
    for line, row in zip(read, [*report.lines, report.total], strict=True):
        assert line["role"] == row.role and line["type"] == row.type
        assert float(line["forward_median"]) == row.forward.median
        assert float(line["backward_std"]) == row.backward.std
        assert int(line["parameters"]) == row.parameters
    assert read[0]["shape"] == "3x4"


def write(report: LayerReport, kind: str, path: Path) -> None:
    if kind == "plot":
        report.plot(path)
    else:
        getattr(report, f"to_{kind}")(path)


@pytest.mark.parametrize("kind", ["csv", "json", "plot"])
def test_files_are_whole_or_not_there(report: LayerReport, kind, tmp_path, monkeypatch) -> None:
    path = tmp_path / "file.png"
    path.write_text("before")
    with pytest.raises(FileNotFoundError) as raised:
        write(report, kind, tmp_path / "absent" / "file.png")
    assert raised.value.filename == str(tmp_path / "absent" / "file.png")

    def full(*args: object, **keywords: object) -> None:
        raise OSError(28, "No space left on device")

    for place in ("csv.writer", "json.dump", "matplotlib.figure.Figure.savefig"):
        monkeypatch.setattr(place, full)
    with pytest.raises(OSError, match="No space left on device") as error:
        write(report, kind, path)
    assert error.value.filename == str(path)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.png"]


@pytest.mark.parametrize("what", ["time", "memory"])
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plots(report: LayerReport, what: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"chart.{ending}"
    report.plot(path, what)
    start = path.read_bytes()[:100]
    assert start.startswith(b"\x89PNG") if ending == "png" else b"<?xml" in start
    if ending == "svg":
        text = path.read_text()
        for word in ("Linear", "Sequential: ", "backward"):
            assert f"<!-- {word}" in text or word in text


def test_a_plot_without_bars(tmp_path: Path) -> None:
    x = tlc.rand(3, 4, device=DEVICE)
    found = layers(nn.Flatten(0), x, trials=1, warmup=1, progress=False)
    found.plot(tmp_path / "none.png", "memory")
    assert (tmp_path / "none.png").stat().st_size > 1000


def test_plots_of_many_rows(tmp_path: Path) -> None:
    kinds = [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.SELU, nn.Softplus]
    kinds += [nn.Hardtanh, nn.ReLU6, nn.Mish, nn.Softsign, nn.LogSigmoid]
    model = nn.Sequential(*[kinds[i % len(kinds)]() for i in range(150)]).to(DEVICE)
    x = tlc.rand(3, 4, device=DEVICE)
    found = layers(model, x, trials=1, warmup=1, progress=False)
    found.plot(tmp_path / "many.svg")
    text = (tmp_path / "many.svg").read_text()
    assert "52 smaller ones" in text
    assert text.count("<!-- ") > 200


def test_plots_that_cannot_be(report: LayerReport, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(ValueError, match="'time' or 'memory', not 'flops'"):
        report.plot(tmp_path / "chart.png", "flops")
    with pytest.raises(ValueError, match=r"cannot draw a chart as '\.doc': expected one of"):
        report.plot(tmp_path / "chart.doc")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        report.plot(tmp_path / "chart.png")
    assert list(tmp_path.iterdir()) == []
