"""torchvision's Python parts beside a PyTorch for the CPU, as the oracle of these tests.

torchvision's compiled operators want the PyTorch that they were built for. None of them is needed
here, but their names must be known when it is imported: they are declared without a body.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import warnings
from pathlib import Path

import pytest
import torch

SPEC = importlib.util.find_spec("torchvision")
if SPEC is None or SPEC.origin is None:
    pytest.skip("torchvision is not installed", allow_module_level=True)

_LIBRARY = torch.library.Library("torchvision", "DEF")
_TEXT = (Path(SPEC.origin).parent / "_meta_registrations.py").read_text()
for _name in sorted(set(re.findall(r'register_meta\("(\w+)"\)|torchvision::(\w+)', _TEXT))):
    with contextlib.suppress(RuntimeError):  # they are there if the operators could be loaded
        _LIBRARY.define(f"{_name[0] or _name[1]}(Tensor a) -> Tensor")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the extension that reads files
    import torchvision  # noqa: F401
    import torchvision.transforms.v2  # noqa: F401
