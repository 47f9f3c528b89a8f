"""Groups of GPUs, one for each process, over NCCL."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import bool_
from tensorflow_lite_clone.cuda._devices import device_count, index_of, layer
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.distributed.communicator import Call, Communicator, expect_same
from tensorflow_lite_clone.distributed.store import Store
from tensorflow_lite_clone.distributed.work import ReduceOp, Work
from tensorflow_lite_clone.ops.create.constructors import zeros
from tensorflow_lite_clone.ops.pointwise.complex_numbers import view_as_real
from tensorflow_lite_clone.tensor import Tensor


def is_available() -> bool:
    """Whether there are GPUs and CuPy finds NCCL."""
    return device_count() > 0 and layer("nccl").is_available


def expect_available() -> None:
    """Raise what is missing."""
    if not device_count():
        raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
    if not layer("nccl").is_available:
        raise RuntimeError(
            "CuPy finds no NCCL: install nvidia-nccl-cu12 (or the one for your CUDA), or use the "
            "backend gloo or mpi"
        )


class _OnStream(Work):
    """What is queued on a channel's stream. Waiting makes the current stream wait, not the host."""

    def __init__(
        self, channel: Any, event: Any, results: Sequence[Tensor], read: list[Any]
    ) -> None:
        super().__init__(results)
        self._channel, self._event = channel, event
        self._read = read  # arrays that must not be used again before they have been read
        self._captured = capture.state.graph is not None

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._channel.join(self._event)
        self._read = []
        return True

    def is_completed(self) -> bool:
        return layer("nccl").is_over(self._event)

    def synchronize(self) -> None:
        """Let the host wait."""
        self.wait()
        layer("nccl").wait_on_host(self._event)

    def __del__(self) -> None:
        if self._read and not sys.is_finalizing():
            self._channel.keep(self._read)


