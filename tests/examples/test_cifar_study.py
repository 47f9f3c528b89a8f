"""The CIFAR-10 study: its programs train alike, on parts of the same batches, and say how."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from examples.cifar import baseline, data, ddp, fsdp, loading, modelpar, scaling, study, table
from examples.cifar.models import StudyNet
from examples.cifar.step import Captured
from examples.world import World, alone
from tests.device import DEVICE
from tests.distributed.process_groups import gpu_world, world
from tests.examples.against_torch import ROOT, run
from tests.examples.pictures import write_cifar10

BATCH = 8
CPU = tlc.device("cpu")

STEPS = 5
LAUNCHER = ("tensorflow_lite_clone.distributed.run", "--nproc_per_node=2", "-m")
KIND = "cuda" if DEVICE == "cuda" else "cpu"
QUICK = (f"--device={KIND}", f"--batch_size={BATCH}", "--epochs=1", "--workers=0", "--width=8")
CLOSE = 1e-2 if DEVICE == "cuda" else 1e-4  # kernels of other shapes sum in another order
needs_gpus = pytest.mark.skipif(
    DEVICE == "cuda" and tlc.cuda.device_count() < 2, reason="two GPUs are needed"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cifar")
    write_cifar10(folder)
    return folder


def options_of(place: Path, *more: str) -> Any:
    """The options that a program would parse."""
    arguments = [f"--data={place}", *QUICK, f"--max_steps={STEPS}", *more]
    return study.with_graph(study.parser(None)).parse_args(arguments)


def results_of(rank: int, size: int, name: str, place: Path, *more: str) -> study.Result:
    """What a program of several processes measures, in a process of a test's world."""
    tlc.backends.cudnn.allow_tf32 = False  # as in the tests' own process
    options = options_of(place, *more)
    here = World(rank, size, tlc.device("cuda", rank) if KIND == "cuda" else CPU)
    model = study.network(options)
    if "--norm=none" not in more:
        model = tlc.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if name == "ddp":
        model = ddp.copied(model, here)
    else:
        model = fsdp.sharded(model.to(here.device))
    return study.run(name, model, here, options)


@cache
def one_process(place: Path, *more: str) -> study.Result:
    options = options_of(place, *more)
    here = alone(KIND)
    return study.run("baseline", study.network(options).to(here.device), here, options)


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
@pytest.mark.parametrize("norm", ["none", "batch"])
def test_two_processes_train_as_one(name: str, norm: str, place: Path) -> None:
    """The mean of their losses is that of one process, which looks at both parts of each batch;
    with statistics of the whole batch, or with none."""
    processes = gpu_world(2) if KIND == "cuda" else world(2)
    results = processes.run(results_of, name, place, f"--norm={norm}")
    wanted = one_process(place, f"--norm={norm}")
    assert len(wanted.losses) == STEPS
    for result in results:
        np.testing.assert_allclose(result.losses, wanted.losses, rtol=CLOSE)
        assert result.accuracies == results[0].accuracies
        assert result.processes == 2
        assert len(result.peak_memory) == (2 if KIND == "cuda" else 0)


@needs_gpus
@pytest.mark.parametrize("parts", [1, 2])
def test_a_network_in_two_parts_trains_as_one(parts: int, place: Path) -> None:
    """Parts of batches change no sums, without layers that look at a whole batch."""
    options = options_of(place, "--norm=none")
    first, second = modelpar.places(KIND)
    model = modelpar.Split(study.network(options), first, second, parts)
    result = study.run("modelpar", model, alone(str(first)), options, labels_to=second)
    wanted = one_process(place, "--norm=none")
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=CLOSE)


def test_parts_of_a_batch_are_pipelined() -> None:
    """The first part of the network sees the second piece before the second part is done."""
    calls = []
    model = modelpar.Split(StudyNet(width=4), CPU, CPU, 3)
    for name in ("front", "back"):
        getattr(model, name).register_forward_hook(
            lambda module, inputs, outputs, name=name: calls.append((name, len(inputs[0])))
        )
    images = tlc.randn(5, 3, 32, 32)
    model.eval()
    answers = model(images)
    assert calls == [
        ("front", 2), ("back", 2), ("front", 2), ("back", 2), ("front", 1), ("back", 1)
    ]  # fmt: skip
    np.testing.assert_allclose(
        answers.detach().numpy(), model.back(model.front(images)).detach().numpy(), atol=1e-4
    )


def test_all_processes_read_all_pictures_once(place: Path) -> None:
    """Whatever their number, their parts of a batch make up the same one, in another order each
    epoch."""
    photographs = loading.read(place, True, 22)
    photographs.labels = tlc.arange(22)
    seen = {}
    for size in (1, 2, 4):
        parts = [
            loading.Training(photographs, BATCH, World(rank, size, CPU), seed=3, workers=0)
            for rank in range(size)
        ]
        for epoch in (0, 1):
            for part in parts:
                part.set_epoch(epoch)
                assert len(part) == 2
            batches = [
                sorted(label for _, labels in batch for label in labels.tolist())
                for batch in zip(*parts, strict=True)
            ]
            assert seen.setdefault(epoch, batches) == batches
    assert len({label for batch in seen[0] for label in batch}) == 2 * BATCH
    assert seen[0] != seen[1]
    with pytest.raises(ValueError, match="a batch of 8 for 3 processes"):
        loading.Training(photographs, BATCH, World(0, 3, CPU), seed=0, workers=0)


