"""Vector and matrix norms, and distances made of them."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_unary
from tensorflow_lite_clone.core.dtypes import DType, float32
from tensorflow_lite_clone.core.public import EXPORTS, public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._formulas import no_gradient, wide
from tensorflow_lite_clone.ops.pointwise._operands import as_operands, cast, operand_dtype, refuse
from tensorflow_lite_clone.ops.reduce._arguments import (
    axes_of,
    axis_of,
    delivered,
    is_integral,
    reduced_count,
    restored,
    with_dtype,
)
from tensorflow_lite_clone.tensor import Tensor

Order = float | str | None


class VectorNorm(Op):
    """``(sum |x|^ord)^(1/ord)`` over axes, with the usual limits at 0 and at infinity."""

    label = "LinalgVectorNorm"

    def forward(F, x, *, ord, axis, keepdims, shape):
        dtype = x.dtype
        if dtype.itemsize == 2:
            x = F.astype(x, float32)
        if ord == 2 and dtype.kind != "c":
            y = F.sqrt(F.sum(x * x, axis=axis, keepdims=keepdims))
        else:
            y = _norm(F, F.abs(x), ord, axis, keepdims)
        return F.astype(y, dtype) if dtype.itemsize == 2 else y

    def backward_x(F, g, x, out, *, ord, axis, keepdims, shape):
        if ord == 0:
            return None
        g = restored(F, g, axis, keepdims, shape)
        return F.norm_backward(g, x, restored(F, out, axis, keepdims, shape), ord=ord, axis=axis)


def _norm(F: Any, size: Any, ord: float, axis: tuple, keepdims: bool) -> Any:
    if ord == 0:
        return F.astype(F.count_nonzero(size, axis=axis, keepdims=keepdims), size.dtype)
    if ord == 1:
        return F.sum(size, axis=axis, keepdims=keepdims)
    if ord == math.inf:
        return F.max(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return F.min(size, axis=axis, keepdims=keepdims)
    return F.sum(size**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


@composite
def norm_backward(F, g, x, y, *, ord, axis):
    """``gx = g * x * |x|^(ord - 2) / y^(ord - 1)``; zero where all elements are."""
    if ord == 1:
        return g * F.sgn(x)
    if ord == 2:
        return x * F.where(y == 0, 0, g / F.where(y == 0, 1, y))
    size = F.abs(x)
    if math.isinf(ord):
        ties = F.astype((size == y) | ((size != size) & (y != y)), size.dtype)
        return F.sgn(x) * (ties * (g / F.sum(ties, axis=axis, keepdims=True)))
    if ord < 1:
        return F.where(x == 0, 0, F.sgn(x) * size ** (ord - 1.0)) * (g * y ** (1.0 - ord))
    scale = F.where(y == 0, 0, g / y ** (ord - 1.0))
    if ord < 2:
        return F.sgn(x) * size ** (ord - 1.0) * scale
    return x * size ** (ord - 2.0) * scale


def _cast(name: str, input: Tensor, dtype: DType | None) -> Tensor:
    """`input` in `dtype`, which must be of the same kind, real or complex."""
    if dtype is not None and dtype.kind not in "fc":
        expected = "floating point or complex"
    elif dtype is not None and (dtype.kind == "c") != (input.dtype.kind == "c"):
        expected = "complex for complex inputs" if dtype.kind == "f" else "real for real inputs"
    else:
        return with_dtype(input, dtype)
    raise RuntimeError(f"linalg.{name}: dtype should be {expected}, but got {dtype.short_name}")


@public("linalg")
def vector_norm(
    input: Tensor,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """``(sum |x|^ord)^(1/ord)`` over `dim` (an int, several, or all).

    `ord` may be 0 (the count of nonzeros) and plus or minus infinity (the largest, the smallest
    absolute value). Raises RuntimeError for integers.
    """
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    if is_integral(input):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.short_name}"
        )
    input = _cast("vector_norm", input, dtype)
    shape = input._storage.physical.shape
    axis = axes_of(dim, len(shape))
    if (ord < 0 or ord == math.inf) and not reduced_count(shape, axis):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the "
            "operation does not have an identity"
        )
    parameters = {"ord": ord, "axis": axis, "keepdims": keepdim, "shape": shape}
    result = apply_unary(VectorNorm, input, parameters)
    return delivered("linalg_vector_norm", result, out)


class Powsum(Op):
    """``sum |x|^ord`` over axes."""

    label = "LinalgPowsum"

    def forward(F, x, *, ord, axis, keepdims):
        dtype = x.dtype
        size = F.abs(wide(F, x))
        powers = size * size if ord == 2 else size**ord
        y = F.sum(powers, axis=axis, keepdims=keepdims)
        return F.astype(y, dtype) if dtype.itemsize == 2 else y

    backward_x = no_gradient("linalg__powsum")


@public("linalg")
def _powsum(
    input: Tensor,
    ord: complex = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """``sum |x|^ord`` over `dim` (an int, several, or all): `vector_norm` before its last root.

    Sums of parts of a vector add up to that of the whole, as norms do not. With `dtype` the powers
    are taken in it. The result is real. Raises NotImplementedError for integers, and RuntimeError
    in a backward pass, as PyTorch does.

    >>> torch.linalg._powsum(torch.tensor([3.0, -4.0]))
    tensor(25.)
    """
    if isinstance(ord, complex):
        raise RuntimeError(f"linalg__powsum(): 'ord' must be a real number, got {ord}")
    if dtype is not None:
        input = cast(input, dtype.to_complex() if input.dtype.kind == "c" else dtype)
    if input.dtype.kind not in "fc" or input.dtype.itemsize == 1:
        refuse("powsum", input.dtype)
    axis = axes_of(dim, input._storage.physical.ndim)
    return apply(Powsum, input, ord=float(ord), axis=axis, keepdims=keepdim)


@public("linalg")
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A norm of the matrices in two dimensions: 'fro', 'nuc', 2, -2, 1, -1, inf or -inf.

    1 and inf are the largest column and row sums of absolute values, 2 and 'nuc' the largest and
    the sum of the singular values; negative orders take the smallest.
    """
    input = _cast("matrix_norm", input, dtype)
    if input.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    if isinstance(dim, int) or len(dim) != 2:
        seen = dim if isinstance(dim, int) else " ".join(map(str, dim))
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {seen}")
    rows, columns = (axis_of(one, input.ndim) for one in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {tuple(dim)}")
    if ord not in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim, out=out)
    if ord == "nuc" or abs(ord) == 2:
        result = _of_singular_values(input, ord, rows, columns, keepdim)
    else:
        summed, rest = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = vector_norm(input, 1, summed, True)
        if ord > 0 and not input.shape[rest]:
            result = sums.detach().sum(rest, True)  # of no columns or rows: 0
        else:
            result = sums.amax(rest, True) if ord > 0 else sums.amin(rest, True)
        if not keepdim:
            result = result.squeeze((rows, columns))
    return delivered("linalg_matrix_norm", result, out)


