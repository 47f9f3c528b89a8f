"""The study of ResNet-20: its measurements, its files, its page, its messages."""

from __future__ import annotations

import copy
import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tests.strict_backend  # noqa: F401  the device
from examples.cifar import data
from examples.cifar.models import resnet20
from examples.resnet20_profile import __main__ as program
from examples.resnet20_profile import report, study
from examples.resnet20_profile.placement import first_convolutions_on
from examples.resnet20_profile.subject import network, picture
from tests.device import DEVICE
from tests.examples.against_torch import ROOT
from tests.examples.pictures import write_cifar10

PNG = b"\x89PNG"
on_gpu = pytest.mark.skipif(DEVICE != "cuda", reason="about a CUDA device")
without_gpu = pytest.mark.skipif(tlc.cuda.is_available(), reason="there is a GPU")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures, and the same weights in both formats."""
    folder = tmp_path_factory.mktemp("study")
    write_cifar10(folder, 2)
    tlc.manual_seed(3)
    state = resnet20().state_dict()
    tlc.save(state, folder / "weights.pth")
    tlc.serialization.save_npz(
        folder / "weights.npz", {**state, "about": {"test_accuracy": 0.9125}}
    )
    (folder / "text.pth").write_text("no weights")
    (folder / "text.npz").write_text("no weights")
    tlc.save({"fc.weight": state["fc.weight"]}, folder / "part.pth")
    tlc.serialization.save_npz(folder / "part.npz", {"fc": state["fc.weight"]})
    return folder


def run(monkeypatch: pytest.MonkeyPatch, module: Any, *options: object) -> None:
    monkeypatch.setattr("sys.argv", ["program", *map(str, options)])
    module.main()


@pytest.fixture(scope="module")
def found(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what the CPU's two profiles wrote."""
    folder = tmp_path_factory.mktemp("found") / "new"
    weights = (f"--weights={files / 'weights.npz'}", f"--data={files}")
    with pytest.MonkeyPatch.context() as patch:
        for profile in ("time", "memory"):
            options = ("--trials=3", f"--profile={profile}", f"--output={folder}/cpu_{profile}.csv")
            run(patch, program, *options, *weights)
    return folder


