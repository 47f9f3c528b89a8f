"""Matrix products, `addmm` and `linear` by cuBLASLt."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.backends.cupy.gemm import matmul
from tensorflow_lite_clone.backends.cupy.gemm_plan import KINDS
from tensorflow_lite_clone.dispatch.table import override


def product(F: Any, x: Any, y: Any) -> Any:
    """x @ y in the operands' own dtype; the generic form would widen bfloat16."""
    return matmul(x, y) if x.dtype in KINDS else NotImplemented


for _name in ("mm", "bmm", "mv", "dot"):
    override(_name, backend="cupy")(product)


@override("addmm", backend="cupy")
def addmm(F: Any, x: Any, y: Any, z: Any, *, beta: Any, alpha: Any) -> Any:
    dtype = x.dtype
    if dtype not in KINDS or y.dtype != dtype or z.dtype != dtype:
        return NotImplemented
    real = dtype.kind != "c"
    if real and (isinstance(beta, complex) or isinstance(alpha, complex)):
        return NotImplemented
    if beta == 0:
        return matmul(y, z, alpha=alpha)
    if real and beta == 1 and x.shape == z.shape[-1:]:
        return matmul(y, z, alpha=alpha, bias=x)
    return matmul(y, z, alpha=alpha, beta=beta, addend=x)


override("baddbmm", backend="cupy")(addmm)


@override("linear", backend="cupy")
def linear(F: Any, x: Any, w: Any, b: Any) -> Any:
    if x.dtype not in KINDS:
        return NotImplemented
    if b is None:
        return matmul(x, w.T)
    if b.shape != w.shape[:1] or x.dtype.kind == "c":
        return NotImplemented
    return matmul(x, w.T, bias=b)


@override("linear_backward_weight", backend="cupy")
def linear_backward_weight(F: Any, g: Any, x: Any) -> Any:
    dtype = x.dtype
    if dtype not in KINDS or dtype.kind == "c" or g.dtype != dtype:
        return NotImplemented
    count = prod(x.shape[:-1])
    rows = g.reshape(count, g.shape[-1])
    return matmul(rows.T, x.reshape(count, x.shape[-1]), epilogue="sums")
