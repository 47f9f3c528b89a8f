"""Initial values for parameters, as ``torch.nn.init``.

All functions work in place, record no gradient and return the tensor. With the same seed they
draw PyTorch's numbers on the CPU.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.interception import overridable
from tensorflow_lite_clone.ops.create.constructors import empty_like
from tensorflow_lite_clone.ops.random.sampling import randperm
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity shrinks the standard deviation, inverted.

    `param` is the negative slope of ``leaky_relu``: sqrt(2 / (1 + slope^2)).
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive_field, tensor.shape[0] * receptive_field


@overridable("torch.nn.init.uniform_")
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@overridable("torch.nn.init.normal_")
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from N(mean, std^2)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with draws from N(mean, std^2), drawn again until they lie in [a, b].

    Where little of the distribution lies in there, by rejection of uniform draws.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=level_outside(),
        )
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2.0))) / 2 for bound in (a, b))
    with no_grad():
        if tensor.is_meta:  # no draw of it lies anywhere
            return tensor.normal_(mean, std, generator=generator)
        if high - low > 0.3:
            return _redrawn_normal(tensor, mean, std, a, b, generator)
        return _rejected_uniform(tensor, mean, std, a, b, generator)


def _redrawn_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    x = tensor.normal_(mean, std, generator=generator)
    outside = (x < a) | (x > b)
    while bool(outside.any()):
        # Whole tensors are drawn, though few elements are wanted: the stream is PyTorch's.
        x = empty_like(x).normal_(mean, std, generator=generator).where(outside, x)
        outside = (x < a) | (x > b)
    return tensor if x is tensor else tensor.copy_(x)


def _rejected_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    mode = min(max(mean, a), b)
    log_highest = -0.5 * ((mode - mean) / std) ** 2
    draws = empty_like(tensor)
    x = tensor.uniform_(a, b, generator=generator)
    rejected = None
    while True:
        log_density = ((x - mean) / std) ** 2 * -0.5 - log_highest
        above = draws.uniform_(generator=generator).log_() > log_density
        rejected = above if rejected is None else rejected & above
        if not bool(rejected.any()):
            return tensor if x is tensor else tensor.copy_(x)
        x = draws.uniform_(a, b, generator=generator).where(rejected, x)


@overridable("torch.nn.init.constant_")
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    with no_grad():
        return tensor.zero_()


# PyTorch's private names, which initialisations in the wild call.
_no_grad_uniform_ = uniform_
_no_grad_normal_ = normal_
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_fill_ = constant_
_no_grad_zero_ = zeros_


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity (as far as it is one)."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution's weight (3, 4 or 5 dimensions) pass its channels on unchanged."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    channels = tensor.shape[0] // groups
    centre = tuple(length // 2 for length in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(channels, tensor.shape[1])):
                tensor[(group * channels + channel, channel, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    a = math.sqrt(3.0) * std
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from N(0, std^2), std = gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return normal_(tensor, 0.0, std, generator)


@overridable("torch.nn.init.kaiming_uniform_")
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill with draws from U(-b, b), b = gain(nonlinearity, a) * sqrt(3 / fan)."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill with draws from N(0, std^2), std = gain(nonlinearity, a) / sqrt(fan)."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=level_outside())
    return True


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain`; dimensions after the first are one."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    # The package's linear algebra is only loaded by those who need it.
    from tensorflow_lite_clone.linalg import qr

    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    with no_grad():
        x = tensor.new_empty((rows, columns)).normal_(0.0, 1.0, generator=generator)
        q, r = qr(x.t() if rows < columns else x)
        # Of the many decompositions the one with a positive diagonal is uniformly distributed.
        q = q * r.diagonal().sign()
        tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with draws from N(0, std^2), a share `sparsity` of each column being zero."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0.0, std, generator=generator)
        for column in range(0 if tensor.is_meta else columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new = function.__name__
    old = new[:-1]

    @wraps(function)
    def with_warning(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        return function(*args, **kwargs)

    with_warning.__name__ = with_warning.__qualname__ = old
    with_warning.__doc__ = f"The old name of `{new}`."
    return with_warning


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
