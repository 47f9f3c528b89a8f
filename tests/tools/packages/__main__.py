"""Run the jobs of `tests/packages` by PyTorch and by this package, and write what came of it.

    python -m tests.tools.packages                    # everything; makes the two environments
    python -m tests.tools.packages timm peft/lora     # some packages, or jobs, alone
    python -m tests.tools.packages --imports timm     # all modules of timm imported, too
    python -m tests.tools.packages --imports-only     # those of all packages, and no jobs
    python -m tests.tools.packages --page             # the page anew from the results

Writes tests/packages/results.json and, from it, docs/packages.md and the table of the command
``python -m tensorflow_lite_clone packages``.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from tests.expected_skips import PINNED
from tests.packages.steps import MARK
from tests.tools.markdown import ROOT
from tests.tools.packages import page
from tests.tools.packages.compare import judged
from tests.tools.packages.environments import Environments, made, variables

FOLDER = ROOT / "tests" / "packages"
RESULTS = FOLDER / "results.json"
LIMIT = 900  # seconds for one job
IMPORTS_LIMIT = 3600  # seconds for one package's modules, each of which has its own limit


def lines(command: list[str], limit: int = LIMIT) -> tuple[list[Any], str]:
    """What a program of `tests/packages` printed for comparison, and the end of all it printed."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = subprocess.run(
                command,
                cwd=scratch,
                env=variables(scratch),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=limit,
                check=False,
            )
            text = done.stdout
        except subprocess.TimeoutExpired as error:
            text = (error.stdout or b"").decode(errors="replace") + f"\nstopped after {limit} s"
    marked = [line for line in text.splitlines() if line.startswith(MARK)]
    rest = [line for line in text.splitlines() if not line.startswith(MARK)]
    return [json.loads(line.removeprefix(MARK)) for line in marked], "\n".join(rest[-60:])


def job_results(job: Path, environments: Environments, verbose: bool) -> list[dict[str, Any]]:
    """How each step of a job ended: see `compare.judged`."""
    sides = [lines(environments.command("run.py", str(job), ours=ours)) for ours in (False, True)]
    if not sides[0][0]:
        raise RuntimeError(f"{job} ran no step under PyTorch:\n{sides[0][1]}")
    found = judged(*(steps for steps, _ in sides))
    if verbose and any(each["result"] not in ("equal", "not judged") for each in found):
        print(sides[1][1])
    return found


def import_results(module: str, environments: Environments) -> dict[str, Any]:
    """How many modules of a package can be imported by each, and which only by PyTorch."""
    oracle, here = (import_errors(module, environments, ours) for ours in (False, True))
    good = [name for name, error in oracle.items() if error is None]
    lost = {name: here.get(name, "not found") for name in good if here.get(name, "not found")}
    return {"modules": len(oracle), "oracle": len(good), "lost": lost}


def import_errors(module: str, environments: Environments, ours: bool) -> dict[str, str | None]:
    """Why each module of a package cannot be imported, or None."""
    found: dict[str, str | None] = {}
    while True:
        command = environments.command("imports.py", module, str(len(found)), ours=ours)
        printed, text = lines(command, IMPORTS_LIMIT)
        if not printed:
            raise RuntimeError(f"importing the modules of {module} ended with:\n{text}")
        names, *pairs = printed
        found |= dict(pairs)
        if len(found) == len(names):
            return found
        found[names[len(found)]] = "the interpreter ended, or the import took too long"


def versions(python: Path) -> dict[str, str]:
    """The version of each distribution in an environment, by its normalized name."""
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    text = subprocess.run([str(python), "-c", code], check=True, text=True, stdout=subprocess.PIPE)
    found = json.loads(text.stdout)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found.items()}


def chosen(names: list[str]) -> Iterator[Path]:
    """The jobs of the named packages, and the named jobs; all of them where nothing is named."""
    for job in sorted(FOLDER.joinpath("jobs").glob("*/*.py")):
        if not names or job.parent.name in names or f"{job.parent.name}/{job.stem}" in names:
            yield job


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="packages or package/job; default: all")
    parser.add_argument("--environments", type=Path, default=ROOT / ".packages")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--imports", action="store_true", help="import all modules of packages, too"
    )
    parser.add_argument(
        "--imports-only", action="store_true", help="import all modules of packages, run no jobs"
    )
    parser.add_argument("--verbose", action="store_true", help="print what failing jobs printed")
    parser.add_argument("--keep", action="store_true", help="print what came of it, write nothing")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page anew")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"packages": {}}
    if not options.page:
        run(options, results)
    if not options.keep:
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        page.write(results)
    return 0


def run(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Run what the options choose, and put what came of it into the results."""
    environments = made(options.environments)
    installed = versions(environments.ours)
    jobs = list(chosen(options.names))

    def job_of(job: Path) -> tuple[Path, Any]:
        return job, job_results(job, environments, options.verbose)

    packages = results["packages"]
    with ThreadPoolExecutor(options.processes) as pool:
        for job, found in pool.map(job_of, () if options.imports_only else jobs):
            entry = packages.setdefault(job.parent.name, {})
            entry["version"] = installed[job.parent.name]
            entry.setdefault("jobs", {})[job.stem] = found
            equal = sum(each["result"] == "equal" for each in found)
            print(f"{job.parent.name}/{job.stem}: {equal} of {len(found)} equal", flush=True)
            for each in found:
                if each["result"] != "equal":
                    print(f"   {each['step']}: {each['result']}: {each['detail']}", flush=True)
        if options.imports or options.imports_only:
            names = sorted({job.parent.name for job in jobs})
            modules = [page.module_of(name) for name in names]
            swept = pool.map(lambda module: import_results(module, environments), modules)
            for name, found in zip(names, swept, strict=True):
                packages[name]["imports"] = found
                print(f"{name}: {len(found['lost'])} of {found['oracle']} modules lost", flush=True)
                for module, error in found["lost"].items():
                    print(f"   {module}: {error}", flush=True)
    results |= {"torch": PINNED, "python": platform.python_version(), "date": str(date.today())}


if __name__ == "__main__":
    sys.exit(main())
