"""The two sides of every comparison: PyTorch on the CPU, the framework on the device under test.

`SELF_CHECK=1` in the environment puts PyTorch on both sides: that checks the table and the suites.
"""

from __future__ import annotations

import importlib
import os
import warnings

import numpy as np
import torch

from tests.device import DEVICE

SELF_CHECK = bool(os.environ.get("SELF_CHECK"))
tlc = torch if SELF_CHECK else importlib.import_module("tensorflow_lite_clone")


class Side:
    """One framework: how host arrays become its tensors and back."""

    def __init__(self, module, device):
        self.module, self.device = module, device

    def tensor(self, array: np.ndarray, dtype: str):
        """A contiguous tensor with the array's values; bfloat16 is reached by a cast."""
        host = np.dtype("float32" if dtype == "bfloat16" else dtype)
        made = self.module.from_numpy(np.array(array, dtype=host, order="C"))
        if dtype == "bfloat16":
            made = made.to(self.module.bfloat16)
        return made if self.device == "cpu" else made.to(self.device)

    def empty(self, dtype: str):
        """No elements yet: for `out=`, which resizes it."""
        return self.module.empty(0, dtype=getattr(self.module, dtype), device=self.device)

    def is_tensor(self, value) -> bool:
        return isinstance(value, self.module.Tensor)

    def numpy(self, tensor) -> np.ndarray:
        """The tensor's values on the host, bfloat16 as float32."""
        if tensor.dtype == self.module.bfloat16:
            tensor = tensor.to(self.module.float32)
        # PyTorch has lazy conjugates and zeros, which only `force` resolves.
        return tensor.numpy(force=True) if self.module is torch else tensor.detach().cpu().numpy()

    def dtype(self, tensor) -> str:
        return str(tensor.dtype).rsplit(".", 1)[-1]

    def call(self, function, *args, **kwargs):
        """Call without advice (UserWarning), PyTorch without any warning: it is not under test."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Warning if self.module is torch else UserWarning)
            return function(*args, **kwargs)

    def run(self, op, args, kwargs):
        """Call the row's function."""
        return self.call(op.run, self.module, args, kwargs)


TORCH = Side(torch, "cpu")
OURS = Side(tlc, "cpu" if SELF_CHECK else DEVICE)
