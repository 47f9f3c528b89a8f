"""The device the tests run on: the environment's DEVICE, one of `cpu`, `strict`, `cuda`.

With DEVICE=numba it is the CPU with the kernels that Numba compiles, which others run without.
"""

from __future__ import annotations

import os

DEVICES = ("cpu", "strict", "cuda", "numba")
DEVICE = os.environ.get("DEVICE", "cpu")

if DEVICE not in DEVICES:
    raise ValueError(f"DEVICE is {DEVICE!r}, expected one of {', '.join(DEVICES)}")
ACCELERATED = DEVICE == "numba"
if ACCELERATED:
    DEVICE = "cpu"
