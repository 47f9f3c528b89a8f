"""Lists kernel files with what they serve, and writes the index in the README of their folder."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.kernels.header import (
    fields,
    header_files,
    instances,
    kernel_files,
    kernel_names,
    ops,
    purpose,
)
from tensorflow_lite_clone.kernels.kernel import Kernel

BEGIN = "<!-- Made from the headers by: python -m tensorflow_lite_clone.kernels index -->"
END = "<!-- End of the index. -->"


def overrides_of(path: Path) -> list[str] | None:
    """The overrides that launch kernels of a file; None where CuPy is not installed.

    They are those in modules that hold a `Kernel` of the file, and those its field `Op` names.
    """
    try:
        import_module("tensorflow_lite_clone.backends.cupy.overrides")
    except ModuleNotFoundError:
        return None
    named = set(re.findall(r"\w+", ops(path.read_text(encoding="utf-8"))))
    return sorted(
        name
        for (name, backend), function in table.overrides.items()
        if backend == "cupy"
        and (name in named or path.name in _files_of(function.__module__))
    )


def _files_of(module: str) -> set[str]:
    """Names of the files whose kernels a module holds."""

    def held(value: Any) -> Iterator[Kernel]:
        if isinstance(value, Kernel):
            yield value
        elif isinstance(value, dict):
            for entry in value.values():
                yield from held(entry)

    values = vars(sys.modules[module]).values()
    return {Path(kernel.file).name for value in values for kernel in held(value)}


def describe(path: Path, full: bool = False) -> str:
    """A file, its ops, the overrides that launch it, its kernels and how many instances of each."""
    text = path.read_text(encoding="utf-8")
    served = overrides_of(path)
    if served is None:
        registered = "unknown: they are registered where CuPy is installed"
    else:
        registered = ", ".join(served) or "none"
    lines = [
        f"{path.name}: {purpose(text)}",
        f"  ops        {ops(text) or 'not said'}",
        f"  overrides  {registered}",
    ]
    declared = instances(text)
    for name in kernel_names(text):
        own = [instance for instance in declared if instance.name.partition("<")[0] == name]
        lines.append(f"  kernel     {name}, instances to check: {len(own)}")
        if full:
            lines += [
                f"               {instance.name}: at most {instance.registers} registers, "
                f"{instance.shared} bytes shared"
                for instance in own
            ]
    return "\n".join(lines)


def index(folder: Path) -> str:
    """The table of a folder's files."""
    lines = ["| file | ops | what it is |", "| --- | --- | --- |"]
    for path in [*kernel_files(folder), *header_files(folder)]:
        text = path.read_text(encoding="utf-8")
        served = ops(text) if "Op" in fields(text) else "(header)"
        lines.append(f"| [`{path.name}`]({path.name}) | {served} | {purpose(text)} |")
    return "\n".join(lines)


def with_index(page: str, folder: Path) -> str:
    """The page with a fresh index between its two marks; ValueError without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n\n{index(folder)}\n\n{END}{after}"
