"""The same numbers in both libraries on any device, whose generators would draw others."""

from __future__ import annotations

import numpy as np


def normal(lib, *shape, seed=0):
    """A float32 tensor of normal numbers."""
    return lib.tensor(np.random.default_rng(seed).standard_normal(shape, np.float32))


def filled(lib, module, seed=0):
    """The module with normal numbers, a third of the usual size, as its parameters."""
    with lib.no_grad():
        for number, p in enumerate(module.parameters()):
            p.copy_(normal(lib, *p.shape, seed=(seed, number)) / 3)
    return module
