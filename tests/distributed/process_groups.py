"""Worlds of processes for tests: they stay alive, and are told which function to call.

``world(4).run(function, *args)`` calls ``function(rank, size, *args)`` in four processes, which
have a process group (gloo, served by shared memory; with ``backend="nccl"`` each has a GPU), and
gives the list of what they return. The function is one of a module that can be imported; arguments
and results are pickled.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0  # seconds for one function


class World:
    """Processes of one group. One that fails a function goes on; one that ends ends the world."""

    def __init__(self, size: int, backend: str, timeout: float) -> None:
        self.size = size
        self._folder = tempfile.TemporaryDirectory()
        meeting = Path(self._folder.name) / "store"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.distributed.process_groups",
                 str(rank), str(size), f"file://{meeting}", backend, str(timeout)],
                cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for rank in range(size)
        ]  # fmt: skip
        atexit.register(self.close)

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(rank, size, *args)`` everywhere; raises the first rank's exception."""
        results = self.outcomes(function, *args)
        for rank, (_, error) in enumerate(results):
            if error is not None:
                raise AssertionError(f"rank {rank} of {self.size} failed:\n{error}")
        return [value for value, _ in results]

    def outcomes(self, function: Callable[..., Any], *args: Any) -> list[tuple[Any, str | None]]:
        """As `run`, but each rank's result and the text of its exception, or None."""
        order = pickle.dumps((function.__module__, function.__qualname__, args))
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(len(order).to_bytes(8, "little") + order)
            process.stdin.flush()
        return [self._answer(process) for process in self._processes]

    def _answer(self, process: subprocess.Popen) -> tuple[Any, str | None]:
        assert process.stdout is not None
        size = process.stdout.read(8)
        if len(size) < 8:
            self.close()
            world.cache_clear()
            return None, f"the process has ended with {process.wait()}"
        return pickle.loads(process.stdout.read(int.from_bytes(size, "little")))

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()
        self._folder.cleanup()


@cache
def world(size: int, backend: str = "gloo", timeout: float = 30.0) -> World:
    """The world of a size, started when it is first needed."""
    return World(size, backend, timeout)


#: The kind of device that tests of several processes run on.
HERE = "cuda" if os.environ.get("DEVICE") == "cuda" else "cpu"


def world_here(size: int) -> World:
    """The world of a size on `HERE`; over NCCL the test is skipped where there are too few GPUs."""
    return gpu_world(size) if HERE == "cuda" else world(size)


def gpu_world(size: int) -> World:
    """A world over NCCL with a GPU for each process; skips the test where there are too few."""
    if HERE != "cuda":
        pytest.skip("DEVICE is not cuda")
    import tensorflow_lite_clone as torch

    if torch.cuda.device_count() < size:
        pytest.skip(f"{size} GPUs are needed, and there are {torch.cuda.device_count()}")
    return world(size, "nccl")


def _serve(rank: int, size: int, meeting: str, backend: str, timeout: float) -> None:
    """What each process does."""
    from datetime import timedelta
    from importlib import import_module

    import tensorflow_lite_clone as torch

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what tests print is not an answer
    if backend == "nccl":
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        backend, meeting, timedelta(seconds=timeout), world_size=size, rank=rank
    )
    while len(length := sys.stdin.buffer.read(8)) == 8:
        order = pickle.loads(sys.stdin.buffer.read(int.from_bytes(length, "little")))
        module, name, args = order
        try:
            function = getattr(import_module(module), name)
            answer = pickle.dumps((function(rank, size, *args), None))
        except BaseException:
            answer = pickle.dumps((None, traceback.format_exc()))
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
