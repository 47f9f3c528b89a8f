"""`nn.functional.pad`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.strides import sizes_of
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.index.gather import index_select
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.ops.shape.memory import in_format_of
from tensorflow_lite_clone.ops.shape.rearrange import ConstantPad
from tensorflow_lite_clone.ops.shape.slices import narrow
from tensorflow_lite_clone.tensor import Tensor


@public("functional")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` with elements added (cut where negative) before and after its last dimensions.

    `pad` is (before, after) of the last dimension, then of the one before it, and so on. `mode`:
    ``constant`` adds `value`, ``reflect`` mirrors without repeating the edge, ``replicate``
    repeats the edge, ``circular`` goes on at the other end. Raises RuntimeError for paddings that
    do not fit, NotImplementedError for unknown modes.
    """
    return _padded(input, pad, mode, value)


@public("torch")
def constant_pad_nd(input: Tensor, pad: Any, value: complex = 0) -> Tensor:
    """`nn.functional.pad` with mode ``constant``."""
    return _padded(input, pad, "constant", value)


def _padded(input: Tensor, pad: Any, mode: str, value: complex | None) -> Tensor:
    shape = input._storage.physical.shape
    widths = sizes_of((pad,), "pad")
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(widths)} and input of dimension {len(shape)}"
        )
    pairs = list(zip(widths[::2], widths[1::2]))[::-1]
    if mode == "constant":
        pads = ((0, 0),) * (len(shape) - len(pairs)) + tuple(pairs)
        for axis, (low, high) in enumerate(pads):
            if shape[axis] + low + high < 0 or -min(low, 0) - min(high, 0) > shape[axis]:
                raise RuntimeError(
                    f"The input size {shape[axis]}, plus negative padding {low} and {high}, "
                    f"resulted in a negative output size, which is invalid. Check dimension {axis} "
                    "of your input."
                )
        if not any(widths):
            return input.clone()
        return apply(ConstantPad, input, pads=pads, value=0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if len(widths) not in (2, 4, 6) or len(shape) - len(pairs) not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(widths)} is not supported for {len(shape)}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode != "circular" and input.dtype.kind == "b":
        name = "reflection" if mode == "reflect" else "replication"
        raise NotImplementedError(f"\"{name}_pad{len(pairs)}d\" not implemented for 'Bool'")
    if mode != "circular" and 0 in shape[-len(pairs) - 1 :]:
        raise RuntimeError(
            f"Expected a tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    first = len(shape) - len(pairs)
    lengths = [low + size + high for size, (low, high) in zip(shape[first:], pairs)]
    if mode != "circular" and max(lengths) < 1:
        raise RuntimeError(
            f"input (sizes {list(shape[first:])}) is too small. Calculated output sizes: {lengths}"
        )
    return _PROLONGED[mode, len(pairs)](input, first, pairs, mode)


def _prolonged(input: Tensor, first: int, pairs: list, mode: str) -> Tensor:
    """`input` with its dimensions from `first` on prolonged by `pairs`."""
    result = input if mode == "circular" else stepwise(input)
    for axis, (low, high) in enumerate(pairs, first):
        result = _continued(result, axis, low, high, mode, input.shape)
    if all([low <= 0 and high <= 0 for low, high in pairs]):
        result = result.clone()
    return result.contiguous() if mode == "circular" else in_format_of(result, input)


#: What autocast knows as several functions, by mode and number of dimensions.
_PROLONGED = {
    (mode, ndim): autocasts(f"{name}_pad{ndim}d")(_prolonged)
    for mode, name in (
        ("reflect", "reflection"),
        ("replicate", "replication"),
        ("circular", "circular"),
    )
    for ndim in (1, 2, 3)
}


def _continued(x: Tensor, axis: int, low: int, high: int, mode: str, shape: tuple) -> Tensor:
    """`x` prolonged along `axis`: every new place takes an old one's element."""
    size = shape[axis]
    length = low + size + high
    if mode == "reflect" and max(low, high) >= size:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, "
            f"but got: padding ({low}, {high}) at dimension {axis} of input {list(shape)}"
        )
    if mode == "circular":
        if max(low, high) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if length < 0 or size + min(low, 0) + min(high, 0) < min(length, 1):
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    elif length < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {length}")
    if low <= 0 and high <= 0:
        return narrow(x, axis, -low, length)
    backend = x._storage.backend
    index = backend.guarded(_places)(backend.F, size, low, high, mode)
    return index_select(x, axis, wrap(index, backend))


def _places(F: Any, size: int, low: int, high: int, mode: str) -> Any:
    """From which of `size` places each of the longer line takes its element."""
    place = F.arange(-low, size + high, dtype=F.int64)
    if mode == "circular":  # a negative side cuts first, and what is left goes round
        start, stop = max(-low, 0), size - max(-high, 0)
        return start + (place - start) % (stop - start)
    last = size - 1
    if mode == "replicate":
        return F.clip(place, 0, last)
    return last - F.abs(last - F.abs(place))
