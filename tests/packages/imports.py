"""Import a package's modules one after another: ``python imports.py NAME START``.

Prints the list of their names, then for each the name and why it cannot be imported, or None. Where
a module ends the interpreter, or takes so long that it is ended here, its line is missing; another
run begins behind it, at the START-th name of the list.

Tests, commands and what is made to be run are left out: they act when they are imported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import io
import json
import os
import sys
import warnings
from pathlib import Path

from run import prepare
from steps import MARK

ACTING = {"__main__", "setup", "conftest", "cli", "commands", "launch", "tests", "test", "testing"}
LIMIT = 120  # seconds for one module


def modules(package: str) -> list[str]:
    """The dotted names of a package's modules, the package itself first."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return [package]
    root = Path(spec.submodule_search_locations[0])
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = [package, *path.relative_to(root).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        acts = any(part in ACTING or part.startswith("test_") for part in parts)
        if not acts and all(part.isidentifier() for part in parts):
            found.append(".".join(parts))
    return sorted(found, key=lambda name: name.count("."))


def failure(name: str) -> str | None:
    """Why a module cannot be imported, or None."""
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            importlib.import_module(name)
    except BaseException as error:
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    finally:
        faulthandler.cancel_dump_traceback_later()
    return None


def report(what: object) -> None:
    """Print a line for `tests.tools.packages`."""
    print("\n" + MARK + json.dumps(what), flush=True)


if __name__ == "__main__":
    prepare()
    warnings.simplefilter("ignore")
    names, start = modules(sys.argv[1]), int(sys.argv[2])
    sys.argv = sys.argv[:1]
    report(names)
    for name in names[start:]:
        report([name, failure(name)])
    os._exit(0)  # whatever threads and processes the modules have begun
