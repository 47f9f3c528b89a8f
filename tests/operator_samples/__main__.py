"""``python -m tests.operator_samples [--kinds forward errors] [--only REGEX] [--verbose]``

Prints, for each kind of check, of how many names every sample agrees with PyTorch, and which do
not. It takes about ten minutes for all; `--jobs` processes share the names.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

from torch.testing._internal.common_methods_invocations import op_db

from tests.operator_samples.checks import KINDS
from tests.samples.command import main


def table() -> dict[str, list[Any]]:
    """Name -> its entries in PyTorch's table, without those that no CPU serves and those that
    are written over `torch.ops`, PyTorch's own registry."""
    found: dict[str, list[Any]] = defaultdict(list)
    for op in op_db:
        registry = type(op.op).__module__ == "torch._ops" or op.name.startswith("torch.")
        registry = registry or "aten" in getattr(getattr(op.op, "__code__", None), "co_names", ())
        if op.supported_dtypes("cpu") and not registry:
            found[op.name].append(op)
    return dict(found)


if __name__ == "__main__":
    sys.exit(main("tests.operator_samples", __doc__, KINDS, table))
