"""What ``torch.compile(debug=...)`` writes about a step on a GPU, which goes on as without it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.cuda import programs

pytestmark = pytest.mark.cuda
nn, F = tlc.nn, tlc.nn.functional
CUDA = "cuda:0"


def rows(folder: Path) -> list[list[str]]:
    """The entries of the table."""
    lines = (folder / "kernels.md").read_text().splitlines()
    return [line.strip("| ").split(" | ") for line in lines if re.match(r"\| \d", line)]


def network() -> nn.Module:
    tlc.manual_seed(0)
    layers = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(16 * 64, 3)).to(CUDA)


def trained(folder: Path | None) -> list[float]:
    model = network()
    optimizer = tlc.optim.NAdam(model.parameters(), lr=0.01)
    step = tlc.compile(programs.plain(model, optimizer), fullgraph=True, debug=folder)
    programs.seed(CUDA, 1)
    images, labels = programs.tensor(CUDA, 0, 32, 3, 8, 8), programs.labels(CUDA, 0, 32)
    return [step(images, labels).item() for _ in range(6)]


def test_a_step_is_written_down(tmp_path: Path) -> None:
    np.testing.assert_allclose(trained(tmp_path), trained(None), 1e-4)
    (folder,) = tmp_path.iterdir()
    assert folder.name == "1_step"
    found = rows(folder)
    generated = [row for row in found if row[1].startswith("[")]
    assert 3 <= len(generated) < len(found)
    assert any("conv2d" in row[1] and ".cu, " in row[1] for row in found)
    for row in generated:
        name = row[1].partition("]")[0][1:]
        assert "pointwise.cuh" in (folder / f"{name}.cu").read_text()
        if len(row) > 3:
            assert (folder / f"{name}.dot").read_text().startswith("digraph")
            assert 0.3 < float(row[6]) < 1000
            assert 0 <= int(row[7].rstrip("%")) < 1000
    text = (folder / "kernels.md").read_text()
    speed = re.search(r"copies (\d+) GB/s", text)
    assert speed is not None
    assert 50 < int(speed[1]) < 20000
    drawn = (folder / "graph_1.dot").read_text()
    assert drawn.count("pointwise_") >= len(generated)


def test_two_graphs_of_a_module(tmp_path: Path) -> None:
    model = network()
    call = tlc.compile(model, fullgraph=True, debug=tmp_path)
    images = programs.tensor(CUDA, 0, 32, 3, 8, 8)
    for _ in range(3):
        call(images).square().sum().backward()
    (folder,) = tmp_path.iterdir()
    text = (folder / "kernels.md").read_text()
    assert text.count("## Graph") == 2
    assert (folder / "graph_2.dot").exists()
    assert sum("relu" in row[2] for row in rows(folder) if len(row) > 3) >= 1
