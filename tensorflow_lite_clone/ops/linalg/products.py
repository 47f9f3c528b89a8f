"""Products made of others: ``tensordot``, ``kron``, ``cross``, chains, sums with a product."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import promote_types
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim, normalize_dims
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._products import expect_one_dtype, expect_tensors, times
from tensorflow_lite_clone.ops.linalg.matmul import (
    dot,
    expect_expandable,
    matmul,
    outer,
    plain_matmul,
)
from tensorflow_lite_clone.ops.pointwise._operands import as_operands, cast, operand_dtype, refuse
from tensorflow_lite_clone.tensor import Tensor


@public("torch", "method")
@with_out
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products over the last axes of both; a number scales the other operand."""
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    if input.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if input.ndim == other.ndim == 1:
        return dot(input, other)
    return tensordot(input, other, ([-1], [-1]))


@public("linalg")
@with_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of ``conj(x) * y`` over `dim`; shapes broadcast."""
    return ((x.conj() if x.dtype.kind == "c" else x) * y).sum(dim)


@public("torch")
@with_out
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, axes: Any = None) -> Tensor:
    """Sums of products over `dims`: a list of axes of `a` and one of `b`, or a number n, which
    means the last n axes of `a` and the first n of `b`. `axes` is NumPy's name of it, by which
    packages call that know arrays of many libraries.
    """
    dims = dims if axes is None else axes
    left, right = _contracted_axes(a.ndim, b.ndim, dims)
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    for i, j in zip(left, right):
        if a.shape[i] != b.shape[j] and a.shape[i] != 1 and b.shape[j] != 1:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} "
                f"and second has size {b.shape[j]} in dim {j}"
            )
    left, right = list(normalize_dims(left, a.ndim)), list(normalize_dims(right, b.ndim))
    uneven = [(i, j) for i, j in zip(left, right) if a.shape[i] != b.shape[j]]
    if uneven:  # an axis of length one stands for as many equal values as the other has
        wide_a = [i for i, j in uneven if b.shape[j] == 1]
        wide_b = [j for i, j in uneven if a.shape[i] == 1]
        a = a.sum(wide_a, keepdim=True, dtype=a.dtype) if wide_a else a
        b = b.sum(wide_b, keepdim=True, dtype=b.dtype) if wide_b else b
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [j for j in range(b.ndim) if j not in right]
    count = math.prod(a.shape[i] for i in left)
    rows, columns = [a.shape[i] for i in rest_a], [b.shape[j] for j in rest_b]
    if not rest_a and not rest_b:
        return dot(a.permute(left).reshape(count), b.permute(right).reshape(count))
    x = a.permute(*rest_a, *left).reshape(math.prod(rows), count)
    y = b.permute(*right, *rest_b).reshape(count, math.prod(columns))
    return matmul(x, y).reshape(*rows, *columns)


def _contracted_axes(ndim_a: int, ndim_b: int, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if hasattr(dims, "__index__"):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(ndim_a, ndim_b):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    left, right = [[axes] if hasattr(axes, "__index__") else list(axes) for axes in dims]
    return left, right


@public("torch", "method")
@with_out
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`."""
    ndim = max(input.ndim, other.ndim)
    x = (1,) * (ndim - input.ndim) + tuple(input.shape)
    y = (1,) * (ndim - other.ndim) + tuple(other.shape)
    spread = [size for pair in zip(x, (1,) * ndim) for size in pair]
    packed = [size for pair in zip((1,) * ndim, y) for size in pair]
    result = input.reshape(spread) * other.reshape(packed)
    return result.reshape([p * q for p, q in zip(x, y)])


class LinalgCross(Op):
    """The cross product along an axis of length three."""

    cost = costs.with_a_sum

    def forward(F, x, y, *, axis):
        return F.roll(x, -1, axis=axis) * F.roll(y, -2, axis=axis) - F.roll(
            x, -2, axis=axis
        ) * F.roll(y, -1, axis=axis)

    def backward_x(F, g, y, *, axis):
        return F.linalg_cross(conj(F, y), g, axis=axis)

    def backward_y(F, g, x, *, axis):
        return F.linalg_cross(g, conj(F, x), axis=axis)


def _cross(input: Tensor, other: Tensor, dim: int) -> Tensor:
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = normalize_dim(dim, input.ndim)
    if input.shape[axis : axis + 1] != (3,) or other.shape[axis : axis + 1] != (3,):
        sizes = [shape[axis] if shape else 1 for shape in (input.shape, other.shape)]
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and "
            f"{sizes[1]}"
        )
    expect_one_dtype("linalg.cross", input, other)
    dtype = operand_dtype(input, other)
    if dtype.kind == "b":
        refuse("cross", dtype)
    return apply(LinalgCross, *as_operands((input, other), dtype), axis=axis - input.ndim)


@public("linalg", names=("cross",))
@with_out
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three along `dim`; other axes broadcast."""
    return _cross(input, other, dim)


@public("torch", "method")
@with_out
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along `dim`, by default the first axis of length three."""
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = input.shape.index(3)
    return _cross(input, other, dim)


