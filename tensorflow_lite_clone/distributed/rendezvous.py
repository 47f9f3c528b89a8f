"""How the processes of a program find each other: a URL, or the environment, becomes a store."""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import MutableMapping, Sequence
from datetime import timedelta
from urllib.parse import SplitResult, parse_qs, urlsplit

from tensorflow_lite_clone.distributed.constants import default_pg_timeout
from tensorflow_lite_clone.distributed.errors import DistStoreError
from tensorflow_lite_clone.distributed.store import FileStore, PrefixStore, Store
from tensorflow_lite_clone.distributed.tcp_store import TCPStore

__all__ = ["adopt_launcher", "rendezvous"]

#: What each launcher calls a variable: torchrun, Open MPI, PMIx, MPICH and Intel MPI, SLURM.
_NAMES = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"),
}


def rendezvous(
    url: str = "env://",
    rank: int = -1,
    world_size: int = -1,
    timeout: timedelta = default_pg_timeout,
) -> tuple[Store, int, int]:
    """Meet the other processes; returns when all have come.

    Args:
        url: ``env://`` reads ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` from the
            environment, and takes from `adopt_launcher` what is not there. ``tcp://host:port``
            names where rank 0 listens, ``file:///path`` a file that all can write and that does
            not exist yet. ``?rank=0&world_size=4`` may follow.
        rank: The number of this process; -1 if the URL or the environment tells.
        world_size: How many processes there are; -1 as above.
        timeout: How long to wait for the others, and later for a key of the store.

    Returns:
        A store of this meeting's own, the rank, and the world's size.

    Raises:
        ValueError: The rank, the size or the address is told nowhere, or does not make sense.
        DistNetworkError: Nobody listens, or this process cannot.
        DistStoreError: Some ranks did not come; the message names them.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlsplit(url)
    if parts.scheme not in _MASTERS:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    if parts.scheme == "tcp" and not (parts.hostname and parts.port):
        raise _missing("tcp", "port number missing")
    if parts.scheme == "file" and not parts.netloc + parts.path:
        raise _missing("file", "path missing")
    if parts.scheme == "env":
        adopt_launcher(os.environ)
    rank = _number(parts, "rank") if rank < 0 else rank
    world_size = _number(parts, "world_size") if world_size < 0 else world_size
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is outside of a world of {world_size}")
    store = _MASTERS[parts.scheme](parts, rank, world_size, timeout)
    store.set_timeout(timeout)
    return _meet(store, rank, world_size, timeout), rank, world_size


def adopt_launcher(environment: MutableMapping[str, str]) -> None:
    """Say in torchrun's words what ``mpirun`` or SLURM's ``srun`` has told a process.

    ``RANK`` and ``WORLD_SIZE`` are set where both are missing, ``LOCAL_RANK`` where it is.
    ``MASTER_ADDR`` and ``MASTER_PORT`` are set under SLURM (the first host of the step; a port from
    20000 to 29999 that the number of the job gives), and under Open MPI on one host.
    """
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        for name in ("RANK", "WORLD_SIZE"):
            _adopt(environment, name)
    if "RANK" in environment:
        _adopt(environment, "LOCAL_RANK")
    hosts = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    if hosts and "SLURM_JOB_ID" in environment:
        job = f"{environment['SLURM_JOB_ID']}.{environment.get('SLURM_STEP_ID', '')}"
        environment.setdefault("MASTER_ADDR", first_host(hosts))
        environment.setdefault("MASTER_PORT", _port(job))
    job = environment.get("PMIX_NAMESPACE", "")
    sizes = [environment.get(f"OMPI_COMM_WORLD_{part}SIZE") for part in ("", "LOCAL_")]
    if job and sizes[0] is not None and sizes[0] == sizes[1]:
        environment.setdefault("MASTER_ADDR", "127.0.0.1")
        environment.setdefault("MASTER_PORT", _port(job))


def _adopt(environment: MutableMapping[str, str], name: str) -> None:
    for other in _NAMES[name]:
        if name not in environment and other in environment:
            environment[name] = environment[other]


def _port(job: str) -> str:
    """A port for the name of a job: below those that systems give to connections."""
    return str(20000 + zlib.crc32(job.encode()) % 10000)


def first_host(hosts: str) -> str:
    """The first host of SLURM's list: ``a07`` of ``a[07-12,20],b1``."""
    first = re.match(r"(\[[^]]*\]|[^,\[])*", hosts)
    return re.sub(r"\[([^],-]*)[^]]*\]", r"\1", first[0]) if first else hosts


def _number(parts: SplitResult, name: str) -> int:
    given = parse_qs(parts.query).get(name)
    if given:
        return int(given[0])
    if parts.scheme == "env":
        return int(_from_environment(name.upper()))
    raise _missing(parts.scheme, f"{name.replace('_', ' ')} parameter missing")


def _from_environment(name: str) -> str:
    if name not in os.environ:
        raise _missing("env", f"environment variable {name} expected, but not set")
    return os.environ[name]


def _missing(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _at_address(host: str, port: int, rank: int, timeout: timedelta) -> Store:
    """The store of rank 0, or of the launcher, which each of its attempts shares with no other."""
    address = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    launched = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if launched and address == (host, str(port)):
        store = TCPStore(host, port, timeout=timeout)
        return PrefixStore(f"attempt_{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    return TCPStore(
        host, port, is_master=rank == 0, timeout=timeout, wait_for_workers=False, multi_tenant=True
    )


def _of_environment(parts: SplitResult, rank: int, world_size: int, timeout: timedelta) -> Store:
    host, port = _from_environment("MASTER_ADDR"), int(_from_environment("MASTER_PORT"))
    return _at_address(host, port, rank, timeout)


def _of_address(parts: SplitResult, rank: int, world_size: int, timeout: timedelta) -> Store:
    return _at_address(parts.hostname or "", parts.port or 0, rank, timeout)


def _of_file(parts: SplitResult, rank: int, world_size: int, timeout: timedelta) -> Store:
    return FileStore(parts.netloc + parts.path, world_size)


_MASTERS = {"env": _of_environment, "tcp": _of_address, "file": _of_file}


def _meet(store: Store, rank: int, world_size: int, timeout: timedelta) -> Store:
    """Wait for all ranks. The store may have seen earlier meetings: each rank counts its own.

    Whoever has waited long enough marks the ranks that are missing, so that all see the same.
    """
    meeting = store.add(f"meetings_of_rank_{rank}", 1)
    store = PrefixStore(f"meeting_{meeting}", store)
    keys = [f"rank_{one}" for one in range(world_size)]
    store.compare_set(keys[rank], "", "here")
    try:
        found = store.multi_get(keys)
    except DistStoreError:
        for key in keys:
            store.compare_set(key, "", "missing")
        found = store.multi_get(keys)
    if b"missing" not in found:
        return store
    store.set(f"told_{rank}", "")
    here = [f"told_{one}" for one in range(world_size) if found[one] == b"here"]
    if rank == 0:  # which may hold the store
        with contextlib.suppress(DistStoreError):
            store.wait(here, timedelta(seconds=5))
    missing = [one for one in range(world_size) if found[one] == b"missing"]
    raise DistStoreError(
        f"{_listed(missing)} of {world_size} did not come within {timeout.total_seconds():g} "
        f"seconds; this is rank {rank}"
    )


def _listed(ranks: Sequence[int]) -> str:
    *most, last = map(str, ranks)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last}"
