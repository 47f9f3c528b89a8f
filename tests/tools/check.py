"""Run the static checks, ruff and mypy: `python -m tests.tools.check`."""

from __future__ import annotations

import subprocess
import sys

from tests.tools.markdown import ROOT

CHECKS = (["ruff", "check", "."], ["mypy"])


def main() -> int:
    """Run every check, even after a failure; the exit status is 1 if any failed."""
    failed = [
        check
        for check in CHECKS
        if subprocess.run([sys.executable, "-m", *check], cwd=ROOT, check=False).returncode
    ]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
