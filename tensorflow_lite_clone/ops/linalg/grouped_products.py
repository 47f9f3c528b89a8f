"""Products of matrices with groups, and of classes with a loss."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, bfloat16, float16, float32
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._samples import integers, per_sample
from tensorflow_lite_clone.ops.linalg.matmul import plain_matmul
from tensorflow_lite_clone.ops.nn.linear import linear
from tensorflow_lite_clone.ops.nn.loss import cross_entropy
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor


@public("functional")
@per_sample("offs")
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """Products of groups of matrices; `offs` (groups,) says where each group ends.

    (g, m, k) and (g, k, n) give (g, m, n), without `offs`. Of a matrix (m, k) with (g, k, n) rows
    are grouped, of (g, m, k) with a matrix (k, n) columns: (m, n). Of two matrices the axis k is,
    and the result is (g, m, n). What is behind the last group is zero. Takes float32, float16 and
    bfloat16; raises RuntimeError for what does not fit.
    """
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dtype not in (float32, float16, bfloat16):
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                f"{matrix.dtype.short_name}"
            )
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if (offs is None) is not (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is None:
        return plain_matmul(mat_a, mat_b)
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    ends = integers(offs)
    groups = list(zip(range(len(ends)), [0, *ends], ends))
    if mat_a.ndim == mat_b.ndim == 2:
        products = [plain_matmul(mat_a[:, start:end], mat_b[start:end]) for _, start, end in groups]
        return stack(products)
    by_rows = mat_a.ndim == 2
    if len(mat_b if by_rows else mat_a) != len(ends):
        raise RuntimeError(
            f"matrix batch sizes have to match: got {len(mat_b if by_rows else mat_a)} matrices "
            f"and {len(ends)} offsets"
        )
    if by_rows:
        parts = [plain_matmul(mat_a[start:end], mat_b[group]) for group, start, end in groups]
    else:
        parts = [plain_matmul(mat_a[group], mat_b[:, start:end]) for group, start, end in groups]
    size, last = mat_a.shape[0] if by_rows else mat_b.shape[1], ends[-1] if ends else 0
    if last < size:
        other = mat_b.shape[-1] if by_rows else mat_a.shape[-2]
        rest = (size - last, other) if by_rows else (other, size - last)
        parts.append(mat_a.new_zeros(rest))
    return cat(parts, 0 if by_rows else 1)


@public("functional")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of `linear`: inputs (n, in) or (in,), weights (classes, ..., in).

    `linear_bias` has the weights' shape without the last axis. `options` say how PyTorch splits
    the work and change nothing. Raises RuntimeError for sizes that do not fit.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    classes = tuple(linear_weight.shape[:-1])
    if len(classes) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, but got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != classes:
        raise RuntimeError(f"expected linear_bias shape {classes}, got {tuple(linear_bias.shape)}")
    rows = linear_weight.reshape(-1, linear_weight.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, rows, bias).reshape(*input.shape[:-1], *classes)
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
