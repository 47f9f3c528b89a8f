"""What functions of matrices share: torch's complaints about shapes, dtypes and failures."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.tensor import Tensor


def adjoint(F: Any, x: Any) -> Any:
    """The conjugate transposes."""
    return F.matrix_transpose(conj(F, x))


def expect_matrices(name: str, x: Tensor, letter: str = "A") -> None:
    """Raise RuntimeError for less than two dimensions."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")


def expect_square(name: str, x: Tensor) -> None:
    """`expect_matrices`, and RuntimeError unless there are as many rows as columns."""
    expect_matrices(name, x)
    m, n = x.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )


def expect_floats(name: str, x: Tensor, narrow: bool = True) -> None:
    """Raise RuntimeError for integers and bool; and for floats of two bytes unless `narrow`."""
    dtype = x.dtype
    if dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {dtype.short_name}"
        )
    if dtype.itemsize < 4 and not narrow:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {dtype.short_name}")


def expect_wide(kernel: str, x: Tensor) -> None:
    """Raise NotImplementedError for all dtypes but floats and complex numbers of full width."""
    dtype = x.dtype
    if dtype.kind not in "fc" or dtype.itemsize < 4:
        refuse(kernel, dtype)


def expect_equation(name: str, a: Tensor, b: Tensor, left: bool) -> None:
    """Raise RuntimeError when the matrices do not fit into A X = B (X A = B if not `left`)."""
    (m, n), (k, length) = a.shape[-2:], b.shape[-2:]
    if (k if left else length) != m:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX' if left else 'XA'} = B ({m}x{n} and {k}x{length})"
        )


def expect_alike(name: str, b: Tensor, a: Tensor) -> None:
    """Raise RuntimeError where the older functions do: other dtypes, or shapes that do not fit."""
    if b.dtype is not a.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.short_name} "
            f"and A of type {a.dtype.short_name} instead."
        )
    (m, n), (k, length) = a.shape[-2:], b.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {m} by {n} matrices"
        )
    if k != m:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {m} by {n} but each b matrix "
            f"is {k} by {length}"
        )


def removed(name: str, advice: str, *places: str) -> None:
    """Export to `places` a function that PyTorch has removed: it raises RuntimeError."""
    message = f"This function was deprecated since version 1.9 and is now removed. {advice}"

    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(message)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed: always raises RuntimeError. {advice}"
    public(*places)(function)


def failure(info: Tensor) -> tuple[str, int] | None:
    """Which matrix failed first, as the beginning of a message, and its info; None: no one."""
    backend, array = info._storage.backend, info._storage.array
    while backend.batched:  # under vmap all samples are looked at, as if they were a batch
        backend, array = backend.base, array.data
    if not backend.has_values:
        return None
    for number, place in enumerate(backend.to_host(array).ravel().tolist()):
        if place:
            return (f"(Batch element {number}): " if array.ndim else ""), place
    return None
