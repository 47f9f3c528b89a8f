"""Groups of processes of one host over the standard library: shared memory and Unix sockets.

Every rank has an outbox, an anonymous file that all ranks map. In a collective each rank copies
what it gives to its outbox and tells all others by a message, which carries the `Call`; when the
messages of all have come and agree, it reads what it needs from their outboxes, and tells them
that it is done. Messages and descriptors of files travel over sockets, so a rank that ends is
noticed at once, and nothing has a name in the file system when the group has been made.

Collectives are made one after the other by a thread; sends are done when they return, and receives
when they are waited for, so neither holds up the other.
"""

from __future__ import annotations

import mmap
import os
import queue
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import accumulate

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.distributed.communicator import Call, Communicator, expect_same
from tensorflow_lite_clone.distributed.peers import Peers, connect
from tensorflow_lite_clone.distributed.reduction import expect_reducible, reduce_into
from tensorflow_lite_clone.distributed.store import Store
from tensorflow_lite_clone.distributed.work import ReduceOp, Work, seconds
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.create.interchange import frombuffer
from tensorflow_lite_clone.tensor import Tensor

_READY, _DONE, _SENT = b"R", b"D", b"S"
_Outboxes = dict[int, mmap.mmap]
_Calls = dict[int, Call]
_ALIGNMENT = 64  # bytes: no cache line holds parts of two tensors


