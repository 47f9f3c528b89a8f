"""What reductions mean: one tensor of those of all ranks, in the order of the ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorflow_lite_clone.core.dtypes import bfloat16, float16, float32
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.tensor import Tensor

_STEPS: dict[ReduceOp, Callable[[Tensor, Tensor], Tensor]] = {
    ReduceOp.SUM: lambda total, part: total.add_(part),
    ReduceOp.AVG: lambda total, part: total.add_(part),
    ReduceOp.PRODUCT: lambda total, part: total.mul_(part),
    ReduceOp.MIN: lambda total, part: total.copy_(total.minimum(part)),
    ReduceOp.MAX: lambda total, part: total.copy_(total.maximum(part)),
    ReduceOp.BAND: lambda total, part: total.bitwise_and_(part),
    ReduceOp.BOR: lambda total, part: total.bitwise_or_(part),
    ReduceOp.BXOR: lambda total, part: total.bitwise_xor_(part),
}


def expect_reducible(tensor: Tensor, op: ReduceOp) -> None:
    """Raise what a reduction of the tensor would raise, before anything is sent."""
    dtype = tensor.dtype
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and (
        dtype.is_floating_point or dtype.is_complex
    ):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op in (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT) and dtype.is_complex:
        raise ValueError(f"all_reduce does not support ReduceOp.{op.name} on complex tensors")
    if op is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.AVG with tensors of {dtype}")


def reduce_into(target: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> None:
    """Write what `op` makes of `parts` to `target`, which may be none of them.

    Sums and products of two-byte floats are made in float32 and rounded once.
    """
    narrow = target.dtype in (float16, bfloat16)
    total = parts[0].to(float32) if narrow else target.copy_(parts[0])
    step = _STEPS[op]
    for part in parts[1:]:
        step(total, part.to(float32) if narrow else part)
    if op is ReduceOp.AVG:
        total.div_(len(parts))
    if narrow:
        target.copy_(total)
