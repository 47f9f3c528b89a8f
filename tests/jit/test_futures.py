"""`torch.futures` beside PyTorch's."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)


def done(lib: Any, value: Any) -> Any:
    future = lib.futures.Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


def seen_by_callback(lib: Any) -> Any:
    future, seen = lib.futures.Future(), []
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.set_result(5)
    future.add_done_callback(lambda f: seen.append(-f.value()))
    return seen


def chained(lib: Any) -> Any:
    future = lib.futures.Future()
    last = future.then(lambda f: f.wait() + 1).then(lambda f: f.wait() * 10)
    before = last.done()
    future.set_result(1)
    return before, last.wait()


PROGRAMS = {
    "value": lambda lib: (done(lib, 3).value(), done(lib, 3).wait(), done(lib, 3).done()),
    "not done": lambda lib: lib.futures.Future().done(),
    "callbacks": seen_by_callback,
    "then": chained,
    "all": lambda lib: [
        f.value() for f in lib.futures.collect_all([done(lib, 1), done(lib, 2)]).wait()
    ],
    "none": lambda lib: lib.futures.collect_all([]).wait(),
    "wait for all": lambda lib: lib.futures.wait_all([done(lib, 1), done(lib, 2)]),
    "twice": lambda lib: done(lib, 3).set_result(4),
    "value too early": lambda lib: lib.futures.Future().value(),
    "no exception": lambda lib: lib.futures.Future().set_exception("x"),
    "an exception": lambda lib: done(lib, ValueError("v")).wait(),
    "the value of an exception": lambda lib: done(lib, ValueError("v")).value(),
    "then of an exception": lambda lib: done(lib, ValueError("v")).then(lambda f: f.wait()).wait(),
    "one of all": lambda lib: lib.futures.wait_all([done(lib, 1), done(lib, KeyError("k"))]),
    "collected": lambda lib: lib.futures.collect_all([done(lib, ValueError("v"))]).wait(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str) -> None:
    results: list[Any] = []
    for lib in LIBRARIES:
        try:
            results.append(PROGRAMS[name](lib))
        except Exception as error:
            results.append(type(error))
    assert results[0] == results[1]


def test_another_thread_completes_it() -> None:
    future = tlc.futures.Future[int]()
    timer = threading.Timer(0.01, future.set_result, [7])
    timer.start()
    assert future.wait() == 7
    timer.join()
