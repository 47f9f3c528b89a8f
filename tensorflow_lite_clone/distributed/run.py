"""The launcher, ``python -m torch.distributed.run``: starts a program as one process, so far."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

__all__ = ["get_args_parser", "main", "run"]


def get_args_parser() -> argparse.ArgumentParser:
    """The launcher's options."""
    parser = argparse.ArgumentParser(prog="torchrun", description=__doc__)
    parser.add_argument("--nnodes", default="1:1", help="machines, or MIN:MAX of them")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", default="1")
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0)
    parser.add_argument("--rdzv-backend", "--rdzv_backend", default="static")
    parser.add_argument("--rdzv-endpoint", "--rdzv_endpoint", default="")
    parser.add_argument("--rdzv-id", "--rdzv_id", default="none")
    parser.add_argument("--standalone", action="store_true")
    parser.add_argument("--max-restarts", "--max_restarts", type=int, default=0)
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1")
    parser.add_argument("--master-port", "--master_port", type=int, default=29500)
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("--no-python", "--no_python", action="store_true")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def run(args: argparse.Namespace) -> None:
    """Start the program with the environment of one process; ends with its exit status."""
    nodes, per_node = str(args.nnodes).rpartition(":")[2], str(args.nproc_per_node)
    if (nodes, per_node) not in (("1", "1"), ("1", "auto"), ("1", "cpu")):
        raise NotImplementedError(
            f"{nodes} machines with {per_node} processes each: programs are of one process, so far "
            "(planned: several devices and processes)"
        )
    environment = dict(os.environ)
    for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "TORCHELASTIC_RESTART_COUNT"):
        environment[name] = "0"
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"):
        environment[name] = "1"
    environment["MASTER_ADDR"] = args.master_addr
    environment["MASTER_PORT"] = str(args.master_port)
    environment["TORCHELASTIC_RUN_ID"] = args.rdzv_id
    environment["TORCHELASTIC_MAX_RESTARTS"] = str(args.max_restarts)
    command = [] if args.no_python else [sys.executable, "-u"]
    command += ["-m"] if args.module else []
    command += [args.training_script, *args.training_script_args]
    for _ in range(args.max_restarts + 1):
        status = subprocess.run(command, env=environment, check=False).returncode
        if not status:
            return
        restarts = int(environment["TORCHELASTIC_RESTART_COUNT"]) + 1
        environment["TORCHELASTIC_RESTART_COUNT"] = str(restarts)
    sys.exit(status)


def main(args: list[str] | None = None) -> None:
    """The command."""
    run(get_args_parser().parse_args(args))


if __name__ == "__main__":
    main()
