"""The command of a suite: which kinds and names it runs, and what it prints."""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from tests.samples.comparison import Nothing, brief

LIMIT = 120  # seconds of the processor for one name and kind

Kinds = dict[str, Callable[[Any], None]]
Table = dict[str, list[Any]]


def _late(*_: Any) -> None:
    raise TimeoutError(f"longer than {LIMIT} s")


def _check(
    kinds: Kinds, table: Callable[[], Table], verbose: bool, task: tuple[str, str]
) -> tuple[str, str, str | None]:
    """(kind, name, outcome): what differs, "" where nothing does, None without a sample."""
    kind, name = task
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _late)
    outcome: str | None = None
    for entry in table()[name]:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            kinds[kind](entry)
            outcome = outcome or ""
        except Nothing:
            pass
        except Exception as error:
            outcome = brief(error)
            if verbose:
                traceback.print_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return kind, name, outcome


def main(name: str, about: str | None, kinds: Kinds, table: Callable[[], Table]) -> int:
    """Run the command ``python -m name`` with this account of itself.

    `kinds` has a function per kind of check, which raises where an entry differs, and `Nothing`
    where it has no sample; `table` gives the entries by name.
    """
    parser = argparse.ArgumentParser(
        prog=name, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="*", choices=kinds, default=list(kinds))
    parser.add_argument("--only", default="", metavar="REGEX", help="names to run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print whole tracebacks")
    given = parser.parse_args()
    names = [name for name in table() if re.search(given.only, name)]
    tasks = [(kind, name) for kind in given.kinds for name in names]
    check = functools.partial(_check, kinds, table, given.verbose)
    if given.jobs > 1:
        with multiprocessing.Pool(given.jobs) as pool:
            _report(pool.imap(check, tasks, chunksize=4))
    else:
        _report(map(check, tasks))
    return 0


def _report(results: Iterable[tuple[str, str, str | None]]) -> None:
    """Print a kind's failures and its count as soon as they are known."""
    for kind, group in itertools.groupby(results, key=lambda result: result[0]):
        outcomes = {name: outcome for _, name, outcome in group if outcome is not None}
        failed = {name: outcome for name, outcome in outcomes.items() if outcome}
        for name, outcome in failed.items():
            print(f"{kind:16} {name:40} {outcome}")
        good = len(outcomes) - len(failed)
        share = 100 * good / len(outcomes) if outcomes else 100.0
        print(f"== {kind}: {good} of {len(outcomes)} names ({share:.1f} %)", flush=True)
