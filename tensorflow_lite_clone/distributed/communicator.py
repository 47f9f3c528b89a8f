"""The contract between groups of processes and what carries their tensors.

A `Communicator` is one group on one engine (NCCL, MPI, shared memory). Its tensors are contiguous
and lie where the engine works; ranks are numbers in the group. Nothing above `ProcessGroup` knows
which engine there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributed.work import ReduceOp, Work
from tensorflow_lite_clone.tensor import Tensor


class Call(NamedTuple):
    """What a rank asks for; all must ask for the same, up to the shape of as many elements."""

    name: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    detail: str = ""  # the reduction, the root
    counts: tuple[int, ...] = ()  # elements for each rank, where these differ: not compared

    @classmethod
    def of(cls, name: str, tensor: Tensor, detail: str = "") -> Call:
        """The call of a collective on a tensor."""
        return cls(name, str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), detail)

    def encode(self) -> bytes:
        """As bytes, to be sent."""
        shape, counts = [",".join(map(str, numbers)) for numbers in (self.shape, self.counts)]
        return "|".join((self.name, self.dtype, shape, self.detail, counts)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Call:
        """What `encode` gave."""
        name, dtype, shape, detail, counts = data.decode().split("|")
        return cls(name, dtype, _numbers(shape), detail, _numbers(counts))

    def key(self) -> tuple:
        """What must be equal on all ranks."""
        return self.name, self.dtype, prod(self.shape), self.detail

    def __str__(self) -> str:
        text = self.name
        if self.dtype:
            text += f" of a {self.dtype} tensor of shape {self.shape}"
        return f"{text} ({self.detail})" if self.detail else text


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, filter(None, text.split(","))))


def expect_same(calls: Sequence[Call], ranks: Sequence[int]) -> None:
    """RuntimeError naming two ranks whose calls differ; `ranks` are numbers in the world."""
    for rank, call in zip(ranks[1:], calls[1:], strict=True):
        if call.key() != calls[0].key():
            raise RuntimeError(
                f"ranks of a group ask for different communications: rank {ranks[0]} for "
                f"{calls[0]}, rank {rank} for {call}"
            )


class Communicator:
    """One group of processes on one engine. All calls give a `Work` and may run on after it.

    `ranks` are the numbers in the world of the group's processes, `rank` is this one's number in
    the group, `timeout` (seconds) limits each communication. `kind` is the kind of device on which
    its tensors lie, None where they may be anywhere and have gaps.
    """

    kind: str | None = None

    def __init__(self, ranks: Sequence[int], rank: int, timeout: float) -> None:
        self.ranks = list(ranks)
        self.rank = rank
        self.size = len(self.ranks)
        self.timeout = timeout

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        """Replace `tensor` by what `op` makes of the tensors of all ranks."""
        raise NotImplementedError

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        """Replace `tensor` by that of the rank `root`."""
        raise NotImplementedError

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        """As `all_reduce`, on the rank `root` alone."""
        raise NotImplementedError

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        """Write the tensors of all ranks to `outputs`."""
        raise NotImplementedError

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        """Write to `output` what `op` makes of the inputs of all ranks that are for this one."""
        raise NotImplementedError

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        """As `all_gather`, on the rank `root` alone; elsewhere `outputs` is empty."""
        raise NotImplementedError

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        """Write to `output` the input of `root` for this rank; elsewhere `inputs` is empty."""
        raise NotImplementedError

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        """Write to output i the input of rank i that is for this one; sizes may differ."""
        raise NotImplementedError

    def send(self, tensor: Tensor, peer: int, tag: int) -> Work:
        """Send to another rank."""
        raise NotImplementedError

    def receive(self, tensor: Tensor, peer: int | None, tag: int) -> Work:
        """Receive from another rank; from any without `peer`."""
        raise NotImplementedError

    def exchange(self, steps: Sequence[tuple[str, Tensor, int, int]]) -> list[Work]:
        """Start what may wait for each other: which ("send", "receive"), tensor, peer, tag."""
        return [getattr(self, which)(tensor, peer, tag) for which, tensor, peer, tag in steps]

    def barrier(self) -> Work:
        """Wait for all ranks."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what the engine holds; with communications under way, which then fail."""


class Alone(Communicator):
    """The group of one process."""

    @no_grad()
    def _copy(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        for output, input in zip(outputs, inputs, strict=True):
            if output is not input:
                output.copy_(input)
        return Work(outputs)

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        return Work([tensor])

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        return Work([tensor])

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        return Work([tensor])

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        return self._copy(outputs, [input])

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        return self._copy([output], inputs)

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        return self._copy(outputs, [input])

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        return self._copy([output], inputs)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        return self._copy(outputs, inputs)

    def barrier(self) -> Work:
        return Work()
