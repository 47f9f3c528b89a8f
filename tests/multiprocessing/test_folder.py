"""Temporary folders vanish with their process, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tensorflow_lite_clone.multiprocessing._folder import TemporaryFolder
from tests.processes import running
from tests.tools.markdown import ROOT

OWNER = """
import os, sys, time
from tensorflow_lite_clone.multiprocessing._folder import TemporaryFolder
folder = TemporaryFolder("owned-")
open(os.path.join(folder.path, "file"), "w").close()
print(folder.path, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("sign", ["SIGKILL", "SIGTERM"])
def test_a_killed_process_leaves_no_folder(tmp_path, sign):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", OWNER]
    with running(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        path = process.stdout.readline().strip()
        assert os.listdir(path) == ["file"]
        process.send_signal(signal.Signals[sign])
        process.wait()
    deadline = time.monotonic() + 20
    while os.path.exists(path):
        assert time.monotonic() < deadline, "the folder is still there"
        time.sleep(0.01)


def test_a_closed_folder_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = TemporaryFolder("owned-")
    assert os.path.isdir(folder.path)
    folder.close()
    assert os.listdir(tmp_path) == []
