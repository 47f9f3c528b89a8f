"""The launcher, ``python -m torch.distributed.run``: starts a program as several processes.

Everything about it stands in docs/launching.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.distributed.elastic.agent import Job, launch
from tensorflow_lite_clone.distributed.elastic.multiprocessing.api import (
    Logs,
    SignalException,
    Std,
)
from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import ChildFailedError
from tensorflow_lite_clone.distributed.errors import DistError
from tensorflow_lite_clone.multiprocessing._folder import TemporaryFolder


class _Parser(argparse.ArgumentParser):
    """Options are spelled with dashes or underscores; ``PET_NNODES`` is the default of one."""

    def option(self, name: str, default: Any = None, **how: Any) -> None:
        given = os.environ.get(f"PET_{name.upper()}")
        spellings = dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}"))
        short = {"redirects": ["-r"], "tee": ["-t"], "module": ["-m"]}.get(name, [])
        if how.get("action") == "store_true":
            default = given == "1"
        elif given is not None:
            default = how.get("type", str)(given)
        self.add_argument(*short, *spellings, default=default, **how)


def get_args_parser() -> argparse.ArgumentParser:
    """The launcher's options."""
    parser = _Parser(prog="torchrun", description="Starts a program as several processes.")
    parser.option("nnodes", "1:1", help="machines, or MIN:MAX of them")
    parser.option("nproc_per_node", "1", help="processes on this machine: N, auto, cpu, gpu")
    parser.option("rdzv_backend", "static", choices=("static", "c10d"))
    parser.option("rdzv_endpoint", "", help="HOST[:PORT] where the launchers meet")
    parser.option("rdzv_id", "none", help="a name of the job")
    parser.option("rdzv_conf", "", help="timeout=SECONDS: how long to wait for other machines")
    parser.option("standalone", action="store_true", help="one machine, on a free port")
    parser.option("max_restarts", 0, type=int, help="how often to start again after a failure")
    parser.option("monitor_interval", 0.1, type=float, help="ignored: ends are noticed at once")
    parser.option("start_method", "spawn", choices=("spawn", "fork", "forkserver"), help="ignored")
    parser.option("role", "default", help="a name of the workers")
    parser.option("module", action="store_true", help="the program is a module")
    parser.option("no_python", action="store_true", help="the program is no Python program")
    parser.option("run_path", action="store_true", help="run the program by runpy.run_path")
    parser.option("log_dir", help="a folder for what workers print")
    parser.option("redirects", "0", help="what goes to files: 1 stdout, 2 stderr, 3 both; RANK:N,")
    parser.option("tee", "0", help="what goes to files and to the console, likewise")
    parser.option("local_ranks_filter", "", help="the local ranks that print on the console")
    parser.option("node_rank", 0, type=int, help="the number of this machine")
    parser.option("master_addr", "127.0.0.1", help="the machine of node 0")
    parser.option("master_port", None, type=int, help="its port, 29500 if there are several")
    parser.option("local_addr", help="the name of this machine, for messages")
    parser.option("signals_to_handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="what ends workers")
    parser.option("shutdown_timeout", 5, type=int, help="seconds from a signal to SIGKILL")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def run(args: argparse.Namespace) -> None:
    """Start a program, and wait for its end.

    Raises:
        ValueError: The options do not make sense together.
        ChildFailedError: A worker failed.
        SignalException: A signal ended this process.
        DistError: The launchers of several machines did not meet, or one of them has gone.
    """
    kept = args.log_dir or args.redirects != "0" or args.tee != "0"
    if args.log_dir:
        os.makedirs(args.log_dir, exist_ok=True)
    prefix = f"{args.rdzv_id}_"
    if kept:
        job = job_of(args, Path(tempfile.mkdtemp(prefix=prefix, dir=args.log_dir)))
        print(f"what workers print goes to {job.logs.folder}", file=sys.stderr, flush=True)
        launch(job)
        return
    with closing(TemporaryFolder(prefix)) as folder:
        launch(job_of(args, Path(folder.path)))


def job_of(args: argparse.Namespace, folder: Path) -> Job:
    """What the options ask for; logs go below `folder`."""
    least, _, most = str(args.nnodes).partition(":")
    nodes = int(least), int(most or least)
    workers = processes(str(args.nproc_per_node))
    if not 0 < nodes[0] <= nodes[1] or workers < 1:
        raise ValueError(f"{args.nnodes} machines with {args.nproc_per_node} processes each")
    shown = [int(rank) for rank in str(args.local_ranks_filter).split(",") if rank]
    options = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if pair)
    name, node, address = args.rdzv_id, args.node_rank, _address(args, nodes)
    if args.rdzv_backend == "c10d":
        node = None
    if nodes == (1, 1) and not address[1]:
        node, name = 0, str(uuid.uuid4()) if name == "none" else name
    return Job(
        command(args),
        program=args.training_script,
        workers=workers,
        logs=Logs(
            folder,
            redirects=Std.from_str(args.redirects),
            tee=Std.from_str(args.tee),
            shown=frozenset(shown) or None,
            prefix=args.role,
        ),
        nodes=nodes,
        node=node,
        address=address,
        name=name,
        role=args.role,
        max_restarts=args.max_restarts,
        timeout=float(options.get("join_timeout") or options.get("timeout") or 600),
        grace=args.shutdown_timeout,
        signals=args.signals_to_handle.split(","),
        environment=_environment(workers),
        **({"host": args.local_addr} if args.local_addr else {}),
    )


def _address(args: argparse.Namespace, nodes: tuple[int, int]) -> tuple[str, int]:
    """Where the launchers meet; one that is alone takes a free port if it was told none."""
    if args.standalone:
        return "127.0.0.1", 0
    if args.rdzv_endpoint:
        host, colon, port = args.rdzv_endpoint.rpartition(":")
        return (host.strip("[]"), int(port)) if colon else (port, 29400)
    return args.master_addr, args.master_port or (0 if nodes == (1, 1) else 29500)


def processes(asked: str) -> int:
    """How many processes ``--nproc-per-node`` means. Raises ValueError without a GPU for gpu."""
    gpus = cuda.device_count() if asked in ("auto", "gpu") else 0
    if asked == "gpu" and not gpus:
        raise ValueError("--nproc-per-node=gpu: there is no GPU here")
    if asked in ("auto", "cpu", "gpu"):
        return gpus or os.cpu_count() or 1
    return int(asked)


def command(args: argparse.Namespace) -> list[str]:
    """The command of a worker."""
    program = [args.training_script, *args.training_script_args]
    if args.run_path:
        runner = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], None, '__main__')"
        return [sys.executable, "-u", "-c", runner, *program]
    if args.no_python:
        if args.module:
            raise ValueError("--no-python and --module do not go together")
        return program
    return [sys.executable, "-u", *(["-m"] if args.module else []), *program]


def _environment(workers: int) -> dict[str, str]:
    """What workers need beside their places."""
    if workers == 1 or "OMP_NUM_THREADS" in os.environ:
        return {}
    print("OMP_NUM_THREADS is not set: each process has one thread", file=sys.stderr)
    return {"OMP_NUM_THREADS": "1"}


def main(args: list[str] | None = None) -> None:
    """The command; see `run`."""
    run(get_args_parser().parse_args(args))


def command_line() -> int:
    """The command with an exit status, 1 where workers or launchers failed."""
    try:
        main()
    except (ChildFailedError, DistError, SignalException) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(command_line())
