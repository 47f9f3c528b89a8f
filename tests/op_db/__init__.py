"""The op table: a row per public op, a file per family. `python -m tests.op_db` checks it."""

from __future__ import annotations

import importlib

FAMILIES = {
    name: importlib.import_module(f"tests.op_db.{name}").OPS
    for name in (
        "pointwise",
        "special",
        "special_more",
        "reduce",
        "shape",
        "index",
        "create",
        "matmul",
        "linalg_solve",
        "softmax_loss",
        "conv_pool",
        "norm_misc",
        "recurrent",
        "fft",
        "linalg_decomp",
        "native",
        "segments",
        "standard_forms",
    )
}
OPS = [op for rows in FAMILIES.values() for op in rows]
_names = [op.name.replace(".", "_") for op in OPS]  # as in the tests' names
if len(set(_names)) != len(_names):
    raise ValueError(f"rows of one name: {sorted({n for n in _names if _names.count(n) > 1})}")
