"""From numbers to codes: which scale and zero point serve a range, and quantizing with them."""

from __future__ import annotations

import struct
from math import isfinite
from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import (
    QUANTIZED,
    DType,
    float32,
    float64,
    int64,
    qint32,
    quint8,
)
from tensorflow_lite_clone.core.limits import iinfo
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.quantized.tensor import QuantizedTensor
from tensorflow_lite_clone.tensor import Tensor


class Parameters(NamedTuple):
    """What codes mean: ``(code - zero_point) * scale``."""

    scale: float
    zero_point: int


def single(number: float) -> float:
    """The nearest float32."""
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded


#: No scale is smaller.
SMALLEST_SCALE = single(6.1e-5)
#: The scale of nothing but zeros.
SCALE_OF_ZEROS = 0.1


def choose_parameters(
    low: float, high: float, least: int, most: int, reduce_range: bool = False
) -> Parameters:
    """The scale and zero point with which the codes from `least` to `most` cover [low, high].

    The range is widened to hold 0, which gets a code of its own, so that zeros (padding, ReLU) are
    exact::

        scale = (high - low) / (most - least)
        zero_point = round(least - low / scale)

    With `reduce_range` half the codes are used: sums of two products of such codes with int8 fit
    into int16, which older processors add in. Source: Jacob et al., "Quantization and training of
    neural networks for efficient integer-arithmetic-only inference" (2018), section 3; of the two
    ends of the range, the zero point is taken from that with the smaller error. RuntimeError for
    ranges that are not finite.

    >>> from tensorflow_lite_clone.quantized.quantize import choose_parameters
    >>> choose_parameters(-1.0, 3.0, 0, 255)
    Parameters(scale=0.01568627450980392, zero_point=64)
    """
    if not low <= high:  # or one is NaN
        raise RuntimeError(
            "In ChooseQuantizationParams, min should be less than or equal to max, got "
            f"{low} and {high}"
        )
    if not isfinite(high - low):
        raise RuntimeError(f"expected finite numbers to quantize, got a range [{low}, {high}]")
    if reduce_range:
        least, most = least // 2, most // 2
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (most - least)
    if single(scale) <= 2.0**-128:  # whose reciprocal is no float32
        scale = SCALE_OF_ZEROS
    if scale < SMALLEST_SCALE:
        factor = SMALLEST_SCALE / single(scale)
        low, high = single(low * single(factor)), single(high * single(factor))
        scale = SMALLEST_SCALE
        if not low or not high:
            end = single(SMALLEST_SCALE * (most - least))
            low, high = (-end if low else low), (end if high else high)
    from_low, from_high = least - low / scale, most - high / scale
    better = abs(least) - abs(low / scale) < abs(most) - abs(high / scale)
    zero_point = round(from_low if better else from_high)
    return Parameters(scale, max(least, min(zero_point, most)))


def choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> Parameters:
    """`choose_parameters` for the numbers in `input` and the codes of quint8."""
    low, high = input.amin().item(), input.amax().item()
    return choose_parameters(low, high, 0, 255, reduce_range)


@no_grad()
def codes_of(x: Tensor, scale: Any, zero_point: Any, dtype: DType) -> Tensor:
    """The codes of float32 numbers in float32: ``round(x / scale) + zero_point``, clamped.

    What is rounded, halves to even, is ``x * (1 / scale) + zero_point``. With numbers for `scale`
    and `zero_point`, and codes of 8 bits, the sum is rounded to float32 once, as by the instruction
    that PyTorch uses there: in float64 the product is exact. Else product and sum are rounded.
    """
    limits = iinfo(QUANTIZED[dtype])
    if isinstance(scale, Tensor):
        steps = x * (1 / scale.to(float32)) + zero_point.to(float32)
    else:
        inverse = single(1 / single(scale))
        fused = dtype is not qint32
        steps = x.to(float64).mul_(inverse).add_(zero_point) if fused else x * inverse + zero_point
    return steps.to(float32).round_().clamp_(limits.min, limits.max)


