"""The op table: a row per public op, a file per family. `python -m tests.op_db` checks it."""

from __future__ import annotations

import importlib

from tests.op_db import later
from tests.op_db._device import SELF_CHECK

FAMILIES = {
    name: importlib.import_module(f"tests.op_db.{name}").OPS
    for name in (
        "pointwise",
        "special",
        "reduce",
        "shape",
        "index",
        "create",
        "matmul",
        "softmax_loss",
        "conv_pool",
        "norm_misc",
        "recurrent",
        "native",
        "segments",
    )
}
LATER = later.OPS
OPS = [op for rows in FAMILIES.values() for op in rows] + (LATER if SELF_CHECK else [])
_names = [op.name.replace(".", "_") for op in OPS]  # as in the tests' names
if len(set(_names)) != len(_names):
    raise ValueError(f"rows of one name: {sorted({n for n in _names if _names.count(n) > 1})}")
