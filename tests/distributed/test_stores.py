"""Stores give and wait for keys as PyTorch's do, over sockets, files and in memory."""

from __future__ import annotations

import gc
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import timedelta

import pytest
import torch
import torch.distributed  # noqa: F401

import tensorflow_lite_clone.distributed as dist
from tensorflow_lite_clone.distributed.tcp_store import HELLO, LARGEST
from tests.processes import running
from tests.tools.markdown import ROOT

SHORT = timedelta(milliseconds=60)
KINDS = ("HashStore", "FileStore", "TCPStore", "PrefixStore")


def made(kind, lib=dist, path="", timeout=SHORT):
    if kind == "TCPStore":
        store = lib.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=20))
    elif kind == "FileStore":
        store = lib.FileStore(str(path), 1)
    elif kind == "PrefixStore":
        store = lib.PrefixStore("a", lib.PrefixStore("b", lib.HashStore()))
    else:
        store = lib.HashStore()
    store.set_timeout(timeout)
    return store


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return made(request.param, path=tmp_path / "store")


def use(store):
    """What all operations give."""
    store.set("text", "a")
    store.set("bytes", b"\x00\xff")
    store.append("text", "bc")
    store.append("new", b"x")
    store.multi_set(["one", "two"], ["1", b"2"])
    found = [
        store.get("text"), store.get("bytes"), store.get("new"), store.multi_get(["two", "one"]),
        store.add("sum", 2), store.add("sum", -5), store.get("sum"), store.add("one", 2**40),
        store.compare_set("set", "", "first"), store.compare_set("set", "wrong", "no"),
        store.compare_set("set", "first", "second"), store.compare_set("none", "some", "no"),
        store.check(["text", "sum"]), store.check(["text", "none"]), store.check([]),
        store.wait(["text", "set"]), store.wait(["text"], SHORT), store.wait([]),
        store.delete_key("text"), store.check(["text"]), sorted(store.list_keys()),
        store.timeout == SHORT, store.has_extended_api(),
    ]  # fmt: skip
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_operations(kind, tmp_path):
    ours = use(made(kind, path=tmp_path / "ours"))
    assert ours == use(made("HashStore", torch.distributed))
    assert len(ours) == 23


def test_keys_are_counted(store):
    before = store.num_keys()
    store.set("a", "")
    store.set("a", "b")
    store.set("b", "")
    assert store.num_keys() == before + 2
    assert store.delete_key("b") and not store.delete_key("b")
    assert store.num_keys() == before + 1


def test_store_wait_timeout_names_missing_keys(store):
    store.set("there", "")
    began = time.monotonic()
    with pytest.raises(dist.DistStoreError):
        store.wait(["x"])
    assert time.monotonic() - began > 0.05
    for ask in (
        lambda: store.wait(["there", "x", "y"]),
        lambda: store.multi_get(["x", "there", "y"]),
        lambda: store.wait(["x", "y"], SHORT / 2),
        lambda: store.get("y"),
        lambda: store.wait(["y"], timedelta(0)),
    ):
        began = time.monotonic()
        with pytest.raises(dist.DistStoreError, match=r"timeout after \d+ms, keys: .*y") as caught:
            ask()
        assert "there" not in str(caught.value)
        assert time.monotonic() - began < 5


def test_store_set_wakes_waiters(store):
    store.set_timeout(timedelta(seconds=20))
    with ThreadPoolExecutor(3) as threads:
        got = [threads.submit(store.get, "late") for _ in range(2)]
        waited = threads.submit(store.wait, ["late", "later"], timedelta(seconds=20))
        time.sleep(0.02)
        store.set("late", "now")
        assert [each.result() for each in got] == [b"now"] * 2
        assert not waited.done()
        store.add("later", 1)
        waited.result()


def test_threads_share_a_store(store):
    store.set_timeout(timedelta(seconds=20))

    def count(thread):
        return [store.add("sum", 1) for _ in range(25)]

    with ThreadPoolExecutor(4) as threads:
        found = [number for each in threads.map(count, range(4)) for number in each]
    assert sorted(found) == list(range(1, 101))


