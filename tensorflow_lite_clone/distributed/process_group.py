"""Groups of processes, as programs see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.distributed.communicator import Communicator
from tensorflow_lite_clone.distributed.store import Store
from tensorflow_lite_clone.distributed.work import Followed, ReduceOp, Work
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor

#: Starts a communication on an engine, of tensors that it writes and tensors that it reads.
Start = Callable[[Communicator, list[Tensor], list[Tensor]], Work]


class Backend(str):
    """The name of what carries tensors between processes, in lower case."""

    UNDEFINED, GLOO, NCCL, MPI = "undefined", "gloo", "nccl", "mpi"
    backend_list = [UNDEFINED, GLOO, NCCL, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """Processes that exchange tensors.

    `chosen` names the backend of each kind of device, `makers` has what makes the `Communicator`
    that carries its tensors. Tensors that this does not take as they are, which lie elsewhere or
    have gaps, are copied.
    """

    def __init__(
        self,
        backend: Backend,
        chosen: dict[str, Backend],
        name: str,
        ranks: Sequence[int],
        rank: int,
        makers: dict[str, Callable[[], Communicator]],
        store: Store,
        timeout: timedelta,
    ) -> None:
        self.backend = backend
        self._chosen = chosen
        self.group_name = name
        self.ranks = list(ranks)
        self.store = store
        self.timeout = timeout
        self._rank = rank
        self._makers = makers
        self._made: dict[Callable[[], Communicator], Communicator] = {}
        if "cpu" in makers:  # sooner than others, which need to know which device is theirs
            self.engine("cpu")

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes there are."""
        return len(self.ranks)

    @property
    def config(self) -> str:
        """The backend of each kind of device."""
        return ",".join([f"{kind}:{name}" for kind, name in self._chosen.items()])

    def name(self) -> str:
        """The backend's name."""
        return str(self.backend)

    def engine(self, kind: str) -> Communicator:
        """What carries the tensors on a kind of device; RuntimeError if nothing does."""
        if kind not in self._makers:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        make = self._makers[kind]
        if make not in self._made:
            self._made[make] = make()
        return self._made[make]

    def _run(
        self,
        name: str,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        start: Start,
        *,
        both: bool = False,
    ) -> Work:
        """Start a communication that reads `inputs` and writes `outputs`, which it reads, too, with
        `both`. Profilers see it by its name.
        """
        call = partial(self._begin, outputs, inputs, start, both)
        return hooks.run_region(f"{self.backend}:{name}", call) if hooks.around_region else call()

    def _begin(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], start: Start, both: bool
    ) -> Work:
        engine = self.engine((*outputs, *inputs)[0].device.type)
        with no_grad():
            ready = [_fit(tensor, engine.kind) for tensor in inputs]
            written = [_fit(tensor, engine.kind, values=both) for tensor in outputs]
            work = start(engine, written, ready)
        return _followed(work, outputs, written)

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        """Replace `tensor` by what `op` makes of the tensors of all processes."""
        return self._run(
            "all_reduce", [tensor], [], lambda e, out, _: e.all_reduce(out[0], op), both=True
        )

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        """Replace `tensor` by that of the process `root`."""
        self._expect_rank("broadcast", root)
        return self._run(
            "broadcast", [tensor], [], lambda e, out, _: e.broadcast(out[0], root), both=True
        )

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        """As `all_reduce`, in the process `root` alone."""
        self._expect_rank("reduce", root)
        return self._run(
            "reduce", [tensor], [], lambda e, out, _: e.reduce(out[0], root, op), both=True
        )

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        """Write the tensors of all processes to `outputs`."""
        return self._run(
            "all_gather", outputs, [input], lambda e, out, given: e.all_gather(out, given[0])
        )

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        """Write to `output` what `op` makes of this process's part of all inputs."""
        return self._run(
            "reduce_scatter",
            [output],
            inputs,
            lambda e, out, given: e.reduce_scatter(out[0], given, op),
        )

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        """As `all_gather`, in the process `root` alone."""
        self._expect_rank("gather", root)
        return self._run(
            "gather", outputs, [input], lambda e, out, given: e.gather(out, given[0], root)
        )

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        """Write to `output` this process's part of the inputs of the process `root`."""
        self._expect_rank("scatter", root)
        return self._run(
            "scatter", [output], inputs, lambda e, out, given: e.scatter(out[0], given, root)
        )

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        """Write to output i the input of process i that is meant for this one."""
        return self._run(
            "all_to_all", outputs, inputs, lambda e, out, given: e.all_to_all(out, given)
        )

    def send(self, tensor: Tensor, peer: int, tag: int) -> Work:
        """Send to another process."""
        return self._run("send", [], [tensor], lambda e, _, given: e.send(given[0], peer, tag))

    def receive(self, tensor: Tensor, peer: int | None, tag: int) -> Work:
        """Receive from another process; from any without `peer`."""
        return self._run("receive", [tensor], [], lambda e, out, _: e.receive(out[0], peer, tag))

    def exchange(self, steps: Sequence[tuple[str, Tensor, int, int]]) -> list[Work]:
        """Start what may wait for each other: which ("send", "receive"), tensor, peer, tag."""
        engine = self.engine(steps[0][1].device.type)
        with no_grad():
            fitting = [
                (which, _fit(tensor, engine.kind, values=which == "send"), peer, tag)
                for which, tensor, peer, tag in steps
            ]
            works = engine.exchange(fitting)
        return [
            work if which == "send" else _followed(work, [tensor], [made])
            for work, (which, tensor, _, _), (_, made, _, _) in zip(works, steps, fitting)
        ]

    def barrier(self) -> Work:
        """Wait for all processes."""
        return self.engine(self.carried()).barrier()

    def carried(self) -> str:
        """The first kind of device whose tensors are carried: host memory, if any is."""
        return next(iter(self._makers))

    def carriable(self, tensor: Tensor) -> Tensor:
        """The tensor, or a copy where tensors are carried: of one in host memory, over NCCL."""
        return tensor if tensor.device.type in self._makers else tensor.to(self.carried())

    def close(self) -> None:
        """Give back what the engines hold."""
        for engine in self._made.values():
            engine.close()
        self._made.clear()

    def _expect_rank(self, what: str, root: int) -> None:
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroup::{what}: invalid root rank: {root}")


def _fit(tensor: Tensor, kind: str | None, *, values: bool = True) -> Tensor:
    """The tensor, or one for it, that lies on a kind of device without gaps."""
    here = kind is None or tensor.device.type == kind
    if kind is None or (here and tensor.is_contiguous()):
        return tensor.detach()
    place = tensor.device if here else kind
    if values:
        return tensor.detach().to(place).contiguous()
    return empty(tensor.shape, dtype=tensor.dtype, device=place)


def _followed(work: Work, outputs: Sequence[Tensor], written: Sequence[Tensor]) -> Work:
    """The work, after which what was written goes to the outputs that it was written for."""
    moved = [(a, b) for a, b in zip(outputs, written, strict=True) if not b.is_set_to(a)]
    if not moved:
        return work

    @no_grad()
    def finish() -> None:
        for tensor, made in moved:
            tensor.copy_(made)

    return Followed(work, finish, outputs)
