"""Locks of this package in processes that were forked while another thread held them."""

from __future__ import annotations

import io
import os
import signal
import threading

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import storage
from tensorflow_lite_clone.autograd import engine
from tensorflow_lite_clone.compiler import function
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.serialization import _safe

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")


def train():
    w = tlc.ones(3, requires_grad=True)
    (w * 2).sum().backward()


def load():
    stream = io.BytesIO()
    tlc.save(tlc.ones(2), stream)
    stream.seek(0)
    with tlc.serialization.safe_globals([dict]):
        tlc.load(stream)


doubled = tlc.compile(lambda x: x * 2)


def run_compiled():
    for _ in range(4):
        doubled(tlc.ones(4))


HELD = {
    "gradients": (engine._accumulating, train),
    "storages": (storage._materializing, train),
    "dispatch": (hooks.changing, train),
    "safe globals": (_safe._lock, load),
    "capture": (function._capturing, run_compiled),
    "a compiled function": (doubled._lock, run_compiled),
}


@pytest.mark.parametrize("name", HELD)
def test_a_forked_process_finds_locks_free(name):
    lock, work = HELD[name]
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    threading.Timer(0.1, done.set).start()  # some locks are waited for before the process forks
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends it
        try:
            work()
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