@pytest.mark.parametrize("wrong", [lambda s: s.set("a", 1), lambda s: s.set(1, "a"),
                                   lambda s: s.get(3), lambda s: s.set_timeout(3),
                                   lambda s: s.append("a", None)])  # fmt: skip
def test_wrong_types(wrong, store):
    with pytest.raises(TypeError):
        wrong(store)
    with pytest.raises(TypeError):
        wrong(made("HashStore", torch.distributed))
    with pytest.raises(dist.DistStoreError, match="1 keys with 2 values"):
        store.multi_set(["a"], ["1", "2"])


def test_errors_are_those_of_pytorch():
    for name in ("DistError", "DistNetworkError", "DistStoreError", "DistBackendError"):
        ours, theirs = (getattr(lib, name) for lib in (dist, torch.distributed))
        assert [kind.__name__ for kind in ours.__mro__] == [k.__name__ for k in theirs.__mro__]


WORKER = """
import sys
from datetime import timedelta
from tensorflow_lite_clone.distributed import FileStore, TCPStore
path, port, rank, size = sys.argv[1], *map(int, sys.argv[2:])
minute = timedelta(seconds=60)
server = TCPStore("127.0.0.1", port, size, rank == 0, minute)
for store in FileStore(path, size), server:
    store.set_timeout(minute)
    for _ in range(20):
        store.add("sum", rank)
        store.append("log", str(rank))
    store.set(f"rank {rank}", str(rank) * 100000)
    values = store.multi_get([f"rank {other}" for other in range(size)])
    assert values == [str(other).encode() * 100000 for other in range(size)]
    if store.add("done", 1) == size:
        store.set("all", "")
    store.wait(["all"])
    print(store.add("sum", 0), store.get("log").count(str(rank).encode()))
if rank == 0:
    sys.stdin.read()  # the server ends with this process, which is to be the last one
"""


def test_processes_share_a_store(tmp_path):
    path = tmp_path / "store"
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(running(
                [sys.executable, "-c", WORKER, path, str(port), str(rank), "3"],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True,
            ))
            for rank in range(3)
        ]  # fmt: skip
        for worker in reversed(workers):
            out, err = worker.communicate(timeout=60)
            assert (out, err, worker.returncode) == ("60 20\n" * 2, "", 0)
    assert not path.exists()  # the last one removes it


def test_a_file_survives_a_writer_that_was_killed(tmp_path):
    path = tmp_path / "store"
    first = dist.FileStore(str(path))
    first.set("a", "1")
    with open(path, "ab") as file:
        file.write(struct.pack("<II", 4, 1000) + b"half")
    first.set("b", "2")
    second = dist.FileStore(str(path))
    assert second.multi_get(["a", "b"]) == [b"1", b"2"] and second.list_keys() == ["a", "b"]


def test_a_port_in_use():
    first = made("TCPStore")
    with pytest.raises(dist.DistNetworkError, match="EADDRINUSE.*address already in use") as caught:
        dist.TCPStore("127.0.0.1", first.port, 1, True)
    assert f"port: {first.port}" in str(caught.value)
    again = dist.TCPStore("127.0.0.1", first.port, is_master=True, multi_tenant=True)
    first.set("a", "shared")
    assert again.get("a") == b"shared"


def test_an_address_of_another_machine():
    with pytest.raises(dist.DistNetworkError, match="192.0.2.1.*EADDRNOTAVAIL"):
        dist.TCPStore("192.0.2.1", 0, 1, True)  # an address for documentation (RFC 5737)


def test_the_server_listens_where_it_was_told():
    store = made("TCPStore")
    with open("/proc/net/tcp") as table:
        listening = [row.split()[1] for row in table if row.split()[3] == "0A"]
    assert f"0100007F:{store.port:04X}" in listening
    assert f"00000000:{store.port:04X}" not in listening


