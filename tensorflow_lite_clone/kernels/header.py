"""Reads the comment a kernel file opens with: its purpose, its fields, what it promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FIELDS = (
    "Op",
    "Math",
    "Layout",
    "Launch",
    "Cost",
    "Types",
    "Determinism",
    "Limits",
    "Variants",
    "Instances",
    "Source",
    "Measured",
)

_FIELD = re.compile(r"// ([A-Z]\w*): +(\S.*)")
_MORE = re.compile(r"// {3,}(\S.*)")
_INSTANCE = re.compile(r"(\w+(?:<.+>)?): (\d+) registers, (\d+) bytes shared")
_KERNEL = re.compile(r"__global__[^;{]*?\bvoid\s+(?:__\w+__\([^)]*\)\s*)*(\w+)\s*\(")


class Instance(NamedTuple):
    """One instantiation the compile check builds, and the most it may use."""

    name: str
    registers: int
    shared: int


def comment(source: str) -> list[str]:
    """The comment lines a file opens with."""
    lines = source.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return lines[:end]


def purpose(source: str) -> str:
    """The first sentence of the opening comment."""
    words: list[str] = []
    for line in comment(source):
        if line == "//" or _FIELD.fullmatch(line):
            break
        words.append(line.removeprefix("//").strip())
    return re.split(r"(?<=\.)\s", " ".join(words))[0]


def fields(source: str) -> dict[str, list[str]]:
    """The fields of the header, a list of lines each, in the order they stand."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in comment(source):
        if field := _FIELD.fullmatch(line):
            current = found.setdefault(field[1], [])
            current.append(field[2])
        elif more := _MORE.fullmatch(line):
            current.append(more[1])
    return found


def ops(source: str) -> str:
    """What the field `Op` says, in one line; empty where there is none."""
    return " ".join(fields(source).get("Op", []))


def kernel_names(source: str) -> list[str]:
    """The ``__global__`` functions of a file, in order."""
    return list(dict.fromkeys(_KERNEL.findall(re.sub(r"//[^\n]*", "", source))))


def instances(source: str) -> list[Instance]:
    """What the field `Instances` promises; a line that cannot be read raises ValueError."""
    found = []
    for line in fields(source).get("Instances", []):
        match = _INSTANCE.fullmatch(line)
        if match is None:
            raise ValueError(f"expected 'name<...>: R registers, S bytes shared', found {line!r}")
        found.append(Instance(match[1], int(match[2]), int(match[3])))
    return found


def kernel_files(folder: Path) -> list[Path]:
    """The `.cu` files of a folder."""
    return sorted(folder.glob("*.cu"))


def header_files(folder: Path) -> list[Path]:
    """The `.cuh` files of a folder."""
    return sorted(folder.glob("*.cuh"))