def _anonymous_file(size: int) -> int:
    """The descriptor of a file in memory that no directory knows."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("tlc")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.ftruncate(file, size)
    return file


def _place(parts: Sequence[Tensor]) -> list[int]:
    """Where in an outbox parts lie, and where the last one ends."""
    sizes = [_padded(part.numel() * part.element_size()) for part in parts]
    return list(accumulate(sizes, initial=0))


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _view(memory: mmap.mmap, place: int, like: Tensor) -> Tensor:
    """The tensor of the shape and dtype of another that lies at a place."""
    if not like.numel():
        return empty(like.shape, dtype=like.dtype)
    flat = frombuffer(memory, dtype=like.dtype, count=like.numel(), offset=place)
    return flat.view(like.shape)


class _Queued(Work):
    """A collective that the thread makes, or has made."""

    def __init__(self, make: Callable[[], None], results: Sequence[Tensor]) -> None:
        super().__init__(results)
        capture.forbid("communicates")
        self._make: Callable[[], None] | None = make
        self._over = threading.Event()

    def run(self) -> None:
        """Make it."""
        make, self._make = self._make, None
        try:
            assert make is not None
            make()
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()

    def wait(self, timeout: timedelta | None = None) -> bool:
        if not self._over.wait(None if timeout is None else seconds(timeout, 0)):
            raise RuntimeError(f"Work is not over after {seconds(timeout, 0)} seconds")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._over.is_set()


class _Received(Work):
    """A tensor that is to come from another rank; it is copied when it is waited for."""

    def __init__(self, owner: SharedMemory, tensor: Tensor, peer: int | None, tag: int) -> None:
        super().__init__([tensor])
        capture.forbid("communicates")
        self._owner, self._peer, self._tag = owner, peer, tag
        self._number = -1 if peer is None else owner._ticket(peer, tag)
        self._over = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._error is not None:
            raise self._error
        if not self._over:
            try:
                self._take(seconds(timeout, self._owner.timeout))
            except BaseException as error:
                self._error = error
                raise
        return True

    @no_grad()
    def _take(self, limit: float) -> None:
        owner, deadline = self._owner, time.monotonic() + limit
        if self._peer is None:
            keys = {peer: (_SENT, self._tag, owner._next(peer, self._tag)) for peer in owner.peers}
            self._peer = owner.connections.first(keys, deadline, "recv")
            self._number = owner._ticket(self._peer, self._tag)
        (tensor,) = self._results
        key = (_SENT, self._tag, self._number)
        text, file = owner.connections.receive(self._peer, key, deadline, "recv")
        ranks = [owner.ranks[self._peer], owner.ranks[owner.rank]]
        sent, expected = Call.decode(text), Call.of("send/recv", tensor)
        size = tensor.numel() * tensor.element_size()
        try:
            expect_same([sent, expected], ranks)
            if file is not None and size:
                tensor.copy_(_view(mmap.mmap(file, size), 0, tensor))
        finally:
            if file is not None:
                os.close(file)
        self._over = True

    def is_completed(self) -> bool:
        if self._over or self._peer is None:
            return self._over
        if self._owner.connections.arrived(self._peer, (_SENT, self._tag, self._number)):
            self.wait()
        return self._over

    def source_rank(self) -> int:
        self.wait()
        assert self._peer is not None
        return self._peer


class SharedMemory(Communicator):
    """A group of processes of one host."""

    kind = "cpu"

    def __init__(
        self, ranks: Sequence[int], rank: int, timeout: float, store: Store, name: str
    ) -> None:
        super().__init__(ranks, rank, timeout)
        self.peers = [peer for peer in range(self.size) if peer != rank]
        self.connections = Peers(connect(self, store, name), self.ranks)
        self._count = 0  # collectives made
        self._outbox: mmap.mmap | None = None
        self._maps: dict[int, mmap.mmap] = {}
        self._tickets: dict[tuple[int, int], int] = defaultdict(int)
        self._sent: dict[tuple[int, int], int] = defaultdict(int)
        self._todo: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="tlc-collectives", daemon=True).start()

    def _work(self) -> None:
        while (work := self._todo.get()) is not None:
            work.run()
            del work  # and its tensors, before the next one comes

    def close(self) -> None:
        self._todo.put(None)
        self.connections.close()

    def _next(self, peer: int, tag: int) -> int:
        return self._tickets[peer, tag]

    def _ticket(self, peer: int, tag: int) -> int:
        """The number of the next message of a rank with a tag."""
        self._tickets[peer, tag] += 1
        return self._tickets[peer, tag] - 1

    def _collective(
        self,
        call: Call,
        given: Sequence[Tensor],
        take: Callable[[_Outboxes, _Calls], None],
        results: Sequence[Tensor],
    ) -> Work:
        """Queue a collective that gives tensors and then takes from the outboxes of all ranks."""

        @no_grad()
        def make() -> None:
            self._count += 1
            number, what = self._count, f"{call.name}, number {self._count} of its group,"
            deadline = time.monotonic() + self.timeout
            if number > 1:  # before the outbox is written to again
                self.connections.receive_all(self.peers, (_DONE, number - 1, 0), deadline, what)
            self._give(call, given, number)
            ready = self.connections.receive_all(self.peers, (_READY, number, 0), deadline, what)
            calls = {self.rank: call}
            for peer, (text, file) in ready.items():
                calls[peer] = Call.decode(text)
                if file is not None:
                    self._maps[peer] = mmap.mmap(file, 0)
                    os.close(file)
            try:
                expect_same([calls[rank] for rank in range(self.size)], self.ranks)
                take(self._maps, calls)
            finally:
                for peer in self.peers:
                    self.connections.send(peer, _DONE, number, 0)

        work = _Queued(make, results)
        self._todo.put(work)
        return work

    def _give(self, call: Call, given: Sequence[Tensor], number: int) -> None:
        """Copy what is given to the outbox, a bigger one where needed, and tell all others."""
        places, file = _place(given), -1
        if places[-1] and (self._outbox is None or len(self._outbox) < places[-1]):
            size = 1 << max(places[-1] - 1, mmap.PAGESIZE - 1).bit_length()
            file = _anonymous_file(size)
            self._outbox = self._maps[self.rank] = mmap.mmap(file, size)
        for tensor, place in zip(given, places, strict=False):
            if tensor.numel():
                assert self._outbox is not None
                _view(self._outbox, place, tensor).copy_(tensor)
        text = call.encode()
        for peer in self.peers:
            self.connections.send(peer, _READY, number, 0, text, file)
        if file >= 0:
            os.close(file)

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        return self._reduced("all_reduce", [tensor], op, op.name, lambda rank: 0, tensor)

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        detail = f"{op.name} to rank {root}"
        target = tensor if self.rank == root else None
        return self._reduced("reduce", [tensor], op, detail, lambda rank: 0, target)

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        place = _place(inputs)[self.rank]
        return self._reduced("reduce_scatter", inputs, op, op.name, lambda rank: place, output)

    def _reduced(
        self,
        name: str,
        given: Sequence[Tensor],
        op: ReduceOp,
        detail: str,
        place: Callable[[int], int],
        target: Tensor | None,
    ) -> Work:
        like = given[0]
        expect_reducible(like, op)

        def take(maps: _Outboxes, calls: _Calls) -> None:
            if target is not None and target.numel():
                parts = [_view(maps[rank], place(rank), like) for rank in range(self.size)]
                reduce_into(target, parts, op)

        return self._collective(Call.of(name, like, detail), given, take, [like])

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        def take(maps: _Outboxes, calls: _Calls) -> None:
            if self.rank != root and tensor.numel():
                tensor.copy_(_view(maps[root], 0, tensor))

        given = [tensor] if self.rank == root else []
        return self._collective(Call.of("broadcast", tensor, f"rank {root}"), given, take, [tensor])

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        return self._gathered(Call.of("all_gather", input), outputs, input)

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        return self._gathered(Call.of("gather", input, f"to rank {root}"), outputs, input)

    def _gathered(self, call: Call, outputs: Sequence[Tensor], input: Tensor) -> Work:
        def take(maps: _Outboxes, calls: _Calls) -> None:
            for rank, output in enumerate(outputs):
                if output.numel():
                    output.copy_(_view(maps[rank], 0, output))

        return self._collective(call, [input], take, outputs)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        place = _place([output] * self.size)[self.rank]  # all parts are of one size

        def take(maps: _Outboxes, calls: _Calls) -> None:
            if output.numel():
                output.copy_(_view(maps[root], place, output))

        call = Call.of("scatter", output, f"from rank {root}")
        return self._collective(call, inputs, take, [output])

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        def take(maps: _Outboxes, calls: _Calls) -> None:
            for rank, output in enumerate(outputs):
                counts = calls[rank].counts
                if counts[self.rank] != output.numel():
                    raise RuntimeError(
                        f"rank {self.ranks[rank]} sends {counts[self.rank]} elements to rank "
                        f"{self.ranks[self.rank]}, which expects {output.numel()}"
                    )
                place = sum([_padded(n * output.element_size()) for n in counts[: self.rank]])
                if output.numel():
                    output.copy_(_view(maps[rank], place, output))

        counts = tuple([part.numel() for part in inputs])
        call = Call.of("all_to_all", inputs[0])._replace(shape=(), counts=counts)
        return self._collective(call, inputs, take, outputs)

    def send(self, tensor: Tensor, peer: int, tag: int) -> Work:
        capture.forbid("communicates")
        size = tensor.numel() * tensor.element_size()
        file = _anonymous_file(max(size, 1))
        if size:
            with no_grad():
                _view(mmap.mmap(file, size), 0, tensor).copy_(tensor)
        number = self._sent[peer, tag]
        self._sent[peer, tag] += 1
        self.connections.send(peer, _SENT, tag, number, Call.of("send/recv", tensor).encode(), file)
        os.close(file)
        return Work([tensor])

    def receive(self, tensor: Tensor, peer: int | None, tag: int) -> Work:
        return _Received(self, tensor, peer, tag)

    def barrier(self) -> Work:
        return self._collective(Call("barrier"), [], lambda maps, calls: None, [])
