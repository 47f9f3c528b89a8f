"""``python -m tests.module_samples [--kinds forward errors] [--only REGEX] [--verbose]``

Prints, for each kind of check, of how many modules every sample agrees with PyTorch, and which do
not. It takes some minutes for all; `--jobs` processes share the modules.
"""

from __future__ import annotations

import sys
from typing import Any

from torch.testing._internal.common_modules import module_db

from tests.module_samples.checks import KINDS
from tests.samples.command import main


def table() -> dict[str, list[Any]]:
    """Name -> its entry in PyTorch's table."""
    return {info.name: [info] for info in module_db}


if __name__ == "__main__":
    sys.exit(main("tests.module_samples", __doc__, KINDS, table))
