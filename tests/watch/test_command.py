"""python -m tensorflow_lite_clone watch."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from tensorflow_lite_clone.dropin import run
from tensorflow_lite_clone.watch import Server, command
from tests.processes import running
from tests.tools.markdown import ROOT


@pytest.mark.parametrize("options", [(), ("--host", "0.0.0.0")])
def test_it_serves_until_it_is_interrupted(tmp_path, options):
    words = [sys.executable, "-m", "tensorflow_lite_clone", "watch", "runs", "--port", "0"]
    with running(
        [*words, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        said = process.stdout.readline() + process.stdout.readline()
        port = re.search(r"http://[\d.]+:(\d+)/", said)[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            assert b"Training runs" in answer.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert "runs is not there yet" in said
    assert process.returncode == 0
    assert errors.count("warning: everybody who reaches") == len(options) // 2
    assert "Traceback" not in errors


def test_a_port_that_is_taken(tmp_path, capsys):
    with Server(tmp_path, port=0) as server:
        port = str(server.server_address[1])
        assert command.main([str(tmp_path), "--port", port]) == 1
    assert f"port {port} is taken: choose another one with --port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--port", "99999"), "there is no port 99999"),
        (("--host", "192.0.2.1", "--port", "0"), "192.0.2.1 is no address of this machine"),
    ],
)
def test_watch_cannot_listen_reports_error(tmp_path, capsys, options, message):
    assert command.main([str(tmp_path), *options]) == 1
    assert message in capsys.readouterr().err


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "x").touch()
    with pytest.raises(SystemExit) as caught:
        command.main([str(tmp_path / "x")])
    assert caught.value.code == 2
    assert "is a file, expected a folder" in capsys.readouterr().err


def test_the_browser_is_opened_when_asked(tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    monkeypatch.setattr(Server, "serve_forever", lambda server: None)
    monkeypatch.chdir(tmp_path)
    assert run.main(["watch", ".", "--port", "0", "--no-browser"]) == 0
    assert opened == []
    assert run.main(["watch", ".", "--port", "0", "--open"]) == 0
    assert opened[0] in capsys.readouterr().out
