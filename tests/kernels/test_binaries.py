"""Binaries of kernels, compiled without a GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy import binaries


@pytest.mark.parametrize("case", ["named", "read-only", "file", "memory"])
def test_where_binaries_lie(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder / "below"))
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    if case == "read-only":
        monkeypatch.setattr(os, "access", lambda path, how: False)
    elif case == "file":
        folder.write_text("no folder")
    elif case == "memory":
        monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    text = 'extern "C" __global__ void nothing() {}'
    path, name = binaries.binary(text, "nothing", "sm_90a")
    assert (path.parent == folder / "below") is (case == "named")
    assert name == "nothing"
    before = path.stat()
    monkeypatch.setattr(os, "access", lambda path, how: False)  # what lies there is still found
    assert binaries.binary(text, "nothing", "sm_90a") == (path, name)
    assert path.stat() == before
