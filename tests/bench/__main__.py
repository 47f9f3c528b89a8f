"""``python -m tests.bench [GROUP]``: ratios of our times to torch's, measured interleaved."""

from __future__ import annotations

import argparse
import math
import os
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")

import torch  # noqa: E402

import tensorflow_lite_clone as tlc  # noqa: E402
from tests.bench import overhead  # noqa: E402
from tests.bench.timing import interleaved  # noqa: E402

GROUPS = {group.NAME: group for group in (overhead,)}


def main() -> int:
    """Print a table of times and ratios per group."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("groups", nargs="*", default=[], choices=[[], *GROUPS], help="default: all")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(2)
    for name in options.groups or GROUPS:
        group = GROUPS[name]
        print(f"{name}: torch {torch.__version__}, 2 threads, medians of {options.rounds} rounds")
        print(f"{'case':32}{'ours us':>10}{'torch us':>10}{'ratio':>8}")
        logs = []
        for (case, ours), (_, theirs) in zip(group.cases(tlc), group.cases(torch), strict=True):
            mine, other, ratio = interleaved(ours, theirs, rounds=options.rounds)
            logs.append(math.log(ratio))
            print(f"{case:32}{mine * 1e6:10.2f}{other * 1e6:10.2f}{ratio:8.2f}", flush=True)
        print(f"{'geometric mean':52}{math.exp(sum(logs) / len(logs)):8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
