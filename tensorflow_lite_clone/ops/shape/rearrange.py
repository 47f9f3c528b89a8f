"""Elements moved or repeated: flip, roll, repeat, triangles, diagonals, padding."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.autograd.inplace import apply_inplace
from tensorflow_lite_clone.core.device import Layout
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import expect_storage, normalize_dim, normalize_dims
from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.core.strides import sizes_of
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import image
from tensorflow_lite_clone.ops._samples import per_sample
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.index._indexing import Flip
from tensorflow_lite_clone.ops.index.gather import index_select
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.shape._views import Embed, number_of
from tensorflow_lite_clone.ops.shape.slices import Diagonal, diagonal
from tensorflow_lite_clone.ops.shape.views import reshape, transpose
from tensorflow_lite_clone.tensor import Tensor


class Repeat(Op):
    """Copies side by side, `repeats` along each dimension of `shape`."""

    def forward(F, x, *, repeats, shape):
        return F.tile(x, repeats)

    def backward_x(F, g, *, repeats, shape):
        shape = (1,) * (len(repeats) - len(shape)) + shape
        pairs = [length for pair in zip(repeats, shape) for length in pair]
        return F.sum(F.reshape(g, tuple(pairs)), axis=tuple(range(0, len(pairs), 2)))


class RepeatInterleave(Op):
    """Every element along an axis repeated; `shape` is that of x."""

    def forward(F, x, *, repeats, axis, shape):
        return F.repeat(x, repeats, axis=axis)

    def backward_x(F, g, *, repeats, axis, shape):
        expanded = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
        return F.sum(F.reshape(g, expanded), axis=axis + 1)


class Roll(Op):
    """Elements shifted cyclically, along the flattened array if `axis` is None."""

    layout = image

    def forward(F, x, *, shift, axis):
        return F.roll(x, shift, axis=axis)

    def backward_x(F, g, *, shift, axis):
        back = -shift if isinstance(shift, int) else tuple([-step for step in shift])
        return F.roll(g, back, axis=axis)


class Tril(Op):
    """The lower triangle, up to diagonal number k."""

    primitive = "tril"

    def forward(F, x, *, k):
        return F.tril(x, k=k)

    def backward_x(F, g, *, k):
        return F.tril(g, k=k)


class Triu(Op):
    """The upper triangle, from diagonal number k on."""

    primitive = "triu"

    def forward(F, x, *, k):
        return F.triu(x, k=k)

    def backward_x(F, g, *, k):
        return F.triu(g, k=k)


class ConstantPad(Op):
    """`value` around an array: `pads` has (before, after) per dimension; negative ones cut."""

    layout_agnostic = True
    layout = image
    label = "ConstantPadNd"

    def forward(F, x, *, pads, value):
        shape = tuple([low + n + high for n, (low, high) in zip(x.shape, pads)])
        out = F.full(shape, value, dtype=x.dtype)
        inner = tuple([slice(max(low, 0), n - max(high, 0)) for n, (low, high) in zip(shape, pads)])
        kept = tuple(
            [slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape, pads)]
        )
        if pads:
            F.backend.write(out[inner], x[kept])
        else:
            F.backend.write(out, x)
        return out

    def backward_x(F, g, *, pads, value):
        return F.constant_pad(g, pads=tuple([(-low, -high) for low, high in pads]), value=0)


def _repeated(x: Tensor, repeats: tuple) -> Tensor:
    array = x._storage.physical
    shape = array.shape
    leading = (1,) * (len(repeats) - len(shape))
    sizes = [count * n for count, n in zip(repeats, leading + shape, strict=True)]
    if min(sizes, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    expect_storage(sizes, array.dtype.itemsize)
    repeats = tuple([max(count, 0) for count in repeats])  # a negative one of a size of 0
    return apply(Repeat, x, repeats=repeats, shape=shape)


@public("method")
def repeat(self: Tensor, *args: Any, **repeats: Any) -> Tensor:
    """Copies side by side, as many along each dimension as `repeats` says; new ones lead."""
    counts = sizes_of(args, "repeats", repeats)
    if len(counts) < self._storage.physical.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    return _repeated(self, counts)


@public("torch", "method")
def tile(input: Tensor, *args: Any, **dims: Any) -> Tensor:
    """Copies side by side; `dims` with fewer entries than dimensions means the last ones."""
    counts = sizes_of(args, "dims", dims)
    missing = input._storage.physical.ndim - len(counts)
    return _repeated(input, (1,) * missing + counts)


@public("torch", "method")
@per_sample("repeats")
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Every element along `dim` (by default of the flattened tensor) repeated.

    `repeats` is a number, or one per element. Alone, a tensor of repeats gives the index of each.
    """
    if repeats is None:
        backend = input._storage.backend
        count = input._storage.physical.size
        places = wrap(backend.F.arange(count, dtype=backend.native[int64]), backend)
        return repeat_interleave(places, input, output_size=output_size)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    shape = input._storage.physical.shape
    axis = normalize_dim(dim, len(shape))
    if isinstance(repeats, (list, tuple)):
        backend = input._storage.backend
        repeats = wrap(backend.asarray(list(repeats), int64), backend)
    if not isinstance(repeats, Tensor):
        count = whole_number("repeats", repeats)
        if count < 0:
            raise RuntimeError("Repeats must be non-negative")
        if not shape:
            return repeat_interleave(reshape(input, (1,)), count, 0, output_size=output_size)
        _expect_output_size(output_size, count * shape[axis])
        return apply(RepeatInterleave, input, repeats=count, axis=axis, shape=shape)
    size = shape[axis] if shape else 1
    F, counts = input._storage.backend.F, repeats._storage.array
    if repeats.dtype.kind not in "iu":
        raise RuntimeError(f"repeats has to be Long or Int tensor, but got {repeats.dtype}")
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.ndim and counts.shape[0] == 1:
        counts = F.reshape(counts, ())
    if counts.ndim and counts.shape[0] != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.shape[0]} and input.size({axis}) = {size}"
        )
    if not input._storage.backend.has_values:
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        places = F.zeros((output_size,), dtype=int64)
    else:
        if counts.size and number_of(F.any(F.less(counts, 0)), input._storage.backend):
            raise RuntimeError("repeats can not be negative")
        places = F.repeat(F.arange(size), counts, axis=0)
    _expect_output_size(output_size, places.shape[0])
    return index_select(input, axis, wrap(places, input._storage.backend))


