"""Reads the header comment of a kernel file, and says what breaks the rules of the folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.tools.markdown import ROOT

KERNELS = ROOT / "kernels"
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
SECTIONS = ["device helpers", "kernels"]
INCLUDES = {"<cuda_fp16.h>", "<cuda_bf16.h>", "<cuda_fp8.h>"}
FORBIDDEN = {
    r"\bprintf\b": "printf",
    r"<<<": "a launch",
    r"^__(device__|constant__|managed__)[^();{]*;": "a global",
    r"^using\s+namespace\b": "using namespace",
}

_FIELD = re.compile(r"// ([A-Z]\w*): +(\S.*)")
_MORE = re.compile(r"// {3,}(\S.*)")
_RULE = re.compile(r"^// -{20,} (.+)$", re.MULTILINE)
_INCLUDE = re.compile(r"^\s*#\s*include\s+(\S+)", re.MULTILINE)
_INSTANCE = re.compile(r"(\w+<.+>): (\d+) registers, (\d+) bytes shared")


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


def instances(source: str) -> list[Instance]:
    """What the field `Instances` promises; a line that cannot be read raises ValueError."""
    found = []
    for line in fields(source).get("Instances", []):
        match = _INSTANCE.fullmatch(line)
        if match is None:
            raise ValueError(f"expected 'name<...>: R registers, S bytes shared', found {line!r}")
        found.append(Instance(match[1], int(match[2]), int(match[3])))
    return found


def include_problems(source: str, headers: set[str]) -> list[str]:
    """Includes of anything but the CUDA type headers and the folder's own headers."""
    allowed = INCLUDES | {f'"{name}"' for name in headers}
    return [f"includes {name}" for name in _INCLUDE.findall(source) if name not in allowed]


def body_problems(source: str) -> list[str]:
    """What no kernel file or header may hold."""
    code = re.sub(r"//.*", "", source)
    return [
        f"holds {what}"
        for pattern, what in FORBIDDEN.items()
        if re.search(pattern, code, re.MULTILINE)
    ]


def problems(source: str, headers: set[str]) -> list[str]:
    """What is wrong with a kernel file, a line each; `headers` are the folder's `.cuh` names."""
    found = include_problems(source, headers) + body_problems(source)
    opening = comment(source)
    if not opening or _FIELD.fullmatch(opening[0]) or not opening[0].endswith("."):
        found.append("does not open with one sentence")
    present = tuple(fields(source))
    if present != FIELDS:
        found.append(f"header fields are {present}, expected {FIELDS}")
    if _RULE.findall(source) != SECTIONS:
        found.append(f"ruled sections are {_RULE.findall(source)}, expected {SECTIONS}")
    try:
        promised = {instance.name.partition("<")[0] for instance in instances(source)}
    except ValueError as error:
        return [*found, str(error)]
    defined = set(re.findall(r"__global__[^;{]*?\bvoid\s+(?:__\w+__\([^)]*\)\s*)?(\w+)\(", source))
    if promised != defined:
        found.append(f"Instances name {sorted(promised)}, the kernels are {sorted(defined)}")
    return found


def kernel_files(folder: Path = KERNELS) -> list[Path]:
    """The `.cu` files of the folder."""
    return sorted(folder.glob("*.cu"))


def header_files(folder: Path = KERNELS) -> list[Path]:
    """The `.cuh` files of the folder."""
    return sorted(folder.glob("*.cuh"))
