"""``python -m tests.bench [GROUP]``: ratios of our times to torch's, measured interleaved.

With ``--device cuda`` the groups are those for a GPU.
"""

from __future__ import annotations

import argparse
import math
import os
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")

import torch  # noqa: E402

import tensorflow_lite_clone as tlc  # noqa: E402
from tests.bench import cuda_kernels, cuda_steps, overhead  # noqa: E402
from tests.bench.timing import interleaved, nothing  # noqa: E402

GROUPS = {group.NAME: group for group in (overhead, cuda_steps, cuda_kernels)}


def main() -> int:
    """Print a table of times and ratios per group."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("groups", nargs="*", default=[], choices=[[], *GROUPS], help="default: all")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--captured", action="store_true", help="both sides as CUDA graphs: the device's time alone"
    )
    options = parser.parse_args()
    torch.set_num_threads(2)
    names = [n for n, g in GROUPS.items() if getattr(g, "DEVICE", "cpu") == options.device]
    for name in options.groups or names:
        table(GROUPS[name], options)
    return 0


def captured(lib, group):
    """The cases of a group as replays of graphs; what they are given is made on the same stream."""
    side = lib.cuda.Stream()
    with lib.cuda.stream(side):
        for case in group.cases(lib):
            for _ in range(3):
                case.call()
            lib.cuda.synchronize()
            graph = lib.cuda.CUDAGraph()
            with lib.cuda.graph(graph, stream=side):
                case.call()
            yield case._replace(call=graph.replay)


def table(group, options: argparse.Namespace) -> None:
    """Measure one group."""
    on_gpu = options.device == "cuda"
    where = f"2 threads, torch {torch.__version__}"
    if on_gpu:
        where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    how = ", captured" if options.captured else ""
    print(f"{group.NAME}{how}: {where}, medians of {options.rounds} rounds")
    print(f"{'case':40}{'ours us':>10}{'torch us':>10}{'ratio':>8}{'TB/s':>8}")
    wait = torch.cuda.synchronize if on_gpu else nothing
    logs = []
    sides = [group.cases(lib) for lib in (tlc, torch)]
    if options.captured:
        sides = [captured(lib, group) for lib in (tlc, torch)]
    for ours, theirs in zip(*sides, strict=True):
        mine, other, ratio = interleaved(ours[1], theirs[1], rounds=options.rounds, wait=wait)
        logs.append(math.log(ratio))
        moved = ours[2] if len(ours) > 2 else 0
        speed = f"{moved / mine / 1e12:8.2f}" if moved else ""
        print(f"{ours[0]:40}{mine * 1e6:10.2f}{other * 1e6:10.2f}{ratio:8.2f}{speed}", flush=True)
    print(f"{'geometric mean':60}{math.exp(sum(logs) / len(logs)):8.2f}")


if __name__ == "__main__":
    sys.exit(main())
