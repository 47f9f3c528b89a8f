"""The processes that train together."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import tensorflow_lite_clone as torch

dist = torch.distributed
LAUNCH = "python -m tensorflow_lite_clone.distributed.run --nproc_per_node 2 -m"


@dataclass(frozen=True)
class World:
    """Which of how many processes this is, and its device."""

    rank: int
    size: int
    device: torch.device

    @property
    def speaks(self) -> bool:
        """Whether this process prints and writes files."""
        return self.rank == 0

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of all processes' `values`, in place and returned."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def each(self, value: float) -> list[float]:
        """Every process's `value`, in the order of ranks."""
        values = torch.zeros(self.size, dtype=torch.float64, device=self.device)
        values[self.rank] = value
        return self.sum(values).tolist()


def alone(device: str) -> World:
    """A program of one process."""
    return World(0, 1, torch.device(device))


@contextmanager
def joined(device: str, backend: str | None = None) -> Iterator[World]:
    """The processes that a launcher or mpirun started, with a process group until the end.

    Each takes a GPU of its machine if `device` is ``cuda``. `backend` is by default ``nccl`` for
    GPUs and ``gloo`` for CPUs; ``mpi`` learns from mpirun what the others learn from the launcher's
    environment. Ends the program if no launcher started it, or for fewer GPUs than processes.
    """
    backend = backend or ("nccl" if device == "cuda" else "gloo")
    if backend != "mpi" and "WORLD_SIZE" not in os.environ:
        raise SystemExit(f"no launcher started this process; start it by: {LAUNCH} MODULE")
    place = own_device(device)
    dist.init_process_group(backend)
    try:
        yield World(dist.get_rank(), dist.get_world_size(), place)
    finally:
        dist.destroy_process_group()


def own_device(device: str) -> torch.device:
    """The device of this process: on a machine with GPUs its own, which becomes the current one."""
    if device != "cuda":
        return torch.device(device)
    names = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    local = next((int(os.environ[name]) for name in names if name in os.environ), 0)
    if local >= torch.cuda.device_count():
        raise SystemExit(
            f"process {local} of this machine has no GPU: there are {torch.cuda.device_count()}"
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)
