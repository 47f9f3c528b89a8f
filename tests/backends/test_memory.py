"""Memory that arrays leave is found by the next ones, unless the environment says otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from tests.tools.markdown import ROOT

glibc = platform.libc_ver()[0] == "glibc"
# Six arrays of 2 MiB live at once, again and again; the pages that the later rounds touch anew.
PROBE = """
import resource
import tensorflow_lite_clone as torch

def faults():
    arrays = [torch.ones(1 << 19) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

first = [faults() for _ in range(3)][-1]
print([faults() for _ in range(20)][-1] - first)
"""


def pages(**settings: str) -> int:
    """Pages that the probe takes from the system."""
    clean = {name: x for name, x in os.environ.items() if not name.startswith(("MALLOC", "GLIBC"))}
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=ROOT, env={**clean, **settings}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.skipif(not glibc, reason="another C library than glibc")
def test_memory_is_kept() -> None:
    assert pages() < 500


@pytest.mark.skipif(not glibc, reason="another C library than glibc")
def test_the_environment_has_the_last_word() -> None:
    assert pages(MALLOC_TRIM_THRESHOLD_="0", MALLOC_MMAP_THRESHOLD_="65536") > 5000
