"""``python -m tests.bench``: our times beside others', measured in turns.

On the CPU the ratio of ours to torch's. With ``--device cuda`` whole training steps and single
functions, eager and as graphs, beside torch and JAX (``--against torch,jax``); ``--out FILE`` keeps
them for ``python -m tests.bench.report FILE``.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")

import torch  # noqa: E402

import tensorflow_lite_clone as tlc  # noqa: E402
from tests.bench import cuda_table, overhead  # noqa: E402
from tests.bench.timing import interleaved  # noqa: E402


def main() -> int:
    """Print a table of times."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("group", nargs="?", choices=[overhead.NAME], help="all there is on the CPU")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, help="default: 15 on the CPU, 7 on a GPU")
    cuda_table.add_options(parser.add_argument_group("with --device cuda"))
    options = parser.parse_args()
    if options.device == "cuda":
        options.rounds = options.rounds or 7
        cuda_table.run(options)
    else:
        cpu_table(options.rounds or 15)
    return 0


def cpu_table(rounds: int) -> None:
    """Times and ratios of small operations."""
    torch.set_num_threads(2)
    print(f"{overhead.NAME}: 2 threads, torch {torch.__version__}, medians of {rounds} rounds")
    print(f"{'case':40}{'ours us':>10}{'torch us':>10}{'ratio':>8}")
    ratios = []
    for ours, theirs in zip(overhead.cases(tlc), overhead.cases(torch), strict=True):
        mine, other, ratio = interleaved(ours[1], theirs[1], rounds=rounds)
        ratios.append(math.log(ratio))
        print(f"{ours[0]:40}{mine * 1e6:10.2f}{other * 1e6:10.2f}{ratio:8.2f}", flush=True)
    print(f"{'geometric mean':60}{math.exp(statistics.fmean(ratios)):8.2f}")


if __name__ == "__main__":
    sys.exit(main())
