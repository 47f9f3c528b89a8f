"""Rules of whole ops, where the base backend's own form is faster than the op's words."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.table import override


def _folded(name: str) -> None:
    """The samples as more of the first axis, if x alone differs among them."""
    op = TABLE[name]

    def fold(F: Any, x: Any, *weights: Any, **parameters: Any) -> Any:
        B = F.backend
        if not (B.is_batched(x) and x.size) or any(map(B.is_batched, weights)):
            return NotImplemented
        base = B.base.F
        data = base.reshape(x.data, (-1, *x.shape[1:]))
        plain = [w.data if type(w) is B.array_type else w for w in weights]
        made = base.run(op, data, *plain, **parameters)
        return B.make(base.reshape(made, (B.size, x.shape[0], *made.shape[1:])), False)

    override(name, "batched")(fold)


def _of_matrices(name: str) -> None:
    """Leading axes number matrices, and samples are one more of them."""
    op = TABLE[name]

    def run(F: Any, x: Any, **parameters: Any) -> Any:
        B = F.backend
        data = x.data if type(x) is B.array_type else x
        return B.make(B.base.F.run(op, data, **parameters), not B.is_batched(x))

    override(name, "batched")(run)


_of_matrices("matrix_exp")
for _name in ("conv", "conv_backward_input", "conv_transpose"):
    _folded(_name)
