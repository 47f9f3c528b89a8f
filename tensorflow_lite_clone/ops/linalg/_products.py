"""What products of tensors share: one dtype for all operands, torch's complaints about shapes."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.tensor import Tensor

_CPP_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half",
              "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int", "bool": "bool",
              "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
              "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}  # fmt: skip


def product(name: str, op: type[Op], *inputs: Tensor | None, **parameters: Any) -> Any:
    """Apply an op whose inputs must have one dtype.

    Raises TypeError for what is no Tensor and RuntimeError for dtypes that differ.
    """
    try:
        dtype = inputs[0]._storage.physical.dtype  # type: ignore[union-attr]
        for tensor in inputs:
            if tensor is not None and tensor._storage.physical.dtype != dtype:
                raise _different(inputs)
    except AttributeError:
        expect_tensors(name, *inputs)
        raise
    return apply(op, *inputs, **parameters)


def overridden(error: Exception, function: Any, *values: Any) -> Any:
    """What one of the values makes of a product that is not of tensors alone, by overriding it.

    Without one raises torch's TypeError, or `error`.
    """
    result = try_overrides(function, *values)
    if result is NotImplemented:
        expect_tensors(function.__name__, *values)
        raise error
    return result


def expect_tensors(name: str, *values: Any) -> None:
    """Raise TypeError when a value is neither a Tensor nor None."""
    for position, value in enumerate(values, 1):
        if not isinstance(value, Tensor) and (value is not None or position == 1):
            raise TypeError(
                f"{name}(): argument (position {position}) must be Tensor, not "
                f"{type(value).__name__}"
            )


def expect_one_dtype(name: str, *tensors: Tensor | None) -> None:
    """Raise RuntimeError for dtypes that differ."""
    dtypes = {tensor.dtype: tensor for tensor in tensors if tensor is not None}
    if len(dtypes) > 1:
        first, second, *_ = [dtype.short_name for dtype in dtypes]
        raise RuntimeError(f"{name}(): expected scalar type {first} but found {second}")


def _different(inputs: tuple) -> RuntimeError:
    names = [_CPP_NAMES[tensor.dtype.name] for tensor in inputs if tensor is not None]
    if len(names) == 2:
        return RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}"
        )
    return RuntimeError(f"expected tensors of one dtype, but got: {', '.join(names)}")


def times(x: Any, number: Any) -> Any:
    """``x * number``, without work for 1."""
    return x if number == 1 else x * number


def as_rows(F: Any, x: Any) -> Any:
    """`x` as a matrix whose rows are its vectors along the last axis."""
    if x.ndim == 2:
        return x
    count = 1
    for size in x.shape[:-1]:
        count *= size
    return F.reshape(x, (count, x.shape[-1]))
