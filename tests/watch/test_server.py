"""The server of the live view: what it tells, and whom and what it refuses."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils import runs
from tensorflow_lite_clone.watch import server as module
from tests.watch.serving import ask, news, serving


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0)
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "runs"
    with runs.SummaryWriter(folder / "a", max_queue=1) as writer:
        writer.add_scalar("loss", float("nan"), 1, walltime=5.0)
        writer.add_image("picture", tlc.zeros(3, 2, 2), 1)
        with serving(folder) as server:
            yield server, writer


def test_news(served):
    server, writer = served
    first = news(server)
    assert first["events"][0] == ["a", "scalar", "loss", 1, 5.0, "NaN"]
    assert first["events"][1][1:3] == ["image", "picture"]
    assert first["events"][1][5] is None  # asked for by its number
    assert (first["since"], first["more"], first["problems"]) == (0, False, [])
    generation = first["generation"]
    assert news(server, generation, 2)["events"] == []
    writer.add_scalar("loss", 0.5, 2, walltime=6.0)
    later = news(server, generation, 2)
    assert later["events"] == [["a", "scalar", "loss", 2, 6.0, 0.5]]
    assert later["generation"] == generation
    # A page that an earlier server has filled gets everything.
    assert len(news(server, "another.0", 2)["events"]) == 3


def test_many_events_come_in_parts(served, monkeypatch):
    server, writer = served
    monkeypatch.setattr(module, "AT_ONCE", 10)
    for step in range(30):
        writer.add_scalar("more", step, step)
    generation, count, parts = "", 0, []
    while True:
        part = news(server, generation, count)
        generation, count = part["generation"], part["since"] + len(part["events"])
        parts.append(len(part["events"]))
        if not part["more"]:
            break
    assert parts == [10, 10, 10, 2]


def test_a_value(served):
    server, _ = served
    generation = news(server)["generation"]
    status, headers, content = ask(server, f"/value?generation={generation}&number=1")
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert json.loads(content)["type"] == "image/png"


def test_a_value_that_is_gone(served):
    server, _ = served
    generation = news(server)["generation"]
    (path,) = (Path(server.reader.folder) / "a").iterdir()
    path.write_text("")
    assert ask(server, f"/value?generation={generation}&number=1")[0] == 410
    assert news(server, generation, 2)["events"] == []
    assert ask(server, f"/value?generation={generation}&number=1")[0] == 410


def test_the_page_is_whole_and_asks_for_nothing_elsewhere(served):
    server, _ = served
    assert set(module.FILES.values()) >= {(name, "text/javascript") for name in ("page.js",)}
    names = {name for name, _ in module.FILES.values()}
    assert names == {path.name for path in module.PAGE.iterdir()}
    for path, (name, kind) in module.FILES.items():
        status, headers, content = ask(server, path)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert content == (module.PAGE / name).read_bytes()
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in text.replace("// ", "").replace("// --", ""), name
        assert len(text.splitlines()) < 500
        for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, name


def test_headers(served):
    server, _ = served
    _, headers, _ = ask(server, "/")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//secret.txt", "/a",
        "/page/page.js", "/../server.py", "/page.js/../../server.py", "/secret.txt", "/%00",
        "/value/../../secret.txt", "file:///etc/passwd", "/news/", "/a/../page.html",
    ],
)  # fmt: skip
def test_other_paths_lead_nowhere(served, path):
    status, _, content = ask(served[0], path)
    assert status == 404
    assert content == b"there is no such page\n"


@pytest.mark.parametrize(
    "query",
    ["", "?since=", "?since=-1", "?since=1.5", "?since=x", "?since=%C2%B2", "?since=" + "9" * 99],
)
def test_a_bad_query(served, query):
    status, _, content = ask(served[0], "/news" + query)
    assert status == 400
    assert b"expected a number" in content


def test_a_number_without_an_event(served):
    server, _ = served
    generation = news(server)["generation"]
    assert ask(server, f"/value?generation={generation}&number=2")[0] == 404
    assert ask(server, f"/value?generation={generation}")[0] == 400
    assert ask(server, "/value?generation=x&number=0")[0] == 410
    assert news(server, generation, 10**9)["events"] == []


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:80", 200), ("127.0.0.1:6006", 200), ("[::1]:1", 200),
        ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403),
        ("192.0.2.1", 403), ("", 403), (None, 403), ("[", 403), (":80", 403),
    ],
)  # fmt: skip
def test_only_this_machine_is_the_host(served, host, status):
    for path in ("/", "/news?since=0", "/value?number=0"):
        seen = ask(served[0], path, host)[0]
        assert (seen == 403) is (status == 403), path


def test_the_host_of_a_server_for_others(tmp_path):
    with serving(tmp_path, "0.0.0.0") as server:
        for host, status in (
            (socket.gethostname(), 200),
            ("192.0.2.1", 200),
            ("evil.example", 403),
        ):
            assert ask(server, "/", host)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(served, method):
    assert ask(served[0], "/news?since=0", method=method)[0] == 501


def test_head(served):
    status, headers, content = ask(served[0], "/", method="HEAD")
    assert (status, content) == (200, b"")
    assert int(headers["Content-Length"]) > 100


def test_a_browser_that_goes_away(served, capsys):
    server, writer = served
    writer.add_text("long", "x" * 5_000_000)
    generation = news(server)["generation"]
    with socket.create_connection(server.server_address[:2]) as connection:
        request = f"GET /value?generation={generation}&number=2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.sendall(request.encode())
        connection.recv(10)
    time.sleep(0.1)
    assert news(server)["problems"] == []
    assert capsys.readouterr().err == ""
