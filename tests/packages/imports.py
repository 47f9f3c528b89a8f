"""Import every module of a package, and print which of them fail: ``python imports.py NAME``.

Tests, commands and what is made to be run are left out: they act when they are imported.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import signal
import sys
import warnings
from pathlib import Path

from steps import MARK

ACTING = {"__main__", "setup", "conftest", "cli", "commands", "launch", "tests", "test", "testing"}
LIMIT = 60  # seconds for one module


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

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {LIMIT} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            importlib.import_module(name)
    except BaseException as error:
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    finally:
        signal.alarm(0)
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {name: failure(name) for name in modules(sys.argv[1])}
    print("\n" + MARK + json.dumps(found), flush=True)
    os._exit(0)  # whatever threads and processes the modules have begun
