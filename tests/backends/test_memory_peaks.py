"""Peaks of device memory count from the first allocation, in all threads: on a pool of our own."""

from __future__ import annotations

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

    def _tell(self, event: str, address: int, block: int, **more: int) -> None:
        if memory._thread.counts:
            getattr(memory._peaks, event)(device_id=0, mem_size=block, mem_ptr=address, **more)

    def malloc(self, size: int) -> int:
        if size > 1 << 20:
            self._tell("malloc_postprocess", 0, size, size=size, pmem_id=0)
            raise RuntimeError("no room")
        address = max(self.blocks, default=0) + 1
        self.blocks[address] = size
        if self.used_bytes() > self.held:
            self.held = self.used_bytes()
            self._tell("alloc_postprocess", address, size)
        self._tell("malloc_postprocess", address, size, size=size, pmem_id=address)
        return address

    def free(self, address: int) -> None:
        self._tell("free_postprocess", address, self.blocks.pop(address), pmem_id=address)

    def used_bytes(self) -> int:
        return sum(self.blocks.values())

    def total_bytes(self) -> int:
        return self.held

    def n_free_blocks(self) -> int:
        return 0


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    made = Pool()
    monkeypatch.setattr(memory, "_peaks", memory._Peaks())
    monkeypatch.setattr(memory, "_thread", memory._Thread())
    monkeypatch.setattr(memory, "get_device", lambda: 0)
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: made)
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: nullcontext())
    monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (1, 2))
    yield made
    memory._peaks.detach()


def peaks() -> tuple[int, int]:
    found = memory.figures(0)
    return found["max_allocated"], found["max_reserved"]


def in_thread(call: Callable[[], Any]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_they_count_from_the_first_allocation(pool: Pool) -> None:
    allocate = memory.allocator(pool)
    blocks = [allocate(100), allocate(200)]
    pool.free(blocks[1])
    allocate(10)
    pool.held = 110  # what `empty_cache` does
    assert peaks() == (300, 300)
    assert memory.figures(0)["allocated"] == memory.figures(0)["reserved"] == 110


def test_a_reset_begins_with_what_is_in_use(pool: Pool) -> None:
    allocate = memory.allocator(pool)
    first = allocate(100)
    pool.free(allocate(200))
    memory.reset_peak(0)
    assert peaks() == (100, 300)
    pool.free(first)
    allocate(150)
    assert peaks() == (150, 300)


def test_all_threads_count(pool: Pool) -> None:
    allocate = memory.allocator(pool)
    in_thread(lambda: pool.free(allocate(300)))
    block = allocate(100)
    in_thread(lambda: pool.free(block))  # which has no hook, as it allocates nothing
    assert peaks() == (300, 300)
    memory.reset_peak(0)
    allocate(50)
    assert peaks() == (50, 300)


def test_what_found_no_room_does_not_count(pool: Pool) -> None:
    allocate = memory.allocator(pool)
    allocate(100)
    with pytest.raises(RuntimeError, match="no room"):
        allocate(1 << 21)
    assert peaks() == (100, 100)


def test_listeners_hear_every_change_once(pool: Pool) -> None:
    allocate, heard = memory.allocator(pool), []
    end = memory.listen(0, lambda size, address: heard.append(size))
    pool.free(allocate(100))
    end()
    allocate(1)
    assert heard == [100, -100]


def test_timings_end_the_count_until_a_figure_is_asked_for(pool: Pool) -> None:
    allocate = memory.allocator(pool)
    allocate(100)
    memory.unwatch()
    with memory._peaks:  # CuPy refuses a hook that the thread has
        pass
    pool.free(allocate(500))
    assert not memory._thread.counts
    assert peaks() == (100, 600)
    allocate(20)
    assert peaks() == (120, 600)
