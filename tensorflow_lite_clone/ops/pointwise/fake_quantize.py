"""Fake quantization: numbers rounded to those that few bits can tell apart, in their own dtype."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply_first_output, wrap
from tensorflow_lite_clone.core.dtypes import bfloat16, float16, float32, int32, int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.dispatch.result_layout import like_first
from tensorflow_lite_clone.ops._formulas import wide
from tensorflow_lite_clone.ops._samples import holds
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import calls_cast_operands, cast_operands
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise
from tensorflow_lite_clone.ops.pointwise._operands import cast, expect_constant, refuse
from tensorflow_lite_clone.tensor import Tensor


class FakeQuantizePerTensorAffine(Pointwise):
    """``(level - zero_point) * scale`` of the nearest level in a range; and whether x was in it."""

    layout = like_first
    nondifferentiable = (1,)
    label = "FakeQuantizePerTensorAffineCachemask"

    def forward(F, x, scale, zero_point, *, quant_min, quant_max):
        dtype = x.dtype
        x = wide(F, x)
        steps = x * F.astype(1 / F.astype(scale, float32), x.dtype)  # PyTorch's is a float32
        zero = F.astype(zero_point, x.dtype)
        whole = zero_point.dtype.kind == "i"
        levels = F.round(steps) + zero if whole else F.round(steps + zero)
        inside = (levels >= quant_min) & (levels <= quant_max)
        levels = F.where(levels >= quant_min, F.minimum(levels, quant_max), quant_min)  # no NaN
        return F.astype(F.astype(levels - zero, scale.dtype) * scale, dtype), inside

    def backward_x(F, g, out1):
        return g * F.astype(out1, g.dtype)


class FakeQuantizePerChannelAffine(FakeQuantizePerTensorAffine):
    """The same with scales and zero points that lie along one axis of x."""

    label = "FakeQuantizePerChannelAffineCachemask"
    forward = FakeQuantizePerTensorAffine.forward
    backward_x = FakeQuantizePerTensorAffine.backward_x


@public("torch")
@calls_cast_operands("fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``.

    `scale` and `zero_point` are numbers, or tensors of one element. The gradient of `input` is that
    of the result where no level was clamped, and 0 elsewhere; the others have none. NaN is taken
    for the lowest level. Raises NotImplementedError for `input` that is not of floats, and
    RuntimeError for a `zero_point` outside of [`quant_min`, `quant_max`] that is a number.

    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.26, 9.0]), 0.1, 0, -8, 7)
    tensor([0.3000, 0.7000])
    """
    name = "fake_quantize_per_tensor_affine"
    _check(name, input, quant_min, quant_max)
    tensors = isinstance(scale, Tensor), isinstance(zero_point, Tensor)
    if all(tensors):
        for word, value in (("scale", scale), ("zero_point", zero_point)):
            expect_constant(name, word, value)
            if value.numel() != 1:
                raise RuntimeError(
                    f"{name}(): '{word}' must have one element, got {value.numel()} of them"
                )
        scale = cast(scale, float32).reshape(())
        zero_point = cast(zero_point, int64).reshape(())
    elif not any(tensors) and isinstance(scale, (int, float)) and is_int(zero_point):
        if autocast:  # which PyTorch does for this form alone
            (input,) = cast_operands(fake_quantize_per_tensor_affine, input)
        if not quant_min <= zero_point <= quant_max:
            raise _outside(zero_point, quant_min, quant_max)
        backend = input._storage.backend
        scale = wrap(backend.constant(scale, backend.native[float32]), backend)
        zero_point = wrap(backend.constant(zero_point, backend.native[int64]), backend)
    else:
        raise TypeError(
            f"{name}(): 'scale' and 'zero_point' must be a float and an int, or both Tensors, not "
            f"{type(scale).__name__} and {type(zero_point).__name__}"
        )
    parameters = {"quant_min": quant_min, "quant_max": quant_max}
    return apply_first_output(FakeQuantizePerTensorAffine, input, scale, zero_point, parameters)


@public("torch")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of `axis`.

    Both are vectors of ``input.shape[axis]`` elements: `scale` in float32 or bfloat16, `zero_point`
    in int32, float32 or float16. To floats the quotients are added before they are rounded.
    """
    name = "fake_quantize_per_channel_affine"
    _check(name, input, quant_min, quant_max)
    for word, value, dtypes in (
        ("scale", scale, (float32, bfloat16)),
        ("zero_point", zero_point, (int32, float32, float16)),
    ):
        expect_constant(name, word, value)
        if value.dtype not in dtypes:
            words = " or ".join([dtype.name for dtype in dtypes])
            raise RuntimeError(f"{name}(): '{word}' must be {words}, got {value.dtype.name}")
    shape = input._storage.physical.shape
    if normalize_dim(axis, len(shape)) != axis:
        raise RuntimeError(f"{name}(): 'axis' must not be negative, got {axis}")
    if not shape:
        raise IndexError(f"{name}(): 'input' must have dimensions, got none")
    if scale.shape != (shape[axis],) or zero_point.shape != scale.shape:
        raise RuntimeError(
            f"{name}(): 'scale' and 'zero_point' must have shape ({shape[axis]},), as 'input' has "
            f"{shape[axis]} elements along axis {axis}; got {tuple(scale.shape)} and "
            f"{tuple(zero_point.shape)}"
        )
    whole = zero_point.dtype is int32
    if whole and not holds((zero_point >= quant_min) & (zero_point <= quant_max)):
        raise _outside(zero_point.tolist(), quant_min, quant_max)
    places = tuple([-1 if one == axis else 1 for one in range(len(shape))])
    scale = cast(scale, float32 if input.dtype.itemsize < 8 else input.dtype).reshape(places)
    zero_point = cast(zero_point, int64 if whole else float32).reshape(places)
    parameters = {"quant_min": quant_min, "quant_max": quant_max}
    return apply_first_output(FakeQuantizePerChannelAffine, input, scale, zero_point, parameters)


def _check(name: str, input: Tensor, quant_min: int, quant_max: int) -> None:
    if input.dtype.kind != "f" or input.dtype.itemsize == 1:
        refuse(name, input.dtype)
    if quant_min > quant_max:
        raise RuntimeError(
            f"{name}(): 'quant_min' must not be larger than 'quant_max', got {quant_min} and "
            f"{quant_max}"
        )


def _outside(zero_point: Any, quant_min: int, quant_max: int) -> RuntimeError:
    return RuntimeError(
        f"'zero_point' must be between 'quant_min' and 'quant_max', which are {quant_min} and "
        f"{quant_max}, got {zero_point}"
    )
