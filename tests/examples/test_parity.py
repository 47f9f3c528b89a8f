"""The examples print the same losses under torch and under this package, seed for seed."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from parameterized import parameterized

from tensorflow_lite_clone.utils.runs import Reader
from tests.examples.against_torch import ROOT, copy_for_torch, run


class ParityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        copy_for_torch(cls.folder)

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
