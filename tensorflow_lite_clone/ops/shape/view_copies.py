"""Rarer relatives of the views: copies of what they show, the reverse of expand, memory itself."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.attributes import detach
from tensorflow_lite_clone.autograd.inplace import ViewScatter
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import contiguous_strides, normalize_dim, reduced_axes
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.core.strides import contiguous_format, sizes_of
from tensorflow_lite_clone.ops.decorators.out import delivered
from tensorflow_lite_clone.ops.pointwise.complex_numbers import view_as_complex, view_as_real
from tensorflow_lite_clone.ops.reduce._arguments import expect_tensor
from tensorflow_lite_clone.ops.shape import rearrange, slices, views
from tensorflow_lite_clone.ops.shape.slices import AsStrided
from tensorflow_lite_clone.tensor import Tensor


def _copying(function: Any, name: str, places: tuple[str, ...]) -> None:
    def copied(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if args:
            expect_tensor(name, args[0])
        try:
            result = function(*args, **kwargs)
        except NotStrided as reason:
            return reason.answer(name, *args, **kwargs)
        if isinstance(result, tuple):
            result = tuple([part.clone(memory_format=contiguous_format) for part in result])
        else:
            result = result.clone(memory_format=contiguous_format)
        if out is None:
            return result
        written = delivered(name, result, out)
        return written if isinstance(written, Tensor) else None  # as PyTorch

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = f"A copy of what `{function.__name__.strip('_')}` shows."
    export(checked(copied), *places, name=name)


def _alias(input: Tensor) -> Tensor:
    return views.view(input, input.shape)


@checked
def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    axis = normalize_dim(dim, input.ndim)
    return input[(*[slice(None)] * axis, slice(start, end, step))]


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    if dim >= max(input.ndim, 1):
        raise RuntimeError(f"narrow_copy(): expected dim < {input.ndim}, but got {dim}")
    return slices.narrow(input, dim, start, length)


@checked
def _split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    return slices.split(input, split_size, dim)


for _function, _name in {
    _alias: "alias_copy",
    detach: "detach_copy",
    _slice: "slice_copy",
    _split: "split_copy",
    view_as_real: "view_as_real_copy",
    view_as_complex: "view_as_complex_copy",
    views.view: "view_copy",
    views.permute: "permute_copy",
    views.transpose: "transpose_copy",
    views.t: "t_copy",
    views.squeeze: "squeeze_copy",
    views.unsqueeze: "unsqueeze_copy",
    views.expand: "expand_copy",
    slices.select: "select_copy",
    slices.diagonal: "diagonal_copy",
    slices.as_strided: "as_strided_copy",
    slices.unfold: "unfold_copy",
    slices.unbind: "unbind_copy",
    slices.split_with_sizes: "split_with_sizes_copy",
}.items():
    _copying(_function, _name, ("torch",))
for _function, _name in {
    _narrow: "narrow_copy",
    slices.split: "unsafe_split",
    slices.split_with_sizes: "unsafe_split_with_sizes",
    slices.chunk: "unsafe_chunk",
}.items():
    _copying(_function, _name, ("torch", "method"))


@public("torch", "method")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` where ``as_strided`` of the contiguous copy looks."""
    shape = input._storage.physical.shape
    sizes, strides = sizes_of((size,)), sizes_of((stride,), "stride")
    slices.as_strided(input, sizes, strides, storage_offset)  # raises for what does not fit
    if src._storage.physical.shape != sizes:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(sizes)}"
        )
    dense = contiguous_strides(shape)
    parameters = {
        "shape": sizes,
        "strides": strides,
        "offset": storage_offset or 0,
        "source": (shape, dense),
    }
    return apply(ViewScatter, input, src, chain=((AsStrided, parameters, None),), strides=dense)


@public("torch", "method")
def slice_inverse(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Of a tensor that is a slice, a view of its memory with `src`'s shape and strides.

    Raises RuntimeError when the memory is too small.
    """
    return slices.as_strided(input, tuple(src.shape), src.stride(), 0)


@public("method")
def sum_to_size(self: Tensor, *args: Any, **size: Any) -> Tensor:
    """The sum over those dimensions along which a tensor of shape `size` would be expanded."""
    sizes, shape = sizes_of(args, "size", size), self._storage.physical.shape
    offset = len(shape) - len(sizes)
    if offset < 0 or any([n != m and n != 1 for n, m in zip(sizes, shape[offset:])]):
        raise RuntimeError(f"size {{{list(sizes)}}} is not expandable to size {{{list(shape)}}}.")
    axes = reduced_axes(shape, sizes)
    if not sizes:
        return self.sum()
    return views.view(self.sum(axes, True), sizes) if axes else self


@public("torch")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, a tensor per dimension, of places in a flat tensor of `shape`."""
    if indices.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    indices = indices.to(int64)
    sizes = sizes_of((shape,), "shape")
    steps = contiguous_strides(sizes)
    return tuple(
        [indices.div(step, rounding_mode="floor") % size for step, size in zip(steps, sizes)]
    )


@public("method")
def __reversed__(self: Tensor) -> Tensor:
    """The first dimension in reversed order."""
    return rearrange.flip(self, 0) if self._storage.physical.ndim else self


@public("method")
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest in memory."""
    strides = self.stride()
    return tuple(sorted(range(len(strides)), key=lambda dim: (-strides[dim], dim)))


@public("method")
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same memory in the same way."""
    have, other = self._storage, tensor._storage
    return (
        (have.root or have) is (other.root or other)
        and have.array.shape == other.array.shape
        and self.stride() == tensor.stride()
        and self.storage_offset() == tensor.storage_offset()
    )
