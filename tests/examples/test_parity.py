"""The examples print the same losses under torch and under this package, seed for seed."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from parameterized import parameterized

from tests.examples.both import ROOT, copy_for_torch, run


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
        """200 steps with the default settings, dropout and shuffling included."""
        losses = []
        for number, folder in enumerate((ROOT, self.folder)):
            log = self.folder / f"{name}{number}"
            run(
                folder,
                f"examples.mnist.{name}.train",
                "--max_steps=200",
                f"--log={log}",
                f"--output={self.folder}",
            )
            losses.append(np.loadtxt(log))
        assert losses[0].shape == (200,)
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
        assert losses[0][-20:].mean() < 0.9 * losses[0][:20].mean()