def quantize_per_tensor(
    input: Any, scale: Any, zero_point: Any, dtype: DType
) -> QuantizedTensor | tuple[QuantizedTensor, ...]:
    """`input`, of float32, as codes with one scale and one zero point.

    `dtype` is qint8, quint8 or qint32. `scale` and `zero_point` may be tensors of one element; for
    a list of tensors they are vectors, and the result is a tuple. Raises RuntimeError for other
    dtypes, and for a zero point that is no code.

    >>> x = torch.tensor([-1.0, 0.0, 0.26])
    >>> torch.quantize_per_tensor(x, 0.1, 10, torch.quint8).int_repr()
    tensor([ 0, 10, 13], dtype=torch.uint8)
    """
    if isinstance(input, (list, tuple)):
        triples = zip(input, scale, zero_point, strict=True)
        return tuple([_quantized(x, float(s), int(zero), dtype) for x, s, zero in triples])
    return _quantized(input, float(scale), int(zero_point), dtype)


def _quantized(x: Tensor, scale: float, zero_point: int, dtype: DType) -> QuantizedTensor:
    _expect_floats(x, dtype)
    limits = iinfo(QUANTIZED[dtype])
    if not limits.min <= zero_point <= limits.max:
        side = "below lower" if zero_point < limits.min else "above upper"
        raise RuntimeError(
            f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound."
        )
    codes = codes_of(x, scale, zero_point, dtype).to(QUANTIZED[dtype])
    return QuantizedTensor(codes, dtype, scale, zero_point)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType
) -> QuantizedTensor:
    """`input`, of float32, as codes with a scale and a zero point for each index along `axis`.

    `scales` and `zero_points` are vectors of ``input.shape[axis]`` elements. Raises RuntimeError
    for sizes that do not fit and for other dtypes.
    """
    _expect_floats(input, dtype)
    if not 0 <= axis < input.ndim:
        raise RuntimeError(
            "Channel axis out of range in per channel affine quantization. Got: "
            f"{axis} Expected: [0, {input.ndim})"
        )
    for name, vector in (("scales", scales), ("zero_points", zero_points)):
        if vector.shape != (input.shape[axis],):
            raise RuntimeError(
                f"length of {name} must equal to channel, expected {input.shape[axis]} got, "
                f"{vector.numel()}"
            )
    result = QuantizedTensor(input, dtype, scales.to(float64), zero_points.to(int64), axis)
    spread = result._spread(result._scale), result._spread(result._zero)
    result._codes = codes_of(input, *spread, dtype).to(QUANTIZED[dtype])
    return result


def quantize_per_tensor_dynamic(input: Tensor, dtype: DType, reduce_range: bool) -> QuantizedTensor:
    """`quantize_per_tensor` with a scale and zero point for the numbers in `input`."""
    _expect_floats(input, dtype)
    limits = iinfo(QUANTIZED[dtype])
    low, high = input.amin().item(), input.amax().item()
    chosen = choose_parameters(low, high, limits.min, limits.max, reduce_range)
    return _quantized(input, *chosen, dtype)


def _expect_floats(x: Tensor, dtype: DType) -> None:
    if x.dtype is not float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {x.dtype.short_name}")
    if dtype not in QUANTIZED:
        raise RuntimeError(
            f"expected torch.qint8, torch.quint8 or torch.qint32 to quantize to, got {dtype}"
        )


def empty_affine_quantized(
    size: Any,
    *,
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: DType = quint8,
    device: Any = None,
) -> QuantizedTensor:
    """A quantized tensor of a size, of whatever numbers."""
    codes = empty(size, dtype=QUANTIZED[dtype], device=device)
    return QuantizedTensor(codes, dtype, scale, zero_point)


def make_per_tensor_quantized_tensor(
    input: Tensor, scale: float, zero_point: int
) -> QuantizedTensor:
    """The quantized tensor with `input`, of int8, uint8 or int32, as its codes."""
    return QuantizedTensor(input.clone(), quantized_dtype(input), scale, zero_point)


def make_per_channel_quantized_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int
) -> QuantizedTensor:
    """The same with scales and zero points along `axis`."""
    parameters = scale.to(float64), zero_point.to(int64)
    return QuantizedTensor(input.clone(), quantized_dtype(input), *parameters, axis)


def quantized_dtype(codes: Tensor) -> DType:
    """The dtype whose codes have the dtype of `codes`; RuntimeError if there is none."""
    for dtype, integers in QUANTIZED.items():
        if codes.dtype is integers:
            return dtype
    raise RuntimeError(f"expected codes of int8, uint8 or int32, got {codes.dtype}")
