"""Products of vectors, matrices and batches of matrices."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply_binary
from tensorflow_lite_clone.autograd.inplace import apply_inplace
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.core.late_bound import sparse_matmul
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import calls_cast_operands, cast_operands
from tensorflow_lite_clone.ops.decorators.out import with_out, write_out
from tensorflow_lite_clone.ops.linalg._products import (
    as_rows,
    expect_tensors,
    overridden,
    product,
    times,
)
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor


def _transposed(F: Any, x: Any) -> Any:
    """The conjugate transpose."""
    return F.matrix_transpose(conj(F, x))


class Mm(Op):
    """``x @ y`` where y is one matrix; x may be a vector, a matrix or a batch."""

    cost = costs.product(costs.product_flops, 0, 1)
    primitive = "matmul"

    def forward(F, x, y):
        return F.matmul(x, y)

    def backward_x(F, g, y):
        return F.matmul(g, _transposed(F, y))

    def backward_y(F, g, x):
        if x.ndim == 1:
            return conj(F, x)[:, None] * g
        return F.matmul(_transposed(F, as_rows(F, x)), as_rows(F, g))


class Bmm(Op):
    """``x @ y`` where y is a batch; the leading axes broadcast."""

    cost = costs.product(costs.product_flops, 0, 1)
    primitive = "matmul"

    def forward(F, x, y):
        return F.matmul(x, y)

    def backward_x(F, g, y):
        return F.matmul(g, _transposed(F, y))

    def backward_y(F, g, x):
        return F.matmul(_transposed(F, x), g)


class Mv(Op):
    """``x @ y`` where y is a vector; x is a matrix or a batch."""

    primitive = "matmul"

    def forward(F, x, y):
        return F.matmul(x, y)

    def backward_x(F, g, y):
        return g[..., None] * conj(F, y)

    def backward_y(F, g, x):
        return F.matmul(_transposed(F, as_rows(F, x)), F.reshape(g, (-1,)))


class Dot(Op):
    """The sum of products of two vectors."""

    primitive = "matmul"

    def forward(F, x, y):
        return F.matmul(x, y)

    def backward_x(F, g, y):
        return g * conj(F, y)

    def backward_y(F, g, x):
        return g * conj(F, x)


@public("torch", "method", "linalg", flat=True)
@calls_cast_operands("matmul")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product of the last two axes; vectors and broadcasting as in NumPy.

    Raises RuntimeError when sizes or dtypes do not fit.
    """
    if autocast and out is None:
        input, other = cast_operands(matmul, input, other)
    try:
        left, right = input._storage.physical, other._storage.physical
        x, y = left.ndim, right.ndim
    except AttributeError as error:
        return overridden(error, matmul, input, other)
    except NotImplementedError:
        expect_tensors("matmul", input, other)
        product = sparse_matmul(input, other)
        if product is NotImplemented:
            raise
        return product
    if x == y == 2 and left.dtype is right.dtype and left.dtype.kind == "f":
        try:
            result = apply_binary(Mm, input, other)
        except ValueError:
            raise misfit(input.shape, other.shape) from None
    else:
        result = plain_matmul(input, other)
    return result if out is None else write_out("matmul", out, result)


def plain_matmul(input: Tensor, other: Tensor) -> Tensor:
    """`matmul`, also for functions that autocast leaves alone where it casts those of `matmul`."""
    x, y = input.ndim, other.ndim
    if (
        x > 2
        and y > 2
        and not (input.numel() and other.numel())
        and (input.dtype is not other.dtype or input.dtype.kind == "b")
    ):  # PyTorch does not look at the dtypes of nothing
        return cast(plain_matmul(cast(input, float32), cast(other, float32)), other.dtype)
    if input.dtype.kind == "b":
        raise NotImplementedError("\"matmul\" not implemented for 'Bool'")
    if not (x and y):
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {x}D and {y}D"
        )
    try:
        if y > 2 and x == 1:
            return product("matmul", Bmm, input.unsqueeze(0), other).squeeze(-2)
        op = Mm if y == 2 else Bmm if y > 2 else Mv if x > 1 else Dot
        return product("matmul", op, input, other)
    except ValueError:
        raise misfit(input.shape, other.shape) from None


def misfit(x: tuple, y: tuple) -> RuntimeError:
    """torch's words for shapes that `matmul` cannot multiply."""
    if not x or not y:
        return RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(x)}D and {len(y)}D"
        )
    if len(y) == 1:
        if len(x) == 1:
            return _unequal_vectors(x, y)
        rows = prod(x[:-1])
        return RuntimeError(
            f"size mismatch, got input ({rows}), mat ({rows}x{x[-1]}), vec ({y[0]})"
        )
    if len(y) == 2:
        return RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({prod(x[:-1])}x{x[-1]} and {y[0]}x{y[1]})"
        )
    try:
        batch = broadcast_shapes(x[:-2], y[:-2])
    except RuntimeError as error:
        return error
    return RuntimeError(
        f"Expected size for first two dimensions of batch2 tensor to be: "
        f"[{prod(batch)}, {x[-1]}] but got: [{prod(batch)}, {y[-2]}]."
    )


def _unequal_vectors(x: tuple, y: tuple) -> RuntimeError:
    return RuntimeError(
        f"inconsistent tensor size, expected tensor {list(x)} and src {list(y)} to have the same "
        f"number of elements, but got {x[0]} and {y[0]} elements respectively"
    )


