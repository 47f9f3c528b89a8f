"""Compiles declared instances: python -m tests.kernels.check_file FILE... [sm_90 ...]."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kernels.header import header_files, instances
from tests.kernels.nvrtc import ARCHITECTURES, compile_instances


def main(arguments: list[str]) -> int:
    """Print what each instance uses; 1 when something does not compile or spills."""
    architectures = [word for word in arguments if word.startswith("sm_")] or ARCHITECTURES
    headers = {path.name: path.read_text() for path in header_files()}
    failed = 0
    for path in (Path(word) for word in arguments if not word.startswith("sm_")):
        source = path.read_text()
        names = [instance.name for instance in instances(source)]
        for architecture in architectures:
            try:
                warnings, usage = compile_instances(source, headers, names, architecture)
            except ValueError as error:
                print(error)
                return 1
            print(path.name, architecture, *warnings, sep="\n  ")
            for name, used in usage.items():
                print(f"  {name}: {used.registers} registers, {used.shared} bytes shared,"
                      f" {used.spilled} spilled{', double' if used.double else ''}")  # fmt: skip
                failed |= bool(used.spilled)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