class _Barrier(_OnStream):
    """One for which the host waits, too."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        super().wait(timeout)
        layer("nccl").wait_on_host(self._event)
        return True


class Nccl(Communicator):
    """A group of GPUs. Its communicator is made when it is first used, on the current device.

    The first time that a call of some kind, dtype, size and reduction is made, the ranks compare
    it through the store. What is not over when the time is up ends the process, as in PyTorch: the
    device would wait for ever.
    """

    kind = "cuda"

    def __init__(
        self, ranks: Sequence[int], rank: int, timeout: float, store: Store, name: str
    ) -> None:
        super().__init__(ranks, rank, timeout)
        self._store, self._name = store, name
        self._channel: Any = None
        self._pairs: dict[int, Any] = {}
        self._seen: set[tuple] = set()
        self._count = 0
        self._watch = _Watch(self)

    def _on(self, index: int | None = None) -> Any:
        """The channel of the whole group."""
        if self._channel is None:
            index = index_of() if index is None else index
            self._channel = self._meet("all", index, self.size, self.rank, list(range(self.size)))
        elif index is not None and index != self._channel.index:
            raise RuntimeError(
                f"a group works on one device of each process, on rank {self.ranks[self.rank]} "
                f"cuda:{self._channel.index}, but was given a tensor on cuda:{index}"
            )
        return self._channel

    def _meet(self, name: str, index: int, size: int, rank: int, members: list[int]) -> Any:
        """A channel of some ranks, when all have come."""
        native = layer("nccl")
        key = f"{self._name}/{name}"
        if rank == 0:
            self._store.set(f"{key}/id", native.unique_id())
        device = layer("runtime").properties(index)
        self._store.set(f"{key}/{rank}", f"{device.uuid} {device.pci_bus_id}")
        limit = timedelta(seconds=self.timeout)
        self._store.wait([f"{key}/{each}" for each in range(size)], limit)
        used: dict[bytes, int] = {}
        for each in range(size):
            other = used.setdefault(self._store.get(f"{key}/{each}"), each)
            if other != each:
                raise RuntimeError(
                    f"Duplicate GPU detected: rank {self.ranks[members[other]]} and rank "
                    f"{self.ranks[members[each]]} both on {device.name}, cuda:{index}; call "
                    "torch.cuda.set_device(local rank) first"
                )
        return native.Channel(index, size, self._store.get(f"{key}/id"), rank)

    def _pair(self, peer: int, index: int | None) -> Any:
        """The channel of this rank and another one, whose ranks are 0 and 1."""
        if peer not in self._pairs:
            assert index is not None
            low, high = sorted((peer, self.rank))
            name = f"{low}-{high}"
            self._pairs[peer] = self._meet(name, index, 2, int(self.rank == high), [low, high])
        return self._pairs[peer]

    def _agree(self, call: Call) -> None:
        """Compare a call with those of the other ranks, unless one like it has been compared.

        All ranks have compared the same calls so far, so all of them compare this one or none.
        """
        self._count += 1
        if call.key() in self._seen:
            return
        key = f"{self._name}/call/{self._count}"
        self._store.set(f"{key}/{self.rank}", call.encode())
        keys = [f"{key}/{rank}" for rank in range(self.size)]
        self._store.wait(keys, timedelta(seconds=self.timeout))
        expect_same([Call.decode(self._store.get(each)) for each in keys], self.ranks)
        self._seen.add(call.key())

    def _queue(
        self,
        call: Call,
        tensors: Sequence[Tensor],
        results: Sequence[Tensor],
        start: Callable[[Any, list[Any]], None],
    ) -> Work:
        """Queue a collective on arrays of tensors; `results` are those it writes."""
        self._agree(call)
        channel = self._on(tensors[0].device.index)
        arrays = [tensor._storage.array for tensor in tensors]
        if tensors[0].numel() or call.counts:
            event = channel.queue(lambda channel: start(channel, arrays))
        else:
            event = channel.queue(lambda channel: None)
        for tensor in results:
            tensor._storage.bump()
        work = _OnStream(channel, event, results, arrays)
        if not work._captured:
            self._watch.add(event, call)
        return work

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        dtype, real = _reducible(tensor, op)
        return self._queue(
            Call.of("all_reduce", tensor, op.name), [real], [tensor],
            lambda channel, arrays: channel.all_reduce(arrays[0], dtype, op.name),
        )  # fmt: skip

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        dtype, real = _reducible(tensor, op)
        return self._queue(
            Call.of("reduce", tensor, f"{op.name} to rank {root}"), [real], [tensor],
            lambda channel, a: channel.reduce(a[0], a[0], root, dtype, op.name),
        )  # fmt: skip

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        dtype, target = _reducible(output, op)

        def start(channel: Any, arrays: list[Any]) -> None:
            target, *parts = arrays
            if layer("nccl").follow_each_other(parts):
                channel.reduce_scatter(parts[0], target, dtype, op.name)
                return
            with layer("nccl").group():
                for rank, part in enumerate(parts):
                    is_local = rank == self.rank
                    channel.reduce(part, target if is_local else part, rank, dtype, op.name)

        parts = [_reducible(part, op)[1] for part in inputs]
        call = Call.of("reduce_scatter", output, op.name)
        return self._queue(call, [target, *parts], [output], start)

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        return self._queue(
            Call.of("broadcast", tensor, f"rank {root}"), [tensor], [tensor],
            lambda channel, arrays: channel.broadcast(arrays[0], arrays[0], root),
        )  # fmt: skip

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        def start(channel: Any, arrays: list[Any]) -> None:
            given, *targets = arrays
            if layer("nccl").follow_each_other(targets):
                channel.all_gather(given, targets[0])
                return
            with layer("nccl").group():
                for rank, target in enumerate(targets):
                    channel.broadcast(given, target, rank)

        return self._queue(Call.of("all_gather", input), [input, *outputs], outputs, start)

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        def start(channel: Any, arrays: list[Any]) -> None:
            given, *targets = arrays
            with layer("nccl").group():
                channel.send(given, root)
                for rank, target in enumerate(targets):
                    channel.receive(target, rank)

        call = Call.of("gather", input, f"to rank {root}")
        return self._queue(call, [input, *outputs], outputs, start)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        def start(channel: Any, arrays: list[Any]) -> None:
            target, *parts = arrays
            with layer("nccl").group():
                for rank, part in enumerate(parts):
                    channel.send(part, rank)
                channel.receive(target, root)

        call = Call.of("scatter", output, f"from rank {root}")
        return self._queue(call, [output, *inputs], [output], start)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        def start(channel: Any, arrays: list[Any]) -> None:
            targets, parts = arrays[: self.size], arrays[self.size :]
            with layer("nccl").group():
                for rank in range(self.size):
                    if parts[rank].size:
                        channel.send(parts[rank], rank)
                    if targets[rank].size:
                        channel.receive(targets[rank], rank)

        call = Call.of("all_to_all", inputs[0])._replace(shape=(), counts=(1,))
        return self._queue(call, [*outputs, *inputs], outputs, start)

    def send(self, tensor: Tensor, peer: int, tag: int) -> Work:
        return self.exchange([("send", tensor, peer, tag)])[0]

    def receive(self, tensor: Tensor, peer: int | None, tag: int) -> Work:
        if peer is None:
            raise ValueError("NCCL receives from a rank that is named, not from any")
        return self.exchange([("receive", tensor, peer, tag)])[0]

    def exchange(self, steps: Sequence[tuple[str, Tensor, int, int]]) -> list[Work]:
        index = steps[0][1].device.index
        peers = {peer for _, _, peer, _ in steps}
        for peer in sorted(peers, key=lambda peer: sorted((peer, self.rank))):
            self._pair(peer, index)  # in one order on all ranks, which have to meet
        channels = [self._pairs[peer] for _, _, peer, _ in steps]
        with layer("runtime").on(index):
            with layer("nccl").group():
                for channel, (what, tensor, peer, _) in zip(channels, steps, strict=True):
                    channel.fork()
                    getattr(channel, what)(tensor._storage.array, int(peer > self.rank))
            return [
                self._underway(channel, channel.record(), step)
                for channel, step in zip(channels, steps, strict=True)
            ]

    def _underway(self, channel: Any, event: Any, step: tuple[str, Tensor, int, int]) -> Work:
        """The work of a send or receive that has been queued."""
        what, tensor, peer, _ = step
        if what == "receive":
            tensor._storage.bump()
        work = _OnStream(channel, event, [tensor], [tensor._storage.array])
        if not work._captured:
            self._watch.add(event, Call.of(f"{what}, rank {self.ranks[peer]},", tensor))
        return work

    def barrier(self) -> Work:
        token = zeros(1, device=Device("cuda", self._on().index))
        work = self._queue(
            Call("barrier"), [token], [],
            lambda channel, arrays: channel.all_reduce(arrays[0], token.dtype, "SUM"),
        )  # fmt: skip
        assert isinstance(work, _OnStream)
        return _Barrier(work._channel, work._event, [], [token._storage.array])

    def close(self) -> None:
        self._watch.close()
        for channel in (*self._pairs.values(), self._channel):
            if channel is not None:
                channel.close()
        self._channel, self._pairs = None, {}


@no_grad()
def _reducible(tensor: Tensor, op: ReduceOp) -> tuple[Any, Tensor]:
    """The element type to reduce in, and the tensor with elements of that type."""
    native, dtype = layer("nccl"), tensor.dtype
    if dtype.is_complex:
        if op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise ValueError(f"all_reduce does not support ReduceOp.{op.name} on complex tensors")
        tensor = view_as_real(tensor)
        dtype = tensor.dtype
    if dtype not in native.TYPES:
        raise TypeError(f"Input tensor data type is not supported for NCCL process group: {dtype}")
    codes = native.BOOLEAN if dtype is bool_ else native.REDUCTIONS
    if op.name not in codes:
        raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
    return dtype, tensor


class _Watch:
    """A thread that ends the process when a communication is not over in time."""

    def __init__(self, owner: Nccl) -> None:
        self._timeout = owner.timeout
        self._who = f"rank {owner.ranks[owner.rank]}"
        self._open: deque[tuple[Any, Call, float]] = deque()
        self._end = threading.Event()
        self._started = False

    def add(self, event: Any, call: Call) -> None:
        """Watch a communication that has been queued."""
        self._open.append((event, call, time.monotonic()))
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, name="tlc-nccl-watch", daemon=True).start()

    def close(self) -> None:
        """End the thread."""
        self._end.set()

    def _run(self) -> None:
        pause = min(1.0, self._timeout / 4)
        is_over = layer("nccl").is_over
        while not self._end.wait(pause):
            while self._open and is_over(self._open[0][0]):
                self._open.popleft()
            if self._open and time.monotonic() - self._open[0][2] > self._timeout:
                _, call, since = self._open[0]
                passed = time.monotonic() - since
                sys.stderr.write(
                    f"{self._who}: {call} is not over after {passed:.0f} seconds: another rank "
                    "has ended, hangs, or asked for something else. This process ends.\n"
                )
                sys.stderr.flush()
                os.abort()  # work on the device that waits for other ranks never ends