@public("method", flat=True)
def __matmul__(self: Tensor, y: Any) -> Any:
    return matmul(self, y) if isinstance(y, Tensor) else try_overrides(__matmul__, self, y)


@public("method", flat=True)
def __rmatmul__(self: Tensor, x: Any) -> Any:
    return matmul(x, self) if isinstance(x, Tensor) else try_overrides(__rmatmul__, self, x)


@public("torch", "method", flat=True)
@with_out
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, (n, k) and (k, m)."""
    try:
        expect_tensors("mm", input, mat2)
    except TypeError as error:
        return overridden(error, mm, input, mat2)
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    return matmul(input, mat2)


@public("torch", "method", flat=True)
@with_out
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices, (b, n, k) and (b, k, m)."""
    try:
        expect_tensors("bmm", input, mat2)
    except TypeError as error:
        return overridden(error, bmm, input, mat2)
    _check_batches(input, mat2)
    return matmul(input, mat2)


@public("torch", "method")
@with_out
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix (n, k) and a vector (k,)."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {vec.ndim}, {input.ndim}, {vec.ndim}"
        )
    return plain_matmul(input, vec)


@public("torch", "method")
@with_out
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of products of two vectors of one length."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    return plain_matmul(input, tensor)


@public("torch", "method")
@with_out
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """`dot` with the first vector conjugated."""
    return dot(input.conj() if input.dtype.kind == "c" else input, other)


@public("torch", "method")
@with_out
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The matrix of all products of two vectors."""
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.ndim}-D")
    return input.unsqueeze(1) * vec2


export(outer, "torch", "method", name="ger")


class Addmm(Op):
    """``beta x + alpha y @ z`` for a matrix or a batch of them."""

    cost = costs.product(costs.added_product_flops, 1, 2)

    def forward(F, x, y, z, *, beta, alpha):
        product = times(F.matmul(y, z), alpha)
        return F.astype(product if beta == 0 else product + times(x, beta), x.dtype)

    def backward_x(F, g, *, beta):
        return times(g, beta.conjugate())

    def backward_y(F, g, z, *, alpha):
        return times(F.matmul(g, _transposed(F, z)), alpha.conjugate())

    def backward_z(F, g, y, *, alpha):
        return times(F.matmul(_transposed(F, y), g), alpha.conjugate())


class Baddbmm(Addmm):
    """`Addmm` for batches."""

    forward = Addmm.forward


def _scales(input: Tensor, beta: Any, alpha: Any) -> dict[str, Any]:
    """beta and alpha as the dtype holds them."""
    if input.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    return {"beta": beta, "alpha": alpha}


def expect_expandable(x: Tensor, shape: tuple) -> None:
    """Raise torch's RuntimeError unless `x` can be expanded to `shape`."""
    size = x.shape
    if size == shape:
        return
    if len(size) > len(shape):
        raise RuntimeError(
            f"expand(torch.{x.dtype.short_name}Tensor{{{list(size)}}}, size={list(shape)}): the "
            f"number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(size)})"
        )
    for axis in range(-1, -len(size) - 1, -1):
        if size[axis] not in (1, shape[axis]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[axis]}) must match the existing size "
                f"({size[axis]}) at non-singleton dimension {len(shape) + axis}.  Target sizes: "
                f"{list(shape)}.  Tensor sizes: {list(size)}"
            )


def _of_other_dtypes(name: str, left: Tensor, mat2: Tensor) -> RuntimeError:
    return RuntimeError(
        f"{name} and mat2 must have the same dtype, but got {left.dtype.short_name} and "
        f"{mat2.dtype.short_name}"
    )


def _check_addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise misfit(mat1.shape, mat2.shape)
    expect_expandable(input, (mat1.shape[0], mat2.shape[1]))


@public("torch", "method")
@with_out
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; `input` broadcasts, and is ignored at beta 0."""
    _check_addmm(input, mat1, mat2)
    return product("addmm", Addmm, input, mat1, mat2, **_scales(input, beta, alpha))


@public("method")
def addmm_(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """In-place form of `addmm`."""
    _check_addmm(input, mat1, mat2)
    if input.dtype is not mat2.dtype:
        raise _of_other_dtypes("self", input, mat2)
    if mat1.dtype is not mat2.dtype:
        raise _of_other_dtypes("mat1", mat1, mat2)
    return apply_inplace(Addmm, input, mat1, mat2, **_scales(input, beta, alpha))


def _check_baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor) -> None:
    _check_batches(batch1, batch2)
    expect_expandable(input, (*batch1.shape[:2], batch2.shape[2]))


def _check_batches(batch1: Tensor, batch2: Tensor) -> None:
    for position, batch in enumerate((batch1, batch2), 1):
        if batch.ndim != 3:
            raise RuntimeError(f"batch{position} must be a 3D tensor")
    x, y = batch1.shape, batch2.shape
    if x[0] != y[0] or x[2] != y[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{x[0]}, {x[2]}] "
            f"but got: [{y[0]}, {y[1]}]."
        )


@public("torch", "method")
@with_out
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` for batches of matrices."""
    _check_baddbmm(input, batch1, batch2)
    return product("baddbmm", Baddbmm, input, batch1, batch2, **_scales(input, beta, alpha))


@public("method")
def baddbmm_(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """In-place form of `baddbmm`."""
    _check_baddbmm(input, batch1, batch2)
    return apply_inplace(Baddbmm, input, batch1, batch2, **_scales(input, beta, alpha))
