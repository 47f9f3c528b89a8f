"""`elastic_launch` starts workers that run a function, or a command, and waits for them."""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing import spawn
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.distributed.elastic import call
from tensorflow_lite_clone.distributed.elastic.agent import Job, launch
from tensorflow_lite_clone.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, Logs
from tensorflow_lite_clone.multiprocessing._folder import TemporaryFolder

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """What is to be started.

    Attributes:
        min_nodes: The least number of machines.
        max_nodes: The largest.
        nproc_per_node: How many workers each has.
        logs_specs: Where workers print.
        run_id: The name of the job.
        role: The name of the workers.
        rdzv_endpoint: ``HOST:PORT`` where the launchers of several machines meet.
        rdzv_backend: ``c10d``, or ``static`` with the machine's number in ``rdzv_configs["rank"]``.
        rdzv_configs: ``timeout`` is how many seconds launchers wait for each other.
        rdzv_timeout: The same; -1 for ten minutes.
        max_restarts: How often all workers are started again when one fails.
        monitor_interval: Ignored.
        start_method: Ignored: workers are new processes.
        local_addr: The name of this machine.
        signals_to_handle: The signals that end the workers.
        shutdown_timeout: Seconds from a signal to SIGKILL; None for 5.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: DefaultLogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    local_addr: str | None = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    shutdown_timeout: int | None = None


class elastic_launch:  # noqa: N801  (PyTorch's name)
    """Calling the object calls a function in every worker; see `launch_agent`."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str, args: Sequence[Any]
) -> dict[int, Any]:
    """Start workers and wait for their end.

    Args:
        config: How many, and how.
        entrypoint: A function that can be pickled, or a command.
        args: Its arguments; those of a command are text.

    Returns:
        What the function gave on each rank of this machine; None for a command.

    Raises:
        ValueError: The configuration does not make sense.
        ChildFailedError: A worker failed.
        DistError: The launchers did not meet.
    """
    logs = config.logs_specs or DefaultLogsSpecs()
    prefix = f"{config.run_id}_"
    with ExitStack() as stack:
        if logs.log_dir is None:
            folder = Path(stack.enter_context(closing(TemporaryFolder(prefix))).path)
        else:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=logs.log_dir))
        if isinstance(entrypoint, str):
            command, program = [entrypoint, *map(str, args)], entrypoint
        else:
            program = getattr(entrypoint, "__qualname__", type(entrypoint).__qualname__)
            command = _calling(entrypoint, args, folder)
        folders = launch(_job(config, command, program, logs, folder))
        if isinstance(entrypoint, str):
            return dict.fromkeys(folders)
        return {rank: call.result(place) for rank, place in folders.items()}


def _calling(function: Callable[..., Any], args: Sequence[Any], folder: Path) -> list[str]:
    """The command of a worker that calls a function."""
    preparation = spawn.get_preparation_data("worker")
    del preparation["authkey"]  # it may not be written
    path = folder / "call.pickle"
    with open(path, "wb") as file:
        pickle.dump(preparation, file)
        pickle.dump((function, args), file)
    package = str(Path(__file__).parents[3])
    code = f"import sys; sys.path.append({package!r}); import {call.__name__} as call; call.main()"
    return [sys.executable, "-u", "-c", code, str(path)]


def _job(
    config: LaunchConfig, command: list[str], program: str, logs: DefaultLogsSpecs, folder: Path
) -> Job:
    if config.rdzv_backend not in ("static", "c10d"):
        raise ValueError(f"rdzv_backend is 'static' or 'c10d' here, not {config.rdzv_backend!r}")
    host, _, port = config.rdzv_endpoint.rpartition(":")
    if config.max_nodes > 1 and not host:
        raise ValueError(f"rdzv_endpoint is HOST:PORT, not {config.rdzv_endpoint!r}")
    timeout = config.rdzv_configs.get("timeout", config.rdzv_timeout)
    job = Job(
        command,
        program=program,
        workers=config.nproc_per_node,
        logs=Logs(folder, logs.redirects, logs.tee, logs.local_ranks_filter, config.role),
        nodes=(config.min_nodes, config.max_nodes),
        node=int(config.rdzv_configs.get("rank", 0)) if config.rdzv_backend == "static" else None,
        address=(host, int(port)) if host else ("127.0.0.1", 0),
        name=config.run_id or "none",
        role=config.role,
        max_restarts=config.max_restarts,
        timeout=float(timeout) if timeout > 0 else 600.0,
        grace=5.0 if config.shutdown_timeout is None else config.shutdown_timeout,
        signals=config.signals_to_handle.split(","),
    )
    job.host = config.local_addr or job.host
    return job
