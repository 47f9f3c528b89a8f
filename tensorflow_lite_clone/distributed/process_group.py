"""Groups of processes: what they are asked for, and the group of one process."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.tensor import Tensor


class Backend(str):
    """The name of what carries tensors between processes, in lower case."""

    UNDEFINED, GLOO, NCCL, MPI = "undefined", "gloo", "nccl", "mpi"
    backend_list = [UNDEFINED, GLOO, NCCL, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name}")
        return super().__new__(cls, name.lower())


class ReduceOp(Enum):
    """How the tensors of all processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class Work:
    """A communication under way; in a group of one process it is over when it begins."""

    def __init__(self, results: Sequence[Tensor] = ()) -> None:
        self._results = list(results)

    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is over."""
        return True

    def is_completed(self) -> bool:
        """Whether it is over."""
        return True

    is_success = is_completed

    def exception(self) -> None:
        """The error that ended it, if one did."""
        return None

    def result(self) -> list[Tensor]:
        """The tensors that it wrote."""
        return self._results


class ProcessGroup:
    """Processes that exchange tensors. This is the group of one process, this one.

    A group of several overrides the methods; what they are called with has been checked.
    """

    def __init__(self, backend: Backend, name: str, ranks: Sequence[int] = (0,)) -> None:
        self.backend = backend
        self.group_name = name
        self.ranks = list(ranks)

    def rank(self) -> int:
        """The number of this process in the group."""
        return 0

    def size(self) -> int:
        """How many processes there are."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend's name."""
        return str(self.backend)

    @no_grad()
    def copy(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        """What all collectives come to in a group of one: outputs take the inputs' values."""
        for output, input in zip(outputs, inputs, strict=True):
            if output is not input:
                output.copy_(input)
        return Work(outputs)

    def all_reduce(self, tensor: Tensor, op: ReduceOp) -> Work:
        """Replace `tensor` by what `op` makes of the tensors of all processes."""
        return Work([tensor])

    def broadcast(self, tensor: Tensor, root: int) -> Work:
        """Replace `tensor` by that of the process `root`."""
        self._expect_rank("broadcast", root)
        return Work([tensor])

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp) -> Work:
        """As `all_reduce`, in the process `root` alone."""
        self._expect_rank("reduce", root)
        return Work([tensor])

    def all_gather(self, outputs: Sequence[Tensor], input: Tensor) -> Work:
        """Write the tensors of all processes to `outputs`."""
        return self.copy(outputs, [input])

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Work:
        """Write to `output` what `op` makes of this process's part of all inputs."""
        return self.copy([output], inputs)

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int) -> Work:
        """As `all_gather`, in the process `root` alone."""
        self._expect_rank("gather", root)
        return self.copy(outputs, [input])

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        """Write to `output` this process's part of the inputs of the process `root`."""
        self._expect_rank("scatter", root)
        return self.copy([output], inputs)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        """Write to output i the input of process i that is meant for this one."""
        return self.copy(outputs, inputs)

    def barrier(self) -> Work:
        """Wait for all processes."""
        return Work()

    def _expect_rank(self, what: str, root: int) -> None:
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroup::{what}: invalid root rank: {root}")
