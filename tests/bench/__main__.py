"""``python -m tests.bench``: our times beside others', measured in turns.

On the CPU (``--device cpu``, the default) functions of eight floats, large functions forward and
with their gradients, training steps and inference, eager and compiled, and the memory that steps
take: times, ratios to torch's and their geometric means by group. ``--groups`` and ``--only``
choose rows. Where numba serves the CPU the columns are "ours numba ..."; the environment variable
TENSORFLOW_LITE_CLONE_NUMBA=0 measures without it, and the report joins the files of both. Those who
share a process share malloc, whose habits the work of the other changes: ``--contenders`` measures
them in processes apart, of which the report makes the ratios.

With ``--device cuda`` whole training steps and single functions, eager and as graphs, beside torch
and JAX (``--against torch,jax``).

``--out FILE`` keeps the figures for ``python -m tests.bench.report FILE``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")

import tensorflow_lite_clone  # noqa: E402, F401  which wants to load NumPy

# isort: split
from tests.bench import cpu_table, cuda_table  # noqa: E402


def main() -> int:
    """Print a table of times."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, help="default: 5 on the CPU, 7 on a GPU")
    parser.add_argument(
        "--against", default="torch", help="of torch,jax (jax on a GPU); empty for none"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="rows by name")
    parser.add_argument(
        "--groups", nargs="+", default=[], metavar="GROUP", help="rows of the CPU by group"
    )
    parser.add_argument(
        "--contenders", nargs="+", default=[], metavar="NAME", help="columns of the table by name"
    )
    parser.add_argument("--all", action="store_true", help="also the GPU's rows without a goal")
    parser.add_argument(
        "--compile", metavar="MODE", help="also torch.compile, such as default; it is slow"
    )
    parser.add_argument("--out", type=Path, help="JSON file for what was found")
    options = parser.parse_args()
    options.rounds = options.rounds or {"cpu": 5, "cuda": 7}[options.device]
    (cpu_table if options.device == "cpu" else cuda_table).run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
