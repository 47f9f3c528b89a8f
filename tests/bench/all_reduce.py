"""``python -m tests.bench.all_reduce``: all-reduce by size, ours and others'.

It is started in each process, by our launcher, or with ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``,
``MASTER_ADDR`` and ``MASTER_PORT`` set by hand: where our launcher starts it, ``import torch``
means this package, and PyTorch is not compared.

Each size is reduced by us, by NCCL called with nothing of ours around it, and by PyTorch where it
is installed for the device, in turns in the same processes. The table has the median time of a
call within a row of calls, and the bus bandwidth of nccl-tests' PERFORMANCE.md, 2 (n - 1) / n
times the bytes over the time, which does not depend on the number of ranks n.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.distributed as dist

CALLS = 10  # between two looks at the clock


def contenders(size: int, device: str) -> dict[str, Callable[[], Any]]:
    """What reduces `size` float32 elements, by name."""
    ours = tlc.ones(size, device=device)
    found = {"ours": lambda: dist.all_reduce(ours)}
    if device == "cuda":
        channel = dist.group.WORLD.engine("cuda")._on()  # type: ignore[union-attr]
        array = ours._storage.array
        found["NCCL"] = lambda: channel.all_reduce(array, ours.dtype, "SUM")
    if theirs := torch_world(device):
        tensor = theirs.ones(size, device=device)
        found["PyTorch"] = lambda: theirs.distributed.all_reduce(tensor)
    return found


def torch_world(device: str) -> Any:
    """PyTorch with a process group, None where it has none for the device."""
    try:
        import torch
    except ImportError:
        return None
    if torch.__version__ == tlc.__version__:
        return None
    if device == "cuda" and not torch.cuda.is_available():
        return None
    if not torch.distributed.is_initialized():
        if device == "cuda":
            torch.cuda.set_device(tlc.cuda.current_device())
        port = int(os.environ["MASTER_PORT"]) + 1
        torch.distributed.init_process_group(
            dist.get_backend(),
            f"tcp://{os.environ['MASTER_ADDR']}:{port}",
            rank=dist.get_rank(),
            world_size=dist.get_world_size(),
        )
    return torch


def seconds_of(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """The time of one call, of a row of them."""
    wait()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    wait()
    return (time.perf_counter() - begin) / CALLS


def measure(size: int, device: str, rounds: int) -> dict[str, float]:
    """The median time of each contender, in turns."""
    found = contenders(size, device)
    wait = tlc.cuda.synchronize if device == "cuda" else lambda: None
    times: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(rounds + 1):
        for name, call in found.items():
            elapsed = seconds_of(call, wait)
            if turn:  # the first is a warm-up
                times[name].append(elapsed)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    """Print a table on rank 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.all_reduce", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2**n for n in range(12, 31, 3)])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--log", type=Path, help="also write the figures to this JSON file")
    options = parser.parse_args()
    if options.device == "cuda":
        tlc.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    ranks, rows = dist.get_world_size(), []
    for nbytes in options.sizes:
        times = measure(nbytes // 4, options.device, options.rounds)
        rows.append({"bytes": nbytes, "ranks": ranks, "seconds": times})
        if dist.get_rank() == 0:
            factor = 2 * (ranks - 1) / ranks * nbytes / 1e9
            cells = [f"{who} {t * 1e6:9.1f} us {factor / t:7.1f} GB/s" for who, t in times.items()]
            print(f"{nbytes:>11} bytes  " + "  ".join(cells), flush=True)
    if options.log and dist.get_rank() == 0:
        options.log.write_text(json.dumps(rows, indent=1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
