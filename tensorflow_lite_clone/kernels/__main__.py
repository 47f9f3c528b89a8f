"""The command line: list the kernel files, compile what they declare, write their index."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tensorflow_lite_clone.kernels import check, listing
from tensorflow_lite_clone.kernels.header import kernel_files
from tensorflow_lite_clone.kernels.sources import folders, package_folder, source


def files(given: list[str]) -> list[Path]:
    """The `.cu` files of folders, and files, in order; without any, those of the package.

    A file is a path or a name in the folders of kernels; FileNotFoundError where there is none.
    """
    if not given:
        named = {path.name: path for folder in reversed(folders()) for path in kernel_files(folder)}
        return [named[name] for name in sorted(named)]
    found: list[Path] = []
    for word in given:
        path = Path(word)
        found += kernel_files(path) if path.is_dir() else [source(word).path]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tensorflow_lite_clone.kernels")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in {
        "list": "print files, the ops they serve, their kernels, and the overrides registered",
        "check": "compile every declared instance; 1 if one breaks a promise of its header",
    }.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("paths", nargs="*", help="files or folders, else the package's own")
        if name == "list":
            command.add_argument("--instances", action="store_true", help="name the instances")
        else:
            command.add_argument(
                "--arch",
                default=",".join(check.ARCHITECTURES),
                help="architectures with commas between them (default: %(default)s)",
            )
            command.add_argument("--jobs", type=int, help="processes (default: one per core)")
    text = "write the table of files into the README.md of their folder"
    command = commands.add_parser("index", help=text, description=text)
    command.add_argument("folder", nargs="?", type=Path, help="else the package's own")
    options = parser.parse_args(arguments)

    if options.command == "index":
        page = (options.folder or package_folder()) / "README.md"
        page.write_text(listing.with_index(page.read_text(encoding="utf-8"), page.parent))
        return 0
    try:
        paths = files(options.paths)
    except FileNotFoundError as error:
        print(error)
        return 2
    if options.command == "check":
        return check.check(paths, tuple(options.arch.split(",")), options.jobs)
    print("\n\n".join(listing.describe(path, options.instances) for path in paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
