"""torchvision's Python parts beside a PyTorch for the CPU.

torchvision's compiled operators want the PyTorch that they were built for. Where they cannot be
loaded, their names must be known when it is imported: they are declared without a body.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

# Kept alive: the operators' declarations end with it.
_libraries: list[Any] = []


def imported() -> Any:
    """torchvision, or None where it is not installed."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return None
    if "torchvision" not in sys.modules:
        folder = Path(spec.origin).parent
        try:
            torch.ops.load_library(folder / "_C.so")
        except OSError:
            library = torch.library.Library("torchvision", "DEF")
            text = (folder / "_meta_registrations.py").read_text()
            for name in sorted(set(re.findall(r'(?:register_meta\("|torchvision::)(\w+)', text))):
                library.define(f"{name}(Tensor a) -> Tensor")
            _libraries.append(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the extension that reads files
        import torchvision
        import torchvision.transforms.v2  # noqa: F401
    return torchvision
