"""Peaks of device memory count from the first allocation, in all threads: on a pool of our own."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

cupy = pytest.importorskip("cupy", reason="the hooks are CuPy's")
from tensorflow_lite_clone.backends.cupy import memory  # noqa: E402


class Pool:
    """Calls the hooks of the thread as CuPy's pool does; blocks that are released stay held."""

    def __init__(self) -> None:
        self.blocks: dict[int, int] = {}
        self.held = 0
        self.looks = 0

    def _tell(self, event: str, address: int, block: int, **more: int) -> None:
        if memory._thread.tells:
            getattr(memory._hook, event)(device_id=0, mem_size=block, mem_ptr=address, **more)

    def malloc(self, size: int) -> int:
        if size > 1 << 20:
            self._tell("malloc_postprocess", 0, size, size=size, pmem_id=0)
            raise RuntimeError("no room")
        address = max(self.blocks, default=0) + 1
        self.blocks[address] = block = -(-size // 512) * 512
        self.held = max(self.held, sum(self.blocks.values()))
        self._tell("malloc_postprocess", address, block, size=size, pmem_id=address)
        return address

    def free(self, address: int) -> None:
        self._tell("free_postprocess", address, self.blocks.pop(address), pmem_id=address)

    def used_bytes(self) -> int:
        self.looks += 1
        return sum(self.blocks.values())

    def total_bytes(self) -> int:
        return self.held

    def n_free_blocks(self) -> int:
        return 0

    def free_all_blocks(self) -> None:
        self.held = sum(self.blocks.values())


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    made = Pool()
    monkeypatch.setattr(memory, "_peaks", memory._Peaks())
    monkeypatch.setattr(memory, "get_device", lambda: 0)
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: made)
    monkeypatch.setattr(cupy, "get_default_pinned_memory_pool", Pool)
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: nullcontext())
    monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (1, 2))
    yield made
    assert not memory._listeners
    assert not memory._thread.tells


def peaks() -> tuple[int, int]:
    found = memory.figures(0)
    return found["max_allocated"], found["max_reserved"]


def in_thread(call: Callable[[], Any]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_they_count_from_the_first_allocation(pool: Pool) -> None:
    allocate = memory.counting(pool)
    blocks = [allocate(1000), allocate(2048)]
    pool.free(blocks[1])
    allocate(10)
    memory.release(0)
    assert peaks() == (3072, 3072)
    assert memory.figures(0)["allocated"] == memory.figures(0)["reserved"] == 1536


def test_a_reset_begins_with_what_is_in_use(pool: Pool) -> None:
    allocate = memory.counting(pool)
    first = allocate(1024)
    pool.free(allocate(2048))
    memory.reset_peak(0)
    assert peaks() == (1024, 3072)
    pool.free(first)
    allocate(1536)
    assert peaks() == (1536, 3072)


def test_all_threads_count(pool: Pool) -> None:
    allocate = memory.counting(pool)
    in_thread(lambda: pool.free(allocate(3072)))
    block = allocate(1024)
    in_thread(lambda: pool.free(block))
    assert peaks() == (3072, 3072)
    memory.reset_peak(0)
    allocate(512)
    assert peaks() == (512, 3072)


def test_peak_ignores_failed_allocations(pool: Pool) -> None:
    allocate = memory.counting(pool)
    allocate(1024)
    with pytest.raises(RuntimeError, match="no room"):
        allocate(1 << 21)
    assert peaks() == (1024, 1024)


def test_random_allocations_and_releases(pool: Pool) -> None:
    allocate, source = memory.counting(pool), random.Random(0)
    most = 0
    for step in range(3000):
        if pool.blocks and source.random() < 0.5:
            pool.free(source.choice(list(pool.blocks)))
        else:
            allocate(source.randrange(1, 9000))
        most = max(most, sum(pool.blocks.values()))
        if step % 1000 == 500:
            assert peaks()[0] == most
    assert peaks() == (most, most)


def test_the_pool_is_asked_around_the_peak_alone(pool: Pool) -> None:
    allocate = memory.counting(pool)
    for step in range(2):
        pool.looks = 0
        for address in [allocate(512) for _ in range(1000)]:
            pool.free(address)
        assert (pool.looks < 20) is (step == 1)


def test_listeners_hear_every_change_once(pool: Pool) -> None:
    allocate, heard = memory.counting(pool), []
    end = memory.listen(0, lambda size, address: heard.append(size))
    pool.free(allocate(512))
    in_thread(lambda: pool.free(allocate(1024)))
    end()
    allocate(1)
    assert heard == [512, -512, 1024, -1024]


def test_a_thread_hears_no_more_when_nobody_listens(pool: Pool) -> None:
    allocate, seen = memory.counting(pool), []
    listening, ended = threading.Event(), threading.Event()

    def work() -> None:
        allocate(1)
        listening.set()
        ended.wait()
        seen.append(memory._thread.tells)
        allocate(1)
        seen.append(memory._thread.tells)

    end = memory.listen(0, lambda size, address: None)
    thread = threading.Thread(target=work)
    thread.start()
    listening.wait()
    end()
    ended.set()
    thread.join()
    assert seen == [True, False]
