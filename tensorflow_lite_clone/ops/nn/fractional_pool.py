"""Max pooling over windows at random places, with any size of the result.

Source: Graham, "Fractional max-pooling" (2014). A window of k of n places begins at
``floor((i + u) a) - floor(u a)`` with ``a = (n - k) / (out - 1)`` and u drawn from [0, 1), the last
one at ``n - k``.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.backends.windows import int_tuple
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor

_AXES = ("time", "height", "width")


def _per_axis(value: Any, ndim: int, argument: str) -> tuple[int, ...]:
    name = f"fractional_max_pool{ndim}d"
    values = int_tuple(value, ndim, name, argument)
    if values is None:
        raise RuntimeError(f"{name}: {argument} must be an int or {ndim} ints, got {value}")
    return values


def _starts(samples: Tensor, size: int, kernel: int, out: int) -> Tensor:
    """The first places of the windows of an axis: (n, c) samples give (n, c, out)."""
    last = samples.new_full((*samples.shape, min(out, 1)), size - kernel, dtype=int64)
    if out < 2:
        return last
    step = (size - kernel) / (out - 1)
    u = samples.unsqueeze(-1)
    steps = arange(out - 1, dtype=samples.dtype, device=samples.device)
    places = ((steps + u) * step).long() - (u * step).long()
    return cat([places, last], -1)


def _pooled(
    name: str, ndim: int, input: Tensor, kernel_size: Any, output_size: Any, samples: Tensor
) -> tuple[Tensor, Tensor]:
    """Maxima and their places in the flat spatial axes."""
    kernel = _per_axis(kernel_size, ndim, "kernel_size")
    out = _per_axis(output_size, ndim, "output_size")
    if input.ndim not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"{name}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got: {list(input.shape)}"
        )
    batched = input.ndim == ndim + 2
    x = stepwise(input) if batched else stepwise(input).unsqueeze(0)
    n, c, *sizes = x.shape
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
            f"got{list(x.shape)}"
        )
    for name_of, size, k, o in zip(_AXES[-ndim:], sizes, kernel, out):
        if o + k - 1 > size - (ndim == 3):  # as in PyTorch
            raise RuntimeError(
                f"{name}(): pool {name_of} {k} too large relative to input {name_of} {size}"
            )
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < n or samples.shape[1] < c:
        raise RuntimeError(
            f"Expect _random_samples of at least ({n}, {c}, {ndim}); got {list(samples.shape)}."
        )
    if samples.shape[2] != ndim:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {ndim}; got {samples.shape[2]}."
        )
    index: Any = 0
    # In planes the first sample is the width's, in volumes the time's.
    order = reversed(range(ndim)) if ndim == 2 else range(ndim)
    for axis, sample in enumerate(order):
        start = _starts(samples[:n, :c, sample].detach(), sizes[axis], kernel[axis], out[axis])
        places = start.unsqueeze(-1) + arange(kernel[axis], device=x.device)
        shape = [n, c, *[1] * (2 * ndim)]
        shape[2 + axis], shape[2 + ndim + axis] = out[axis], kernel[axis]
        index = index * sizes[axis] + places.reshape(shape)
    window = math.prod(kernel)
    index = index.reshape(n, c, *out, window)
    flat = index.reshape(n, c, math.prod(out) * window)
    looked = x.reshape(n, c, math.prod(sizes)).gather(2, flat).reshape(index.shape)
    if 0 in out:
        values, where = looked.sum(-1), index.sum(-1)
    else:
        values, best = looked.max(-1)
        where = index.gather(-1, best.unsqueeze(-1)).squeeze(-1)
    return (values, where) if batched else (values.squeeze(0), where.squeeze(0))


def _functions(ndim: int) -> None:
    name = f"fractional_max_pool{ndim}d"

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if ndim == 3 and isinstance(output_ratio, float):
                output_ratio = (output_ratio,) * ndim
            if len(output_ratio) > ndim:
                raise ValueError(
                    f"{name} requires output_ratio to either be a single Int or tuple of Ints."
                )
            sizes = input.shape[-ndim:]
            output_size = [int(size * ratio) for size, ratio in zip(sizes, output_ratio)]
        if _random_samples is None:
            channels = 1 if input.dim() == ndim + 1 else input.size(0)
            shape = (channels, input.size(-ndim - 1), ndim)
            if input.dtype.kind != "f":
                raise NotImplementedError(
                    f"{name} is not implemented for '{input.dtype.short_name}'"
                )
            _random_samples = empty(shape, dtype=input.dtype, device=input.device).uniform_()
        return _pooled(name, ndim, input, kernel_size, output_size, _random_samples)

    def values(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        result = with_indices(
            input, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )
        return result if return_indices else result[0]

    what = "(n, c, h, w)" if ndim == 2 else "(n, c, t, h, w)"
    values.__name__ = values.__qualname__ = name
    values.__doc__ = f"""The largest elements of {what} in windows at random places.

    The result has `output_size`, or the input's size times `output_ratio`; one of them is needed,
    else ValueError. With `return_indices` the places of the maxima in the flat axes follow.
    `_random_samples` (n, c, {ndim}) are drawn from [0, 1) unless given.
    """
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"`{name}`, always with the places of the maxima."
    with_indices = checked(autocasts(name)(with_indices))
    public("functional")(values)
    export(with_indices, "functional", name=f"{name}_with_indices")


_functions(2)
_functions(3)