def _expect_output_size(given: int | None, size: int) -> None:
    if given is not None and given != size:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {size} but got {given}"
        )


@public("torch", "method")
def flip(input: Tensor, *args: Any, **dims: Any) -> Tensor:
    """A copy with the elements in reversed order along `dims`."""
    ndim = input._storage.physical.ndim
    axes = normalize_dims(sizes_of(args, "dims", dims), ndim)
    return apply(Flip, input, axis=axes if ndim else ())


@public("torch", "method")
def fliplr(input: Tensor) -> Tensor:
    """A copy with the second dimension reversed."""
    if input._storage.physical.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public("torch", "method")
def flipud(input: Tensor) -> Tensor:
    """A copy with the first dimension reversed."""
    if input._storage.physical.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public("torch", "method")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """A copy with the elements shifted cyclically, along the flattened tensor without `dims`."""
    steps = sizes_of((shifts,), "shifts")
    if not steps:
        raise RuntimeError("`shifts` required")
    axes = () if dims is None else sizes_of((dims,), "dims")
    ndim = input._storage.physical.ndim
    if not axes and len(steps) == 1:
        return apply(Roll, input, shift=steps[0], axis=None)
    if len(steps) != len(axes):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}"
        )
    if not ndim:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    places = tuple([normalize_dim(axis, ndim) for axis in axes])
    return apply(Roll, input, shift=steps, axis=places)


@public("torch", "method")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Planes `dims` turned by `k` quarters, from the first of `dims` towards the second."""
    ndim = input._storage.physical.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = (normalize_dim(dim, ndim) for dim in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    turns = k % 4
    if turns == 1:
        return transpose(flip(input, second), first, second)
    if turns == 2:
        return flip(input, first, second)
    if turns == 3:
        return transpose(flip(input, first), first, second)
    return input.clone()


def _triangle(name: str, op: type[Op]) -> tuple:
    document = f"The {'lower' if op is Tril else 'upper'} triangle of matrices, zeros elsewhere."

    def check(input: Tensor) -> None:
        if input._storage.physical.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")

    def function(input: Tensor, diagonal: int = 0) -> Tensor:
        check(input)
        return apply(op, input, k=diagonal)

    def function_(self: Tensor, diagonal: int = 0) -> Tensor:
        check(self)
        return apply_inplace(op, self, k=diagonal)

    function.__name__ = function.__qualname__ = name
    function_.__name__ = function_.__qualname__ = f"{name}_"
    function.__doc__, function_.__doc__ = document, f"In-place form of `{name}`."
    public("method")(function_)
    return public("torch", "method")(with_out(function)), function_


tril, tril_ = _triangle("tril", Tril)
triu, triu_ = _triangle("triu", Triu)


@public("torch", "method")
@with_out
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or a copy of a matrix's diagonal."""
    ndim = input._storage.physical.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim == 2:
        return _diagonal(input, diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")


_diagonal = diagonal  # the name of an argument above and below


@public("torch", "method")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in planes (dim1, dim2) with the rows of `input` on their diagonals."""
    shape = input._storage.physical.shape
    ndim = len(shape) + 1
    first, second = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = (shape[-1] if shape else 1) + abs(offset)
    rest = list(shape[:-1])
    for dim in sorted((first, second)):
        rest.insert(dim, size)
    dims = tuple(rest)
    parameters = {"offset": offset, "dim1": first, "dim2": second, "shape": dims}
    return apply(Embed, input, view=Diagonal, parameters=parameters, shape=dims)


@public("torch", "method")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of `input` on a diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


@public("torch", "method")
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    ndim = input._storage.physical.ndim
    if ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {ndim}")
    if input.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return diagonal(input).sum()


def _triangle_indices(
    name: str, row: int, col: int, offset: int, dtype: DType | None, device: Any
) -> Tensor:
    for word, length in (("row", row), ("col", col)):
        if length < 0:
            raise RuntimeError(f"{word} must be non-negative, got {length}")
    kind = int64 if dtype is None else as_dtype(dtype)
    if kind.kind not in "iu":
        refuse(f"{name}_indices", kind)
    expect_storage((row, col), 1)  # of the places that are looked at
    backend = backends.load(device)
    F = (backend if backend.has_values else backends.load("cpu")).F
    columns, rows = F.arange(col), F.add(F.reshape(F.arange(row), (row, 1)), offset)
    inside = (F.less_equal if name == "tril" else F.greater_equal)(columns, rows)
    places = F.astype(F.stack(F.nonzero(inside), axis=0), kind)
    return wrap(places if backend.has_values else backend.from_host(places), backend)


@public("torch")
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None,
    layout: Layout | None = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Row and column numbers of a lower triangle, in two rows."""
    return _triangle_indices("tril", row, col, offset, dtype, device)


@public("torch")
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None,
    layout: Layout | None = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Row and column numbers of an upper triangle, in two rows."""
    return _triangle_indices("triu", row, col, offset, dtype, device)
