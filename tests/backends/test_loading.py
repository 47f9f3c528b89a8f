"""How long threads of NumPy's BLAS wait for work is said while NumPy is loaded, and not after."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tools.markdown import ROOT

# What the environment says when NumPy is looked for, and afterwards.
PROBE = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))

sys.meta_path.insert(0, Watch())
{first}
import tensorflow_lite_clone
print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
"""


@pytest.mark.parametrize(("first", "settings", "expected"), [
    ("", {}, ["20", "None"]),
    ("import numpy", {}, ["None", "None"]),
    ("", {"OPENBLAS_THREAD_TIMEOUT": "24"}, ["24", "24"]),
    ("", {"GOTO_THREAD_TIMEOUT": "24"}, ["None", "None"]),
])  # fmt: skip
def test_blas_is_told_while_numpy_is_loaded(
    first: str, settings: dict[str, str], expected: list[str]
) -> None:
    clean = {name: x for name, x in os.environ.items() if not name.endswith("_THREAD_TIMEOUT")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(first=first)],
        cwd=ROOT, env={**clean, **settings}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == expected
