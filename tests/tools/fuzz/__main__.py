"""The command line."""

from __future__ import annotations

import argparse
import sys
import time

from tests.op_db._check import OURS
from tests.tools import fuzz
from tests.tools.fuzz.judging import skipped


def main(arguments: list[str]) -> int:
    """Run the calls; 1 when one differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz", description=fuzz.__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one call")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    only = options.only
    numbers = range(options.calls) if only is None else range(only, only + 1)
    found = fuzz.run(options.seed, numbers)
    seconds = time.monotonic() - start
    print(f"{len(numbers)} calls on {OURS.device}, {sum(found.values())} differ ({seconds:.0f} s)")
    for name, count in found.most_common():
        print(f"{count:6} {name}")
    for reason, count in skipped.most_common():
        print(f"{count:6} not compared: {reason}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
