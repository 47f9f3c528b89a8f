"""Makes einops work on this package's tensors: import this module once, before calling einops.

    import einops
    import tensorflow_lite_clone.utils.einops

Without it, `einops.array_api` serves them.
"""

from __future__ import annotations

from typing import Any

from einops._backends import AbstractBackend

from tensorflow_lite_clone.ops.create.constructors import from_numpy
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.linalg.einsum import einsum
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor


class Backend(AbstractBackend):
    """What einops asks of a framework; it finds the class by itself."""

    framework_name = "tensorflow_lite_clone"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Any:
        return from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Any:
        return arange(start, stop)

    def reduce(self, x: Any, operation: str, reduced_axes: Any) -> Any:
        if operation in ("min", "max"):
            return getattr(x, f"a{operation}")(dim=tuple(reduced_axes))
        if operation in ("any", "all", "prod"):
            for axis in sorted(reduced_axes, reverse=True):
                x = getattr(x, operation)(dim=axis)
            return x
        return getattr(x, operation)(dim=tuple(reduced_axes))

    def transpose(self, x: Any, axes: Any) -> Any:
        return x.permute(axes)

    def stack_on_zeroth_dimension(self, tensors: list) -> Any:
        return stack(tensors)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        sizes = [-1] * n_axes
        for place, length in pos2len.items():
            x = x.unsqueeze(place)
            sizes[place] = length
        return x.expand(sizes)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return x.unsqueeze(new_position)

    def tile(self, x: Any, repeats: Any) -> Any:
        return x.repeat(repeats)

    def concat(self, tensors: Any, axis: int) -> Any:
        return cat(tensors, dim=axis)

    def is_float_type(self, x: Any) -> bool:
        return x.dtype.is_floating_point

    def einsum(self, pattern: str, *x: Any) -> Any:
        return einsum(pattern, *x)