def test_times(found: Path) -> None:
    content = json.loads((found / "cpu_time.json").read_text())
    assert (content["mode"], content["profile"], content["trials"]) == ("cpu", "time", 3)
    assert (content["weights"], content["test_accuracy"]) == ("weights.npz", 0.9125)
    assert re.fullmatch(r"the first test picture, of class \d", content["input"])
    assert content["machine"]["numpy"] == np.__version__
    whole = content["whole"]
    assert 0 < whole["p10"] <= whole["median"] <= whole["p90"]
    layers = content["layers"]
    assert layers["trials"] == 3
    rows = {row["name"]: row for row in layers["rows"]}
    assert list(rows)[:4] == ["conv1", "bn1", "relu1", "layer1.0.conv1"]
    assert len([name for name in rows if "conv" in name]) == 19
    # Of single rows nothing may be left: what watching has cost is taken off, and other programs on
    # the machine can make it seem more than a layer takes.
    assert sum(row["forward"]["mean"] for name, row in rows.items() if "conv" in name) > 0
    assert all(row["forward"]["mean"] >= 0 for row in rows.values())
    with open(found / "cpu_time.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(layers["rows"]) + len(layers["containers"]) + 1
    assert lines[-1]["role"] == "total"
    assert (found / "cpu_time.png").read_bytes()[:4] == PNG


def test_memory(found: Path) -> None:
    content = json.loads((found / "cpu_memory.json").read_text())
    lines = {line["where"]: line for line in content["lines"]}
    text = (ROOT / "examples/cifar/models.py").read_text().splitlines()
    at = next(number for number, line in enumerate(text, 1) if "self.bn1(self.conv1(x))" in line)
    # convolution, normalisation and rectifier of nine blocks
    assert lines[f"examples/cifar/models.py:{at}"]["allocated"] == 3 * 4096 * (
        3 * 16 + 3 * 8 + 3 * 4
    )
    parameters = content["layers"]["total"]["parameters"]
    assert parameters == 269_722
    assert content["peaks"]["cpu"]["before"] >= 4 * parameters
    assert content["peaks"]["cpu"]["peak"] >= content["peaks"]["cpu"]["before"] + 2 * 65_536
    assert {path.name for path in found.glob("cpu_memory*")} == {
        "cpu_memory.csv", "cpu_memory.json", "cpu_memory.png", "cpu_memory_timeline.png",
    }  # fmt: skip


def test_weights_of_both_formats(files: Path) -> None:
    x, name = picture(None)
    assert name == "random numbers"
    answers = []
    for ending in ("npz", "pth"):
        model, about = network(files / f"weights.{ending}")
        assert about["weights"] == f"weights.{ending}"
        assert not model.training
        answers.append(model(x).tolist())
    assert answers[0] == answers[1]
    model, about = network(None)
    assert about == {"weights": "initial, untrained"}
    assert model(x).tolist() != answers[0]


def test_first_convolutions_elsewhere() -> None:
    """The mixed model answers as before; only the first convolutions of blocks have moved."""
    model, _ = network(None)
    x, _ = picture(None)
    wanted = model(x)
    first_convolutions_on(model, "strict", home="cpu")
    got = model(x)
    assert got.device.type == "cpu"
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    moved = {name for name, value in model.named_parameters() if value.device.type == "strict"}
    assert moved == {
        f"layer{stage}.{block}.conv1.there.weight" for stage in (1, 2, 3) for block in range(3)
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trials=0",), "expected a positive whole number, got '0'"),
        (("--mode=tpu",), "invalid choice: 'tpu'"),
        (("--mode=cuda-graph", "--profile=memory"), "cuda-graph has times only"),
        (("--weights=nowhere.npz",), "nowhere.npz does not hold weights of ResNet-20: .*No such"),
        (("--weights={}/text.npz",), r"text\.npz does not hold weights of ResNet-20"),
        (("--weights={}/text.pth",), r"text\.pth does not hold weights of ResNet-20"),
        (("--weights={}/part.npz",), r"part\.npz does not hold weights of ResNet-20: .*conv1"),
        (("--weights={}/part.pth",), r"part\.pth does not hold weights of ResNet-20: .*Missing"),
        (("--data=nowhere",), "nowhere has no folder cifar-10-batches-py"),
        *[
            pytest.param(
                (f"--mode={mode}",), f"--mode {mode} needs a GPU, and there is none",
                marks=without_gpu,
            )
            for mode in study.MODES[1:]
        ],
    ],
)  # fmt: skip
def test_refused(
    options: tuple[str, ...],
    message: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, program, *[option.format(files) for option in options])
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err, re.DOTALL)