def _of_singular_values(input: Tensor, ord: Any, rows: int, columns: int, keepdim: bool) -> Tensor:
    svdvals = EXPORTS["linalg"]["svdvals"]
    values = svdvals(input.movedim((rows, columns), (-2, -1)))
    if ord == "nuc":
        result = values.sum(-1)
    elif ord > 0 and not values.shape[-1]:
        result = values.detach().sum(-1)  # 0, of which PyTorch records nothing
    else:
        result = values.amax(-1) if ord > 0 else values.amin(-1)
    if keepdim:
        for axis in sorted((rows, columns)):
            result = result.unsqueeze(axis)
    return result


@public("linalg", names=("norm",))
def linalg_norm(
    input: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A vector norm over one `dim`, a matrix norm over two; without `ord` the 2-norm of all."""
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype=dtype, out=out)
    ndim = input.ndim
    if dim is None:
        if ndim not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
                f"Got {ndim}D."
            )
        dim = 0 if ndim == 1 else (-2, -1)
    if isinstance(dim, int) or len(dim) == 1:
        return vector_norm(input, ord, dim, keepdim, dtype=dtype, out=out)
    return matrix_norm(input, ord, dim, keepdim, dtype=dtype, out=out)


@public("torch", "method")
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """The `p`-norm over `dim` (an int, several, or all); 'fro' is the 2-norm, 'nuc' of matrices."""
    if p is None or p == "fro":
        if p == "fro" and not isinstance(dim, int) and dim is not None and len(dim) > 2:
            return matrix_norm(input, "fro", dim)  # raises torch's error
        p = 2
    if isinstance(p, str):
        dim = (-2, -1) if dim is None else dim
        return matrix_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    return vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


@public("torch", "method")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The `p`-norm of ``input - other``."""
    return vector_norm(input - other, p)


def _floating_pair(x1: Tensor, x2: Tensor) -> list[Tensor]:
    dtype = operand_dtype(x1, x2)
    if dtype.kind not in "fc":
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {dtype.short_name}"
        )
    x1, x2 = as_operands((x1, x2), dtype)
    shape = broadcast_shapes(x1.shape, x2.shape)
    return [x1.expand(shape), x2.expand(shape)]


@public("torch", "functional")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along `dim`."""
    x1, x2 = _floating_pair(x1, x2)
    parts = []
    for x in (x1, x2):
        size = vector_norm(x, 2, dim, True)
        # As in PyTorch the lower bound changes the value but not the gradient.
        lift = (eps - size.detach()).clamp_min(0)
        parts.append(x / (size + lift))
    return (parts[0] * parts[1]).sum(dim)


@public("torch", "functional")
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The `p`-norm of ``x1 - x2 + eps`` over the last dimension."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@public("functional")
def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """``input / max(|input|_p, eps)`` along `dim`."""
    size = vector_norm(input, p, dim, True)
    return delivered("normalize", input / size.clamp_min(eps), out, (input,))
