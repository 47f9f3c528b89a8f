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


SHARED = """
import os
import tensorflow_lite_clone
from tensorflow_lite_clone.backends.numpy import loading, threads
from tensorflow_lite_clone.core.flags import flags

before, masks, flags.threads = os.sched_getaffinity(0), {}, 2
threads.parallel_for(lambda start, stop: masks.update({start: os.sched_getaffinity(0)}), 2, 1)
print(len(loading.blas_threads))
assert all([os.sched_getaffinity(i) == before - masks[0] for i in loading.blas_threads])
assert os.sched_getaffinity(0) == before
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads run where they like here")
def test_threads_of_blas_leave_the_callers_processor_once_work_was_shared() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    for first, settings, number in [("", "2", 1), ("import numpy", "2", 0), ("", "1", 0)]:
        clean = {name: x for name, x in os.environ.items() if not name.endswith("_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-c", first + SHARED], cwd=ROOT, capture_output=True, text=True,
            env={**clean, "OPENBLAS_NUM_THREADS": settings}, check=True,
        )  # fmt: skip
        assert int(done.stdout) in {0, number}  # none of a BLAS that is not NumPy's own
