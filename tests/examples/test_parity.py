"""The examples print the same losses under torch and under this package, seed for seed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from parameterized import parameterized

from tensorflow_lite_clone.utils.runs import Reader
from tests.examples.both import OURS, ROOT


def run(folder: Path, module: str, *options: str) -> str:
    """What an example prints, run from `folder` with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", module, *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class ParityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        shutil.copytree(
            ROOT / "examples", cls.folder / "examples", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.rmtree(cls.folder / "examples" / "custom_kernel")  # it registers an op of its own
        for path in (cls.folder / "examples").rglob("*.py"):
            text = path.read_text()
            # the first import is the only line that differs
            path.write_text(text.replace(OURS, "import torch\n"))
            assert "tensorflow_lite_clone" not in path.read_text(), path

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_xor(self):
        """Five digits over 5,000 steps."""
        ours, theirs = (
            [float(loss) for loss in re.findall(r"loss (\S+)", run(folder, "examples.xor"))]
            for folder in (ROOT, self.folder)
        )
        assert len(ours) == 10
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
        assert ours[-1] < 1e-3

    @parameterized.expand(["cnn", "mlp", "vit"])
    @pytest.mark.timeout(300)
    def test_mnist(self, name):
        """200 steps with the default settings, dropout and shuffling included; one is watched."""
        losses = []
        runs = [self.folder / f"runs{number}" for number in range(2)]
        for number, folder in enumerate((ROOT, self.folder)):
            log = self.folder / f"{name}{number}"
            run(
                folder,
                f"examples.mnist.{name}.train",
                "--max_steps=200",
                f"--log={log}",
                f"--output={self.folder}",
                *([f"--logdir={runs[number]}"] if name == "mlp" else []),
            )
            losses.append(np.loadtxt(log))
        assert losses[0].shape == (200,)
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
        assert losses[0][-20:].mean() < 0.9 * losses[0][:20].mean()
        if name == "mlp":
            self.check_what_was_logged(*runs, losses[0])

    def check_what_was_logged(self, ours, theirs, losses):
        """By us as JSON lines, under torch as TensorBoard's files."""
        assert list(theirs.rglob("*tfevents*"))
        reader = Reader(ours)
        reader.poll()
        (curves,) = reader.scalars().values()
        assert [step for step, _ in curves["loss/train"]] == list(range(1, 201))
        np.testing.assert_allclose([y for _, y in curves["loss/train"]], losses, atol=1e-7)
        assert len(curves["learning rate"]) == 200
        assert [step for step, _ in curves["gradient norm/out.weight"]] == list(range(20, 201, 20))
        assert {"throughput/digits per second", "accuracy/test", "final accuracy"} <= curves.keys()
        assert {event.kind for event in reader.events} >= {"scalar", "histogram", "hparams"}
