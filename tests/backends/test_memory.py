"""Memory that was freed is used again without the system's help."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import tensorflow_lite_clone as tlc

def step():
    x = tlc.ones(1 << 22)
    return [x + 1, x * 2, x - 3]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    step()
before = faults()
for _ in range(5):
    step()
print(faults() - before)
"""


def faults(**environment: str) -> int:
    """How many pages the system had to provide for steps that had been made before."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", SCRIPT]
    found = subprocess.run(command, env={**kept, **environment}, check=True, capture_output=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_pages_are_asked_for_once() -> None:
    assert faults() < 100
    assert faults(MALLOC_TRIM_THRESHOLD_="1000000") > 1000  # the environment's word counts
