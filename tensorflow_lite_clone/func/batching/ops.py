"""Rules of whole ops, where the base backend's own form is faster than the op's words.

Each declines what it does not serve, and the op's words run under their own rules.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.dispatch.table import override


def _base_call(B: Any, name: str, *arrays: Any, **parameters: Any) -> Any:
    entry = TABLE[name]
    if is_op(entry):
        return B.base.F.run(entry, *arrays, **parameters)
    return getattr(B.base.F, name)(*arrays, **parameters)


def _plain(B: Any, value: Any) -> Any:
    return value.data if type(value) is B.array_type else value


def _any_batched(B: Any, values: Any) -> bool:
    return any(map(B.is_batched, values))


def _of_matrices(name: str) -> None:
    """Leading axes number matrices, and samples are one more of them."""

    def run(F: Any, x: Any, **parameters: Any) -> Any:
        B = F.backend
        return B.make(_base_call(B, name, _plain(B, x), **parameters), not B.is_batched(x))

    override(name, "batched")(run)


def _in_rows(name: str, count: int) -> None:
    """The samples as more of the first axis of `count` inputs, if no other input has them.

    Outputs that have no such axis are hints for the backward pass, which is folded likewise.
    """

    def fold(F: Any, *inputs: Any, **parameters: Any) -> Any:
        B = F.backend
        carried, others = inputs[:count], inputs[count:]
        rows = carried[0].shape[0]
        unfit = not all([x.size for x in carried]) or parameters.get("axis") == 0
        if unfit or not _any_batched(B, carried) or _any_batched(B, others):
            return NotImplemented
        base = B.base.F
        data = [base.reshape(B.rows(x), (-1, *x.shape[1:])) for x in carried]
        made = _base_call(B, name, *data, *[_plain(B, x) for x in others], **parameters)

        def unfolded(y: Any) -> Any:
            if not y.ndim or y.shape[0] != B.size * rows:
                return B.make(y, True)
            if B.base.lays and not B.base.is_contiguous(y):
                y = base.copy(y)  # the tensor that this becomes shows how it lies
            return B.make(base.reshape(y, (B.size, rows, *y.shape[1:])), False)

        return tuple(map(unfolded, made)) if isinstance(made, tuple) else unfolded(made)

    override(name, "batched")(fold)


def _along(name: str, count: int) -> None:
    """The samples as a new first axis of `count` inputs of one shape; the axis moves behind it."""

    def shift(F: Any, *inputs: Any, axis: int, **parameters: Any) -> Any:
        B = F.backend
        ndim = inputs[0].ndim
        if not ndim or not _any_batched(B, inputs) or len({x.shape for x in inputs}) > 1:
            return NotImplemented
        data = [B.rows(x) for x in inputs]
        return B.make(_base_call(B, name, *data, axis=axis % ndim + 1, **parameters), False)

    override(name, "batched")(shift)


def _normalized(name: str, folded: bool) -> None:
    """Of x alone; weights are the same for all samples, and statistics have a row for each norm."""

    def run(F: Any, x: Any, *weights: Any, **parameters: Any) -> Any:
        B = F.backend
        if not (B.is_batched(x) and x.size) or _any_batched(B, weights):
            return NotImplemented
        base = B.base.F
        data = base.reshape(x.data, (-1, *x.shape[1:])) if folded else x.data
        y, *rows = _base_call(B, name, data, *[_plain(B, w) for w in weights], **parameters)
        return B.make(
            (
                base.reshape(y, x.data.shape),
                *[base.reshape(s, (B.size, s.shape[0] // B.size, *s.shape[1:])) for s in rows],
            ),
            False,
        )

    override(name, "batched")(run)


_of_matrices("matrix_exp")
for _name, _count in (
    ("avg_pool", 1), ("avg_pool_backward", 1), ("conv", 1), ("conv_backward_input", 1),
    ("conv_transpose", 1), ("max_pool", 1), ("max_pool_backward", 3), ("max_pool_pick", 3),
    ("resample", 1),
):  # fmt: skip
    _in_rows(_name, _count)
for _name, _count in (
    ("glu", 1), ("glu_backward", 2), ("log_softmax", 1), ("log_softmax_backward", 2),
    ("softmax", 1), ("softmax_backward", 2),
):  # fmt: skip
    _along(_name, _count)
_normalized("layer_norm", False)
_normalized("group_norm", True)