def of_a_gpu(time: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Made-up findings of the modes with a GPU, of round figures, from those of the CPU."""
    machine = time["machine"] | {"gpu": "a GPU", "cupy": "14"}
    made = {mode: copy.deepcopy(time) | {"mode": mode, "machine": machine} for mode in study.MODES}
    for mode in ("cuda", "first-conv-cuda"):
        for row in made[mode]["layers"]["rows"]:
            row["forward_host"]["median"] = 10.0
            if mode == "cuda":
                row["forward_device"] = {"median": 3.0}
    mixed = made["first-conv-cuda"]["layers"]
    index = [row["name"] for row in mixed["rows"]].index("layer1.0.conv1")
    there = mixed["rows"][index]
    there["name"] = "layer1.0.conv1.there"
    for name, place in (("copy_in", index), ("copy_out", index + 2)):
        change = {"name": f"layer1.0.conv1.{name}", "type": "Copy", "copies": 1, "copied": 65_536}
        mixed["rows"].insert(place, there | change)
    mixed["total"] |= {"copies": 2, "copied": 131_072}
    del made["cuda-graph"]["layers"]
    made["cuda-graph"] |= {
        "whole": dict.fromkeys(("median", "mean", "p10", "p90"), 50.0),
        "eager": dict.fromkeys(("median", "mean", "p10", "p90"), 200.0),
        "gain": 4.0,
        "largest_difference": 0.0,
    }
    return made


def test_page(found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "json"
    place.mkdir()
    for mode, content in of_a_gpu(json.loads((found / "cpu_time.json").read_text())).items():
        (place / f"{mode}_time.json").write_text(json.dumps(content))
        (place / f"{mode}_time.png").write_bytes(PNG)
    (place / "cpu_memory.json").write_bytes((found / "cpu_memory.json").read_bytes())
    (place / "other.json").write_text("[1]")
    output = tmp_path / "docs" / "resnet20.md"
    run(monkeypatch, report, place, f"--output={output}")
    text = output.read_text()
    lines = text.splitlines()
    assert "| `cuda-graph` | 50.0 | 50.0 | 50.0 | 50.0 | 3 |" in lines
    assert "The graph is 4.00 times as fast" in text
    head = "| layer | type | `cpu`, host | `cuda`, host | `cuda`, GPU | `first-conv-cuda`, host |"
    assert head in lines
    assert re.search(
        r"^\| `layer1.0.conv1` \| Conv2d \| \S+ \| 10.0 \| 3.00 \| 10.0 \|$", text, re.M
    )
    assert "| `layer1.0.conv1.copy_in` | 1 | 64.0 | 10.0 |" in lines
    assert "| **all** | 2 | 128.0 | 20.0 |" in lines
    names = [line.split("`")[1] for line in lines[lines.index(head) :] if line.startswith("| `")]
    at = names.index("layer1.0.conv1")
    assert names[at - 1 : at + 2] == [
        "layer1.0.conv1.copy_in", "layer1.0.conv1", "layer1.0.conv1.copy_out",
    ]  # fmt: skip
    links = re.findall(r"\]\((\S+)\)", text)
    assert "resnet20/cuda_time.png" in links
    assert all((output.parent / link).exists() for link in links)
    assert "91.25% of the test pictures" in text
    assert "`examples/cifar/models.py:" in text
    tables = [line.count("|") for line in lines if line.startswith("|")]
    assert min(tables) > 2


def test_no_page_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, report, tmp_path)
    assert caught.value.code == 2
    assert "holds no JSON file of the study" in capsys.readouterr().err
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(SystemExit, match=r"broken\.json is no JSON"):
        run(monkeypatch, report, tmp_path)


def test_all(files: Path, tmp_path: Path) -> None:
    """The script goes through all modes, and leaves out what needs a GPU that is not there."""
    script = ROOT / "examples/resnet20_profile/all.sh"
    arguments = [files / "weights.npz", files, "2", tmp_path / "json", tmp_path / "page.md"]
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["sh", script, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    modes = study.MODES if tlc.cuda.is_available() else study.MODES[:1]
    text = (tmp_path / "page.md").read_text()
    assert re.findall(r"^\| `(\S+)` \| [\d,.]+ \| .* \| 2 \|$", text, re.MULTILINE) == [*modes]
    assert done.stderr.count("needs a GPU") == (0 if tlc.cuda.is_available() else 5)


@on_gpu
@pytest.mark.parametrize("profile", ["time", "memory"])
@pytest.mark.parametrize("mode", ["cuda", "first-conv-cuda"])
def test_on_a_gpu(
    mode: str, profile: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (f"--weights={files / 'weights.pth'}", f"--data={files}", "--trials=3")
    stem = tmp_path / "study"
    run(monkeypatch, program, *options, f"--mode={mode}", f"--profile={profile}", "--output", stem)
    content = json.loads(stem.with_suffix(".json").read_text())
    total = content["layers"]["total"]
    if mode == "first-conv-cuda":
        # out and back: three blocks each of 64, 32 and 16 KiB, of which two have larger inputs
        assert (total["copies"], total["copied"]) == (18, 1024 * (3 * 128 + 224 + 112))
    else:
        assert total["copies"] == 0
        assert content["layers"]["clock"] == "device"
    if profile == "memory":
        assert content["peaks"]["cuda:0"]["peak"] > content["peaks"]["cuda:0"]["before"]
        assert content["pool"]["reserved"] >= content["pool"]["allocated"] > 0


@on_gpu
def test_graph_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stem = tmp_path / "graph"
    run(monkeypatch, program, "--mode=cuda-graph", "--trials=20", f"--output={stem}")
    content = json.loads(stem.with_suffix(".json").read_text())
    assert content["largest_difference"] < 1e-4
    assert content["gain"] > 1


@pytest.mark.skipif(
    not os.environ.get(data.PLACE), reason=f"{data.PLACE} names no folder with CIFAR-10"
)
def test_a_photograph() -> None:
    x, name = picture(Path(os.environ[data.PLACE]))
    assert tuple(x.shape) == (1, 3, 32, 32)
    assert -2 < x.mean().item() < 2
    assert re.fullmatch(r"the first test picture, of class \d", name)