@pytest.mark.parametrize("host", ["127.0.0.1", "no.such.host.invalid"])
def test_nobody_is_there(host):
    with pytest.raises(dist.DistNetworkError, match=rf"timed out after 60ms .*\({host}, 1\)"):
        dist.TCPStore(host, 1, timeout=SHORT)


def test_clients_wait_for_their_server():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with ThreadPoolExecutor(1) as threads:
        client = threads.submit(dist.TCPStore, "127.0.0.1", port, 2, timeout=timedelta(seconds=20))
        time.sleep(0.05)
        server = dist.TCPStore("127.0.0.1", port, 2, True, timedelta(seconds=20))
        client.result().set("a", "b")
    assert server.get("a") == b"b"


def test_the_server_waits_for_its_clients():
    with pytest.raises(dist.DistStoreError, match=r"after 0.06 seconds .* 1/3 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 3, True, SHORT)
    dist.TCPStore("127.0.0.1", 0, 3, True, SHORT, wait_for_workers=False)


def test_the_end_of_the_server_ends_those_who_wait():
    server = made("TCPStore")
    client = dist.TCPStore("127.0.0.1", server.port)
    ended = threading.Timer(0.05, lambda: holders.clear())
    holders = [server]
    del server
    began = time.monotonic()
    ended.start()
    with pytest.raises(dist.DistNetworkError, match="does not answer: the connection was closed"):
        while True:  # until the server's object has gone
            client.wait(["never"], timedelta(seconds=20))
    with pytest.raises(dist.DistNetworkError):
        client.set("a", "b")
    assert time.monotonic() - began < 10
    ended.join()
    gc.collect()


def noise(*parts):
    """What a stranger sends: lengths before their parts, none of which need be right."""
    body = b"".join(struct.pack("<I", length) + part for length, part in parts)
    return struct.pack("<I", len(body)) + body


STRANGERS = {
    "http": b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100,
    "nothing": b"",
    "half_a_greeting": HELLO[:5],
    "too_long": HELLO + struct.pack("<I", LARGEST + 1) + b"x" * 100,
    "empty": HELLO + struct.pack("<I", 0),
    "a_part_past_the_end": HELLO + noise((3, b"set"), (100, b"a")),
    "unknown": HELLO + noise((4, b"eval"), (1, b"a")),
    "too_few": HELLO + noise((6, b"append"), (1, b"a")),
    "too_many_parts": HELLO + noise(*[(0, b"")] * (2**16 + 1)),
    "cut_off": HELLO + struct.pack("<I", 6) + b"\x03\x00\x00\x00se"[:5],
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_is_sent_away_and_harms_nobody(name):
    store = made("TCPStore", timeout=timedelta(seconds=20))
    store.set("a", "b")
    stranger = socket.create_connection(("127.0.0.1", store.port), 20)
    with stranger, suppress(OSError):  # the server may close it with bytes unread
        stranger.sendall(STRANGERS[name])
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""
    assert store.get("a") == b"b" and store.list_keys() == ["a"]


def test_a_number_that_is_none_is_said_to_be_none():
    store = made("TCPStore")
    store.set("a", "b")
    with pytest.raises(dist.DistStoreError, match="invalid literal"):
        store.add("a", 1)
    assert store.get("a") == b"b"


def test_a_value_that_is_too_large():
    with pytest.raises(ValueError, match="too much for a store"):
        made("TCPStore").multi_set(["a"] * 2**16, ["b"] * 2**16)


def test_a_forked_process_has_a_connection_of_its_own():
    store = made("TCPStore", timeout=timedelta(seconds=20))
    pid = os.fork()
    if not pid:
        try:
            store.set("child", "1")
        finally:
            os._exit(0)
    assert store.get("child") == b"1"
    os.waitpid(pid, 0)
    store.set("parent", "2")
    assert store.multi_get(["child", "parent"]) == [b"1", b"2"]
