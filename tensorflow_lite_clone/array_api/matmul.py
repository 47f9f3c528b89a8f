"""The standard's linear algebra functions."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.array_api._promotion import promoted_pair
from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.ops.linalg import matmul as _matmul
from tensorflow_lite_clone.ops.linalg import products as _products
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor


@word
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product of the last two axes; vectors and broadcasting as in NumPy."""
    return _matmul.matmul(*promoted_pair(x1, x2))


@word
def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sums of products over the last and first `axes`, or over the two lists of axes."""
    return _products.tensordot(*promoted_pair(x1, x2), axes)


@word
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of ``conj(x1) * x2`` over `axis`, which is negative; other axes broadcast.

    ValueError where the two have no such axis, or it has two sizes.
    """
    if not -min(x1.ndim, x2.ndim) <= axis < 0 or x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot() expected arrays of one size along the negative axis {axis}, but got shapes "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    x1, x2 = promoted_pair(x1, x2)
    return cast(_products.vecdot(x1, x2, dim=axis), x1.dtype)  # PyTorch's sums are of int64
