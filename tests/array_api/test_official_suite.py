"""The official suite of the array API standard, where a checkout of it is at hand.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    ARRAY_API_TESTS=array-api-tests python -m pytest tests/array_api/test_official_suite.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = "ARRAY_API_TESTS"
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(HOME not in os.environ, reason=f"{HOME} names no checkout of array-api-tests")
@pytest.mark.timeout(3600)
def test_official_suite() -> None:
    """All of it passes, extensions included; nothing is skipped or expected to fail."""
    checkout = Path(os.environ[HOME]).resolve()
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "tensorflow_lite_clone.array_api",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    run = subprocess.run(
        [*command, "--max-examples", "20", "--disable-deadline", "array_api_tests"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
