"""The device the tests run on: the environment's DEVICE, one of `cpu`, `strict`, `cuda`."""

from __future__ import annotations

import os

DEVICES = ("cpu", "strict", "cuda")
DEVICE = os.environ.get("DEVICE", "cpu")

if DEVICE not in DEVICES:
    raise ValueError(f"DEVICE is {DEVICE!r}, expected one of {', '.join(DEVICES)}")