def test_pictures_are_moved_and_mirrored(place: Path) -> None:
    """By as much as the margin around them allows."""
    still, moving = loading.read(place, True, 8), loading.read(place, True, 8, augment=True)
    tlc.manual_seed(0)
    pixels, labels = moving.__getitems__([3] * 40)
    assert (pixels.dtype, tuple(pixels.shape)) == (tlc.uint8, (40, 32, 32, 3))
    assert labels.tolist() == [still.labels[3].item()] * 40
    margin = np.pad(still.pixels[3].numpy(), ((4, 4), (4, 4), (0, 0)))
    crops = [margin[y : y + 32, x : x + 32] for y in range(9) for x in range(9)]
    allowed = {picture.tobytes() for crop in crops for picture in (crop, crop[:, ::-1])}
    got = {picture.tobytes() for picture in pixels.numpy()}
    assert got <= allowed
    assert len(got) > 20


def test_the_network_of_the_study() -> None:
    model = StudyNet()
    layers = [m for m in model.modules() if isinstance(m, tlc.nn.Conv2d | tlc.nn.Linear)]
    assert len([m for m in layers if getattr(m, "kernel_size", None) != (1, 1)]) == 14
    sizes = []
    for name in ("stem", "layer1", "layer2", "layer3", "head"):
        getattr(model, name).register_forward_hook(
            lambda module, inputs, outputs: sizes.append(tuple(outputs.shape[1:]))
        )
    model.eval()(tlc.zeros(1, 3, 32, 32))
    assert sizes == [(64, 16, 16), (128, 16, 16), (256, 8, 8), (512, 4, 4), (10,)]


def test_a_step_is_captured_after_it_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device that has graphs; here one that counts."""
    events: list[str] = []

    class Graph:
        def replay(self) -> None:
            events.append("replay")

    class Capture:
        def __init__(self, graph: Graph) -> None:
            pass

        def __enter__(self) -> None:
            events.append("capture")

        def __exit__(self, *exception: object) -> None:
            pass

    monkeypatch.setattr(tlc.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(tlc.cuda, "graph", Capture)
    monkeypatch.setattr("examples.cifar.step.WARMUP", 2)
    total = tlc.zeros(())
    step = Captured(lambda x, y: events.append("step") or total.add_(x.sum()), CPU)
    losses = [step(tlc.full((2,), float(value)), tlc.zeros(2)) for value in range(5)]
    assert events == ["step", "step", "capture", "step", "replay", "replay", "replay"]
    assert step.images.tolist() == [4.0, 4.0]  # what the last replay reads
    assert losses[3] is not losses[4]


@needs_gpus
@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_launched(name: str, place: Path, tmp_path: Path) -> None:
    """Rank 0 alone prints, and writes what the table is made of."""
    log = tmp_path / "log.json"
    options = (f"--data={place}", *QUICK, "--max_steps=1", f"--json={log}")
    printed = run(ROOT, *LAUNCHER, f"examples.cifar.{name}", *options)
    assert len(re.findall(r"epoch  1  loss \d\.\d{4}  test accuracy \d+\.\d\d%", printed)) == 1
    found = json.loads(log.read_text())
    assert (found["program"], found["processes"]) == (name, 2)
    assert len(found["losses"]) == len(found["seconds"]) == len(found["accuracies"]) == 1
    assert table.table([found]) in printed


@needs_gpus
@pytest.mark.parametrize("graph", [(), ("--graph",)])
def test_scaling(graph: tuple[str, ...], tmp_path: Path) -> None:
    if graph and KIND != "cuda":
        pytest.skip("graphs are of CUDA devices")
    log = tmp_path / "log.json"
    options = (
        f"--device={KIND}",
        "--batch_size=4",
        "--width=8",
        "--steps=2",
        f"--json={log}",
        *graph,
    )
    printed = run(ROOT, *LAUNCHER, "examples.cifar.scaling", *options)
    rows = json.loads(log.read_text())["rows"]
    assert [(row["scaling"], row["processes"], row["batch"]) for row in rows] == [
        ("weak", 1, 4), ("weak", 2, 4), ("strong", 2, 2)
    ]  # fmt: skip
    for row in rows:
        rate = 1e3 * row["processes"] * row["batch"] / row["milliseconds"]
        assert row["pictures_per_second"] == pytest.approx(rate)
        assert row["efficiency"] == pytest.approx(
            rate / row["processes"] / rows[0]["pictures_per_second"]
        )
    assert printed.count("efficiency") == 3


@needs_gpus
def test_programs_of_one_process(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What they print, with all options; a line of the table for each log."""
    logs = []
    for program, more in ((baseline, ("--augment",)), (modelpar, ("--pipeline=2", "--decay"))):
        logs.append(tmp_path / f"{program.__name__}.json")
        arguments = [f"--data={place}", *QUICK, "--max_steps=2", f"--log={logs[-1]}", *more]
        monkeypatch.setattr(sys, "argv", ["program", *arguments, "--dtype=bfloat16"])
        program.main()
    monkeypatch.setattr(sys, "argv", ["table", *map(str, logs)])
    capsys.readouterr()
    table.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| program ")
    assert "| test accuracy |" in lines[0]
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["baseline", "modelpar, 2 parts"]
    assert len(set(map(len, lines))) == 1


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (baseline, (), "give its folder as --data or in the variable CIFAR10_DATA"),
        (baseline, ("--data=nowhere",), "nowhere has no folder cifar-10-batches-py"),
        (baseline, ("--graph",), "--graph needs --device cuda"),
        (scaling, (), "no launcher started this process; start it by: python -m tensorflow"),
    ],
)
def test_refused(
    program: Any,
    options: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in (data.PLACE, "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "argv", ["program", *options])
    with pytest.raises(SystemExit) as caught:
        program.main()
    assert message in capsys.readouterr().err + str(caught.value)
