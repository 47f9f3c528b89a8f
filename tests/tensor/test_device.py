"""Devices that are not there."""

from __future__ import annotations

import unittest

import tensorflow_lite_clone as tlc


class MissingDeviceTest(unittest.TestCase):
    def test_cuda_is_asked_for_and_refused(self):
        if tlc.cuda.is_available():
            self.skipTest("there is a CUDA device")
        assert tlc.cuda.device_count() == 0
        x = tlc.ones(2)
        for use in (x.cuda, lambda: x.to("cuda:0"), lambda: tlc.zeros(2, device="cuda")):
            with self.assertRaisesRegex(RuntimeError, "cuda12|No CUDA GPUs") as caught:
                use()
            assert isinstance(caught.exception, AssertionError)  # as of PyTorch without CUDA
            first, *rest = str(caught.exception).splitlines()
            assert not rest or first == "Torch not compiled with CUDA enabled"

    def test_unknown(self):
        with self.assertRaisesRegex(RuntimeError, "Expected one of"):
            tlc.zeros(2, device="tpu")
