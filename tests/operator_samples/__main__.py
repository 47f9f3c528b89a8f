"""``python -m tests.operator_samples [--kinds forward errors] [--only REGEX] [--verbose]``

Prints, for each kind of check, of how many names every sample agrees with PyTorch, and which do
not. It takes about ten minutes for all; `--jobs` processes share the names.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import signal
import sys
import traceback
import warnings
from collections import defaultdict
from typing import Any

from torch.testing._internal.common_methods_invocations import op_db

from tests.operator_samples.checks import KINDS, Nothing, brief

LIMIT = 120  # seconds for one name and kind


def _table(only: str) -> dict[str, list[Any]]:
    """Name -> its entries in PyTorch's table, without those that no CPU serves and those that
    are written over `torch.ops`, PyTorch's own registry."""
    found: dict[str, list[Any]] = defaultdict(list)
    for op in op_db:
        registry = type(op.op).__module__ == "torch._ops" or op.name.startswith("torch.")
        registry = registry or "aten" in getattr(getattr(op.op, "__code__", None), "co_names", ())
        if op.supported_dtypes("cpu") and not registry and re.search(only, op.name):
            found[op.name].append(op)
    return dict(found)


def _late(*_: Any) -> None:
    raise TimeoutError(f"longer than {LIMIT} s")


def _check(task: tuple[str, str, bool]) -> tuple[str, str, str | None]:
    """(kind, name, outcome): what differs, "" where nothing does, None without a sample."""
    kind, name, verbose = task
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    outcome: str | None = None
    for op in _table(f"^{re.escape(name)}$")[name]:
        signal.alarm(LIMIT)
        try:
            KINDS[kind](op)
            outcome = outcome or ""
        except Nothing:
            pass
        except Exception as error:
            outcome = brief(error)
            if verbose:
                traceback.print_exc()
        finally:
            signal.alarm(0)
    return kind, name, outcome


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="tests.operator_samples", description=__doc__)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--only", default="", metavar="REGEX", help="names to run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print whole tracebacks")
    given = parser.parse_args()
    tasks = [(kind, name, given.verbose) for kind in given.kinds for name in _table(given.only)]
    if given.jobs > 1:
        with multiprocessing.Pool(given.jobs) as pool:
            results = pool.map(_check, tasks, chunksize=4)
    else:
        results = [_check(task) for task in tasks]
    for kind in given.kinds:
        outcomes = {
            name: outcome for k, name, outcome in results if k == kind and outcome is not None
        }
        failed = {name: outcome for name, outcome in outcomes.items() if outcome}
        for name, outcome in failed.items():
            print(f"{kind:16} {name:40} {outcome}")
        good = len(outcomes) - len(failed)
        share = 100 * good / len(outcomes) if outcomes else 100.0
        print(f"== {kind}: {good} of {len(outcomes)} names ({share:.1f} %)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