@public("torch")
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices, in the order that takes the fewest multiplications."""
    for matrix in matrices:
        expect_tensors("chain_matmul", matrix)
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices, out=out)


@public("linalg")
@with_out
def multi_dot(tensors: Any) -> Tensor:
    """The product of matrices (the first and last may be vectors), in the cheapest order."""
    chain = list(tensors)
    expect_tensors("linalg.multi_dot", *chain)
    if len(chain) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(chain)}")
    for position, tensor in enumerate(chain):
        if position in (0, len(chain) - 1):
            if tensor.ndim not in (1, 2):
                which = "last" if position else "first"
                raise RuntimeError(
                    f"multi_dot(): the {which} tensor must be 1D or 2D but got {tensor.ndim}D"
                )
        elif tensor.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {position} must be 2D but got {tensor.ndim}D")
    for position, (x, y) in enumerate(zip(chain, chain[1:])):
        if x.shape[-1] != y.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {position} and {position + 1} with shapes "
                f"{list(x.shape)} and {list(y.shape)} cannot be multiplied"
            )
    first = 1 if chain[0].ndim == 1 else chain[0].shape[0]
    last = 1 if chain[-1].ndim == 1 else chain[-1].shape[1]
    return _multiply(chain, _cheapest([first, *[x.shape[0] for x in chain[1:]], last]), 0, -1)


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each part (i, j) of a chain whose i-th matrix is sizes[i] x sizes[i + 1]."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _multiply(chain: list[Tensor], split: dict, i: int, j: int) -> Tensor:
    j %= len(chain)
    if i == j:
        return chain[i]
    k = split[i, j]
    return matmul(_multiply(chain, split, i, k), _multiply(chain, split, k + 1, j))


def _combined(input: Tensor, term: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * input + alpha * term``; at beta 0 `input` counts for nothing, NaN included."""
    if term.dtype.kind == "b":
        beta, alpha = bool(beta), bool(alpha)
    elif term.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    term = times(term, alpha)
    return term if beta == 0 else times(input, beta) + term


@public("torch", "method")
@with_out
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``."""
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}"
        )
    if mat.shape[1] != vec.shape[0] or tuple(input.shape) not in ((), (1,), (mat.shape[0],)):
        raise RuntimeError(
            f"size mismatch, got input ({input.numel()}), mat ({mat.shape[0]}x{mat.shape[1]}), "
            f"vec ({vec.shape[0]})"
        )
    if input.dtype is not mat.dtype:
        raise RuntimeError("addmv input tensors must have the same dtype")
    return _combined(input, plain_matmul(mat, vec), beta, alpha)


@public("torch", "method")
@with_out
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; dtypes are promoted."""
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    expect_expandable(input, (vec1.shape[0], vec2.shape[0]))
    dtype = promote_types(input.dtype, promote_types(vec1.dtype, vec2.dtype))
    return _combined(cast(input, dtype), outer(cast(vec1, dtype), vec2), beta, alpha)


@public("torch", "method")
@with_out
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """``beta * input + alpha * (the sum of all batch1[i] @ batch2[i])``."""
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if batch1.ndim != 3 else
                           "batch2 must be a 3D tensor")  # fmt: skip
    (count, rows, size), columns = batch1.shape, batch2.shape[2]
    if batch2.shape[0] != count:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {count} and {batch2.shape[0]}"
        )
    if batch2.shape[1] != size:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({rows}x{size} and {batch2.shape[1]}x{columns})"
        )
    if input.dtype is not batch1.dtype:
        raise RuntimeError("Input dtypes must be the same")
    expect_expandable(input, (rows, columns))
    # the sum over the batch is part of one product of wide matrices
    left = batch1.transpose(0, 1).reshape(rows, count * size)
    result = matmul(left, batch2.reshape(count * size, columns))
    return _combined(input, result, beta, alpha).contiguous()


def _inplace(name: str, function: Any, *places: str) -> None:
    @functools.wraps(inspect.unwrap(function))
    def write(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(self, *args, **kwargs)
        if result.shape != self.shape:
            raise RuntimeError(
                f"{name}_: output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}"
            )
        return self.copy_(result)

    write.__name__ = write.__qualname__ = f"{name}_"
    write.__doc__ = f"In-place form of `{name}`."
    public("method", *places)(write)


_inplace("addmv", addmv, "torch")
_inplace("addr", addr)
_inplace("addbmm", addbmm)


@public("torch", "functional")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2 + bias[k]`` for every k: (..., m), (..., n), (out, m, n),
    (out,) give (..., out).
    """
    expect_one_dtype("bilinear", input1, input2, weight, bias)
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    for axis in range(input1.ndim - 1):
        if input1.shape[axis] != input2.shape[axis]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {axis}: got "
                f"{input1.shape[axis]} and {input2.shape[axis]}"
            )
    for number, tensor in enumerate((input1, input2), 1):
        if tensor.shape[-1] != weight.shape[number]:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got "
                f"{tensor.shape[-1]} but expected {weight.shape[number]}"
            )
    out_features, m, n = weight.shape
    if bias is not None and bias.shape[0] != out_features:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected "
            f"{out_features}"
        )
    batch = input1.shape[:-1]
    count = math.prod(batch)
    # (count, m) @ (m, out n), then a product of rows with the second input
    columns = weight.transpose(0, 1).reshape(m, out_features * n)
    left = plain_matmul(input1.reshape(count, m), columns)
    right = input2.reshape(count, n, 1)
    result = plain_matmul(left.reshape(count, out_features, n), right).reshape(*batch, out_features)
    return result if bias is None else result + bias
