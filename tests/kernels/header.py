"""The rules of the kernels' folder that a text can show, and what breaks them."""

from __future__ import annotations

import re
from pathlib import Path

from tensorflow_lite_clone.kernels.header import (
    FIELDS,
    Instance,
    comment,
    fields,
    header_files,
    instances,
    kernel_files,
    kernel_names,
)
from tests.tools.markdown import ROOT

KERNELS = ROOT / "kernels"
SECTIONS = ["device helpers", "kernels"]
INCLUDES = {"<cuda_fp16.h>", "<cuda_bf16.h>", "<cuda_fp8.h>"}
FORBIDDEN = {
    r"\bprintf\b": "printf",
    r"<<<": "a launch",
    r"^__(device__|constant__|managed__)[^();{]*;": "a global",
    r"^using\s+namespace\b": "using namespace",
}

_RULE = re.compile(r"^// -{20,} (.+)$", re.MULTILINE)
_INCLUDE = re.compile(r"^\s*#\s*include\s+(\S+)", re.MULTILINE)


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
    if not opening or re.match(r"// [A-Z]\w*: ", opening[0]) or not opening[0].endswith("."):
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
    defined = set(kernel_names(source))
    if promised != defined:
        found.append(f"Instances name {sorted(promised)}, the kernels are {sorted(defined)}")
    return found


def own_kernels() -> list[Path]:
    """The `.cu` files of the checkout."""
    return kernel_files(KERNELS)


def own_headers() -> list[Path]:
    """The `.cuh` files of the checkout."""
    return header_files(KERNELS)


__all__ = ["FIELDS", "Instance", "fields", "instances"]
