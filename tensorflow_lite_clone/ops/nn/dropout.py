"""Dropout of elements and of whole channels; on the CPU with PyTorch's random stream."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import elementwise, like_first
from tensorflow_lite_clone.ops.random.generators import drawing, expect_drawing
from tensorflow_lite_clone.storage import LazyStorage
from tensorflow_lite_clone.tensor import Tensor


class Dropout(Op):
    """x, elements zeroed with probability p and the others divided by 1 - p; and what the gradient
    needs to drop the same: the factors, or what a backend can make them from again."""

    layout = like_first
    layout_agnostic = True
    label = "Mul"
    nondifferentiable = (1,)

    def forward(F, x, *, p):
        noise = F.astype(_keep(F, x, p) / (1 - p), x.dtype)
        return x * noise, noise

    def backward_x(F, g, out1, *, p):
        return F.dropout_backward(g, out1, p=p)


class DropoutBackward(Op):
    """g, zeroed and divided as the forward's x was."""

    layout = elementwise
    layout_agnostic = True
    label = "Mul"

    def forward(F, g, noise, *, p):
        return g * noise

    def backward_g(F, h, noise, *, p):
        return F.dropout_backward(h, noise, p=p)


def _keep(F: Any, x: Any, p: float) -> Any:
    """Ones to keep and zeros to drop, of x's shape and dtype; drawn in the order of its memory."""
    source = F.backend.drawn(F.backend.generator)
    strides = F.backend.strides(x)
    if F.backend.is_contiguous(x) or 0 in strides:
        return source.dropout_mask(p, x.shape, x.dtype)
    order = sorted(range(x.ndim), key=lambda axis: -strides[axis])
    mask = source.dropout_mask(p, tuple([x.shape[axis] for axis in order]), x.dtype)
    return F.permute_dims(mask, tuple([order.index(axis) for axis in range(x.ndim)]))


def _noise(input: Tensor, features: bool, p: float) -> Tensor:
    """What is kept, as a tensor: per element, or per channel (axis 1) of each sample."""
    storage = input._storage
    backend, array = storage.backend, storage.physical
    if not features and storage.__class__ is not LazyStorage:
        return wrap(_keep(backend.F, array, p), backend)
    shape = array.shape  # where the storage is free, drawn in the order that is told
    if features:
        if len(shape) < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    source = backend.drawn(backend.generator)
    return wrap(source.dropout_mask(p, shape, array.dtype), backend)


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _dropped(
    input: Tensor, p: float, training: bool, inplace: bool, features: bool, alpha: bool
) -> Tensor:
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        zero = input.new_zeros(())
        return input.mul_(zero) if inplace else input * zero
    if inplace:
        expect_drawing(input)
    else:
        input = drawing(input)
    if not (inplace or features or alpha):
        return apply(Dropout, input, p=p)[0]
    noise = _noise(input, features, p)
    if not alpha:
        noise = noise / (1 - p)
        return input.mul_(noise) if inplace else input * noise
    # What is dropped becomes SELU's lower limit, and the result is scaled and shifted so that
    # mean and variance stay.
    limit = 1.7580993408473766
    scale = 1 / math.sqrt((limit * limit * p + 1) * (1 - p))
    shift = (noise - 1) * (limit * scale) + limit * scale * p
    noise = noise * scale
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


@public("functional")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements zeroed with probability `p`, the others divided by 1 - p; eval: as they are.

    Raises ValueError unless 0 <= p <= 1.
    """
    _check_probability(p)
    return _dropped(input, p, training, inplace, False, False)


def _channels_dropped(
    input: Tensor, p: float, training: bool, inplace: bool, batched: bool
) -> Tensor:
    """`_dropped` for whole channels, which are axis 1 of a batch and axis 0 of a single sample."""
    if batched:
        return _dropped(input, p, training, inplace, True, False)
    result = _dropped(input.unsqueeze(0), p, training, inplace, True, False)
    return input if inplace else result.squeeze(0)


@public("functional")
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (n, c, w) or (c, w) zeroed with probability `p`."""
    _check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channels_dropped(input, p, training, inplace, input.ndim == 3)


@public("functional")
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels (axis 1) of (n, c, h, w) zeroed with probability `p`.

    As in PyTorch three dimensions are (n, c, w), with a UserWarning, as for two or five and more.
    """
    _check_probability(p)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: a 3-D input is taken as (n, c, w), as by dropout1d; an input without a "
            "batch, (c, h, w), needs unsqueeze(0).",
            stacklevel=level_outside(),
        )
    else:
        _warn_of_dimensions("dropout2d", input, (3, 4))
    return _channels_dropped(input, p, training, inplace, True)


@public("functional")
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (n, c, d, h, w) or (c, d, h, w) zeroed with probability `p`.

    As in PyTorch, an input that is not five-dimensional is a single sample.
    """
    _check_probability(p)
    _warn_of_dimensions("dropout3d", input, (4, 5))
    return _channels_dropped(input, p, training, inplace, input.ndim == 5)


def _warn_of_dimensions(name: str, input: Tensor, expected: tuple[int, int]) -> None:
    if input.ndim not in expected:
        warnings.warn(
            f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will be "
            f"an error; {expected[0]} or {expected[1]} dimensions are expected.",
            stacklevel=level_outside(),
        )


@public("functional")
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what SELU gives."""
    _check_probability(p)
    return _dropped(input, p, training, inplace, False, True)


@public("functional")
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels (axis 1)."""
    _check_probability(p)
    return _dropped(input, p, training, inplace, True, True)


def _torch_form(name: str, features: bool, alpha: bool) -> None:
    """The functions that stand in ``torch`` itself: ``name(input, p, train)`` and ``name_``."""

    def form(inplace: bool) -> Any:
        def function(input: Tensor, p: float, train: bool) -> Tensor:
            if not 0 <= p <= 1:
                raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
            return _dropped(input, p, train, inplace, features, alpha)

        function.__name__ = function.__qualname__ = f"{name}_" if inplace else name
        function.__doc__ = f"`functional.{name}` with the arguments' names of ``torch.{name}``."
        return function

    for inplace in (False, True):
        function = form(inplace)
        export(checked(function), "torch", name=function.__name__)


_torch_form("dropout", False, False)
_torch_form("feature_dropout", True, False)
_torch_form("alpha_dropout", False, True)
_torch_form("feature_alpha_dropout", True, True)
