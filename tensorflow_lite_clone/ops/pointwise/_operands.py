"""Operands of pointwise functions: Tensors, Python numbers, NumPy scalars; promotion and casts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import (
    DType,
    bfloat16,
    dtype_of_scalar,
    float16,
    float32,
    promote_operands,
    promote_peers,
)
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.limits import finfo, overflow
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import like_first
from tensorflow_lite_clone.tensor import Tensor

Number = bool | int | float | complex
HALVES = (bfloat16, float16)


class Cast(Op):
    """The same values in another dtype."""

    layout = like_first
    layout_agnostic = True
    label = "ToCopy"

    def forward(F, x, *, dtype):
        return F.astype(x, dtype)

    def backward_x(F, g, *, dtype):
        return g  # the engine casts to the input's dtype


class CastWeight(Cast):
    """`Cast` of a convolution's weight (o, c, *kernel), which may be laid as suits convolutions."""

    label = "ToCopy"
    forward = Cast.forward


class CastToIntegers(Op):
    """`Cast` to a dtype without gradients."""

    layout = like_first
    layout_agnostic = True

    def forward(F, x, *, dtype):
        return F.astype(x, dtype)


def refuse(name: str, dtype: DType) -> NoReturn:
    """Raise torch's error for a dtype that a function does not serve."""
    raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.short_name}'")


def cast(x: Tensor, dtype: DType) -> Tensor:
    """`x` in `dtype`; `x` itself when it has that dtype already."""
    if x.dtype is dtype:
        return x
    return apply(Cast if dtype.kind in "fc" else CastToIntegers, x, dtype=dtype)


def warn_imaginary() -> None:
    """Say that a cast of complex numbers to real ones loses half of them."""
    warnings.warn(
        "Casting complex values to real discards the imaginary part", stacklevel=level_outside()
    )


def cast_weight(x: Tensor, dtype: DType) -> Tensor:
    """`cast` of weights of convolutions in two dimensions."""
    weight: Tensor = apply(CastWeight, x, dtype=dtype)
    return weight


def as_number(value: Any) -> Any:
    """A Python number for a number or NumPy scalar, None for anything else."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if not isinstance(value, Tensor) and getattr(value, "shape", None) == ():
        return value.item()
    return None


def is_half_number(value: float, native: Any) -> bool:
    """Whether a dtype of half floats holds a number as it is."""
    return -65504 <= value <= 65504 and float(native.type(value)) == value


def half_number(value: Any, x: Tensor) -> Any:
    """A number as some functions read it beside half floats, rounded as these are.

    RuntimeError where it is larger than all of them. A number beside other dtypes as it is.
    """
    if value is None or x.dtype not in HALVES:
        return value
    if finfo(x.dtype).max < abs(value) < math.inf:
        raise overflow(x.dtype)
    return float(x._storage.physical.dtype.type(value))


def operand_dtype(*values: Any) -> DType:
    """PyTorch's result type of Tensors and Python numbers (see `core.dtypes`).

    Raises TypeError for anything else.
    """
    dimensioned = zero_dim = scalar = None
    for value in values:
        if isinstance(value, Tensor):
            dtype = value.dtype
            if value.ndim:
                dimensioned = dtype if dimensioned is None else promote_peers(dimensioned, dtype)
            else:
                zero_dim = dtype if zero_dim is None else promote_peers(zero_dim, dtype)
        else:
            dtype = dtype_of_scalar(value)
            scalar = dtype if scalar is None else promote_peers(scalar, dtype)
    return promote_operands(dimensioned, zero_dim, scalar)


def no_halves(name: str) -> Callable[[tuple], None]:
    """A check of operands for a function that PyTorch serves in float32 and float64 only."""

    def check(values: tuple) -> None:
        dtype = operand_dtype(*values)
        if dtype.kind == "f" and dtype.itemsize == 2:
            refuse(name, dtype)

    return check


def as_operands(values: tuple, dtype: DType, scales: tuple[int, ...] = ()) -> list[Tensor]:
    """Each value as a Tensor of `dtype` on the Tensors' device.

    Zero-dim CPU tensors join tensors of another device, as in PyTorch. Beside half floats numbers
    and zero-dim tensors of other dtypes are Tensors of float32 at the places `scales`, unless the
    device rounds them.
    """
    backend = common_backend(values)
    if dtype not in HALVES or backend.rounds_numbers:
        scales = ()
    operands = []
    for place, value in enumerate(values):
        is_number = not isinstance(value, Tensor)
        exact = place in scales and (is_number or (not value.ndim and value.dtype is not dtype))
        kind = float32 if exact else dtype
        if is_number:
            operands.append(wrap(backend.constant(value, backend.native[kind]), backend))
        else:
            operands.append(cast(joined(value, backend), kind))
    return operands


def common_backend(values: tuple) -> Any:
    """The backend of the first Tensor that has dimensions, else of the first one, else the CPU."""
    backend = None
    for value in values:
        if isinstance(value, Tensor) and (backend is None or value.ndim):
            backend = value._storage.backend
            if value.ndim:
                break
    return backends.load("cpu") if backend is None else backend


def joined(value: Tensor, backend: Any) -> Tensor:
    """A zero-dim CPU tensor on `backend`; any other as it is."""
    if value._storage.backend is not backend and not value.ndim and value.is_cpu:
        return value.to(backend.device)
    return value


def expect_constant(function: str, name: str, tensor: Tensor | None) -> None:
    """Raise torch's error for an input that requires a gradient where there is none."""
    if tensor is not None and tensor._edge is not None and mode.grad:
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{name}'. "
            "This input cannot have requires_grad True."
        )
