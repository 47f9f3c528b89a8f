"""The MNIST examples: weights to and fro, what a training takes, and several processes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from examples.mnist import usage
from examples.mnist.distributed import train
from examples.world import own_device
from tests.device import DEVICE
from tests.distributed.mpi_process_groups import OPTIONS, launcher
from tests.examples.against_torch import ROOT, run

KIND = "cuda" if DEVICE == "cuda" else "cpu"
LAUNCHER = ("tensorflow_lite_clone.distributed.run", "--nproc_per_node=2", "-m")
SMALL = ("--truncate_train=320", "--truncate_test=101", "--epochs=2", "--model=mlp")
PROGRAM = "examples.mnist.distributed.train"
needs_gpus = pytest.mark.skipif(
    DEVICE == "cuda" and tlc.cuda.device_count() < 2, reason="two GPUs are needed"
)


@pytest.mark.parametrize("model", ["cnn", "mlp"])
def test_saved_and_evaluated(model: str, tmp_path: Path) -> None:
    """The weights in the file name as many digits as those that were trained."""
    path = tmp_path / "new" / "weights.pth"
    module, device = f"examples.mnist.{model}.train", f"--device={KIND}"
    small = ("--truncate_train=640", "--truncate_test=200", device)
    printed = run(ROOT, module, *small, "--epochs=1", f"--save={path}", f"--output={tmp_path}")
    (score,) = re.findall(r"^test accuracy (.*)$", printed, re.MULTILINE)
    assert re.search(r"^\d+\.\d\d s an epoch", printed, re.MULTILINE)
    assert ("peak memory" in printed) == (KIND == "cuda")
    assert run(ROOT, module, *small, f"--load={path}", "--evaluate") == f"test accuracy {score}\n"


def test_share_of_time_that_a_gpu_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the driver's tool says of the GPU on this bus; unknown where there is none."""
    answers = SimpleNamespace(stdout="00000000:19:00.0, 3\n00000000:4F:00.0, 87\n")
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: answers)
    properties = SimpleNamespace(pci_bus_id=0x4F)
    monkeypatch.setattr(tlc.cuda, "get_device_properties", lambda device: properties)
    assert usage.busy("cuda:1") == 87.0
    answers.stdout = "00000000:4F:00.0, [N/A]\n"
    assert usage.busy("cuda:1") is None

    def missing(*command: object, **options: object) -> None:
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(subprocess, "run", missing)
    assert usage.busy("cuda") is None


def test_usage_of_a_gpu_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tlc.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(tlc.cuda, "max_memory_allocated", lambda device: 3 * 2**20)
    samples = iter([20.0, 60.0])
    monkeypatch.setattr(usage, "busy", lambda device: next(samples, None))
    monkeypatch.setattr(usage, "INTERVAL", 0.001)
    with usage.Usage("cuda:0") as measured:
        measured.seconds += [2.0, 1.0, 1.5]
        measured._thread.join()  # which ends when nothing is known any more
    assert str(measured) == "1.50 s an epoch, peak memory 3 MiB, GPU busy: 40 %"
    measured.samples.clear()
    assert str(measured).endswith("GPU busy: unknown")


def test_share_of_time_within_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 100))

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            self.at = -1

        def record(self) -> None:
            self.at = next(now)

        def elapsed_time(self, end: Event) -> int:
            return end.at - self.at

    monkeypatch.setattr(tlc.cuda, "Event", Event)
    measured = usage.Usage("cuda")
    step = measured.timed(lambda x, y: x + y)
    assert [step(1, 2), step(3, 4)] == [3, 7]
    measured.end_epoch(0.25)
    step(5, 6)
    measured.end_epoch(0.2)
    step(7, 8)
    measured.end_epoch(0.125)
    assert str(measured).startswith("0.20 s an epoch")
    assert str(measured).endswith("GPU busy: unknown, within steps: 80 %")  # of 80, 50 and 80
    plain = usage.Usage("cpu")
    assert plain.timed(step) is step


@needs_gpus
def test_two_processes_by_the_launcher(tmp_path: Path) -> None:
    """One prints; losses are means over both; the first one's file is what all go on with."""
    path, log = tmp_path / "weights.pth", tmp_path / "losses"
    device = f"--device={KIND}"
    printed = run(ROOT, *LAUNCHER, PROGRAM, *SMALL, device, f"--save={path}", f"--losses={log}")
    check(printed, log)
    assert "2 processes: " in printed
    assert f"weights: {path}\n" in printed
    (score,) = re.findall(r"^test accuracy (.*)$", printed, re.MULTILINE)
    module = "examples.mnist.mlp.train"
    again = run(ROOT, module, SMALL[1], f"--load={path}", "--evaluate")
    if KIND == "cpu":
        assert again == f"test accuracy {score}\n"


@pytest.mark.skipif(DEVICE != "cpu", reason="MPI is for CPUs")
@pytest.mark.skipif(launcher() is None, reason="there is no mpirun")
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_two_processes_by_mpirun(tmp_path: Path) -> None:
    log = tmp_path / "losses"
    command = [launcher(), *OPTIONS, "-n", "2", sys.executable, "-m", PROGRAM, "--backend=mpi"]
    done = subprocess.run(
        [*command, *SMALL, f"--log={log}"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, log)


def check(printed: str, log: Path) -> None:
    """What was learnt, and that one process said so."""
    scores = re.findall(r"epoch  \d  loss \d\.\d{4}  test accuracy (\d+)\.\d\d%", printed)
    assert len(scores) == 2
    losses = np.loadtxt(log)
    assert losses.shape == (20,)
    assert losses[-5:].mean() < 0.8 * losses[:5].mean()


def test_a_process_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the launcher's number or by mpirun's; the one there is, without either."""
    current = []
    monkeypatch.setattr(tlc.cuda, "set_device", current.append)
    monkeypatch.setattr(tlc.cuda, "device_count", lambda: 2)
    for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
        monkeypatch.delenv(name, raising=False)
    assert own_device("cuda") == tlc.device("cuda", 0)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1")
    assert own_device("cuda") == tlc.device("cuda", 1)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(SystemExit, match="process 2 of this machine has no GPU: there are 2"):
        own_device("cuda")
    assert own_device("cpu") == tlc.device("cpu")
    assert current == [0, 1]


def test_uneven_batches_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each process has its part of a batch."""
    monkeypatch.setattr(sys, "argv", ["train", "--batch_size=33"])

    class Joined:
        def __enter__(self) -> SimpleNamespace:
            return SimpleNamespace(size=2)

        def __exit__(self, *exception: object) -> None:
            pass

    monkeypatch.setattr(train, "joined", lambda device, backend: Joined())
    with pytest.raises(SystemExit):
        train.main()
    assert "--batch_size 33 for 2 processes" in capsys.readouterr().err
