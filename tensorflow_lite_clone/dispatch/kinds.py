"""Kinds of primitives: what those of a kind have in common, so that it is said once for all.

A kind knows the shapes of results (`shapes`: a function of the primitive's arguments; a tuple of
ints for one result, a list of them for several, None for a primitive that gives no array) and what
a call costs (`flops`, a formula of `dispatch.costs`). Arrays among the arguments are only asked for
``shape`` and ``ndim``, by costs for ``dtype`` too. Batching rules are entered for kinds as well
(`func.batching`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tensorflow_lite_clone.core.shape import Shape, broadcast_shapes, infer_size
from tensorflow_lite_clone.dispatch import costs

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array

Shapes = Shape | list[Shape] | None


class DataDependentShape(NotImplementedError):
    """The shape of a result depends on values, and there are none to look at."""


class Kind(NamedTuple):
    """What primitives of one kind have in common."""

    name: str
    shapes: Callable[..., Shapes]
    flops: costs.Formula

    def __repr__(self) -> str:
        return f"<kind {self.name}>"


# -- shapes ---------------------------------------------------------------------------------------


def _positions(axis: Any, ndim: int) -> tuple[int, ...]:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple([a % ndim if ndim else 0 for a in axes])


def _replaced(shape: Sequence[int], axis: int, length: int) -> Shape:
    axis = axis % len(shape)
    return (*shape[:axis], length, *shape[axis + 1 :])


def broadcast(*values: Any, **parameters: Any) -> Shape:
    """The shape to which all arrays broadcast; what is no array has none."""
    return broadcast_shapes(*[v.shape for v in values if hasattr(v, "ndim")])


def reduced(
    x: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, **more: Any
) -> Shape:
    """Without the axes that are reduced, all by default; with `keepdims` they have length one."""
    axes = range(x.ndim) if axis is None else _positions(axis, x.ndim)
    if keepdims:
        return tuple([1 if a in axes else n for a, n in enumerate(x.shape)])
    return tuple([n for a, n in enumerate(x.shape) if a not in axes])


def same(x: Array, *args: Any, **parameters: Any) -> Shape:
    """As the first operand."""
    return tuple(x.shape)


def accumulated(
    x: Array, *, axis: int | None = None, include_initial: bool = False, **more: Any
) -> Shape:
    """As the operand, one longer along the axis with an initial value."""
    if not include_initial:
        return tuple(x.shape)
    axis = -1 if axis is None else axis
    return _replaced(x.shape, axis, x.shape[axis] + 1)


def kth(x: Array, k: int, *, axis: int) -> Shape:
    return _replaced(x.shape, axis, 1) if x.ndim else ()


def largest(x: Array, k: int, *, axis: int, largest: bool) -> Shapes:
    shape = _replaced(x.shape, axis, k) if x.ndim else ()
    return [shape, shape]


def matrix_product(x: Array, y: Array) -> Shape:
    """Of matrices, whose leading axes broadcast; vectors are rows and columns."""
    if not x.ndim or not y.ndim:
        raise ValueError("matmul: an operand has no dimensions")
    rows = (*x.shape[-2:-1],)
    columns = (*y.shape[-1:],) if y.ndim > 1 else ()
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else -1]:
        raise ValueError(f"matmul: {tuple(x.shape)} and {tuple(y.shape)} do not fit")
    return (*broadcast_shapes(x.shape[:-2], y.shape[:-2]), *rows, *columns)


def vector_product(x: Array, y: Array, /, *, axis: int = -1) -> Shape:
    shape = broadcast_shapes(x.shape, y.shape)
    axis = axis % len(shape)
    return (*shape[:axis], *shape[axis + 1 :])


def contracted(x: Array, y: Array, /, *, axes: Any = 2) -> Shape:
    if isinstance(axes, int):
        axes = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    gone, other = _positions(axes[0], x.ndim), _positions(axes[1], y.ndim)
    kept = [n for a, n in enumerate(x.shape) if a not in gone]
    return (*kept, *[n for a, n in enumerate(y.shape) if a not in other])


def solved(a: Array, b: Array, **parameters: Any) -> Shape:
    """Columns of `b`, behind the leading axes of both."""
    return (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])


def gathered(x: Array, indices: Array, /, *, axis: int = -1) -> Shape:
    """As the indices, which broadcast along the other axes."""
    axis = axis % x.ndim
    plain = broadcast_shapes(_replaced(x.shape, axis, 1), _replaced(indices.shape, axis, 1))
    return _replaced(plain, axis, indices.shape[axis])


def scattered(values: Array, index: Any, *, axis: int, size: int) -> Shape:
    return _replaced(values.shape, axis, size)


def taken(x: Array, indices: Array, /, *, axis: int | None = None) -> Shape:
    axis = 0 if axis is None else axis % x.ndim
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def searched(x1: Array, x2: Array, /, *, side: str = "left", sorter: Any = None) -> Shape:
    return tuple(x2.shape)


def unknown(*args: Any, **parameters: Any) -> NoReturn:
    """As many elements as values make it."""
    raise DataDependentShape("the shape of the result depends on values")


def nothing(*args: Any, **parameters: Any) -> None:
    """No array: a write, a check, or facts of dtypes."""


def _is_array(entry: Any) -> bool:
    return hasattr(entry, "dtype") and hasattr(entry, "ndim")


def check_bounds(shape: Shape, items: Sequence[Any]) -> None:
    """Raise IndexError for too many indices, and for integers that are out of bounds."""
    used = sum([item is not None and item is not Ellipsis for item in items])
    if used > len(shape):
        raise IndexError(f"too many indices for an array of {len(shape)} dimensions: {used}")
    dim = 0
    for item in items:
        if isinstance(item, int) and not -shape[dim] <= item < shape[dim]:
            raise IndexError(f"index {item} is out of bounds for axis {dim} of size {shape[dim]}")
        dim += len(shape) - used if item is Ellipsis else item is not None


def indexed(x: Array, index: Any) -> Shape:
    """NumPy's rules of combined basic and advanced indexing."""
    items = list(index) if isinstance(index, tuple) else [index]
    if any([_is_array(item) and item.dtype.kind == "b" for item in items]):
        unknown()
    check_bounds(tuple(x.shape), items)
    used = sum([item is not None and item is not Ellipsis for item in items])
    if Ellipsis not in [item for item in items if not _is_array(item)]:
        items.append(Ellipsis)
    place = [number for number, item in enumerate(items) if item is Ellipsis][0]
    items[place : place + 1] = [slice(None)] * (x.ndim - used)
    common: list = []  # shapes of the index arrays, which are broadcast
    found: list[int] = []
    start = None  # of the index arrays' common axes among the others
    apart, before, dim = False, False, 0
    has_arrays = any([_is_array(item) for item in items])
    for item in items:
        if item is None:
            found.append(1)
            before = False
            continue
        if isinstance(item, slice):
            found.append(len(range(*item.indices(x.shape[dim]))))
            before = False
        elif has_arrays:
            common.append(item.shape if _is_array(item) else ())
            if start is None:
                start = len(found)
            elif not before:
                apart = True
            before = True
        dim += 1
    if start is None:
        return tuple(found)
    start = 0 if apart else start
    return (*found[:start], *broadcast_shapes(*common), *found[start:])


# -- shapes of rearrangements ---------------------------------------------------------------------


def reshaped(x: Array, /, shape: Any, *, copy: bool | None = None) -> Shape:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return infer_size(sizes, prod(x.shape))


def permuted(x: Array, /, axes: Any) -> Shape:
    return tuple([x.shape[a] for a in axes])


def moved(x: Array, source: Any, destination: Any, /) -> Shape:
    sources, targets = _positions(source, x.ndim), _positions(destination, x.ndim)
    order = [a for a in range(x.ndim) if a not in sources]
    for target, own in sorted(zip(targets, sources)):
        order.insert(target, own)
    return permuted(x, order)


def transposed(x: Array, /) -> Shape:
    return (*x.shape[:-2], x.shape[-1], x.shape[-2])


def with_axis(x: Array, /, axis: int = 0) -> Shape:
    axis = axis % (x.ndim + 1)
    return (*x.shape[:axis], 1, *x.shape[axis:])


def given(x: Array, shape: Any, *args: Any, **parameters: Any) -> Shape:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def joined(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Shape:
    if axis is None:
        return (sum([prod(x.shape) for x in arrays]),)
    return _replaced(arrays[0].shape, axis, sum([x.shape[axis] for x in arrays]))


def stacked(arrays: Sequence[Array], /, *, axis: int = 0) -> Shape:
    shape = tuple(arrays[0].shape)
    axis = axis % (len(shape) + 1)
    return (*shape[:axis], len(arrays), *shape[axis:])


def unstacked(x: Array, /, *, axis: int = 0) -> Shapes:
    axis = axis % x.ndim
    return [(*x.shape[:axis], *x.shape[axis + 1 :])] * x.shape[axis]


def repeated(x: Array, repeats: Any, /, *, axis: int | None = None) -> Shape:
    if not isinstance(repeats, int):
        unknown()
    if axis is None:
        return (prod(x.shape) * repeats,)
    return _replaced(x.shape, axis, x.shape[axis] * repeats)


def tiled(x: Array, repetitions: Any, /) -> Shape:
    counts = tuple(repetitions)
    shape = (1,) * (len(counts) - x.ndim) + tuple(x.shape)
    counts = (1,) * (len(shape) - len(counts)) + counts
    return tuple([n * count for n, count in zip(shape, counts)])


def differences(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Shape:
    length = sum([part.shape[axis] for part in (prepend, x, append) if part is not None])
    return _replaced(x.shape, axis, max(length - n, 0))


def broadcast_all(*arrays: Array) -> Shapes:
    return [broadcast(*arrays)] * len(arrays)


def grid(*arrays: Array, indexing: str = "xy") -> Shapes:
    sizes = [prod(x.shape) for x in arrays]
    if indexing == "xy" and len(sizes) > 1:
        sizes[:2] = sizes[1], sizes[0]
    return [tuple(sizes)] * len(arrays)


# -- shapes of new arrays -------------------------------------------------------------------------


def allocated(shape: Any, *values: Any, **parameters: Any) -> Shape:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def counted(start: Any, stop: Any = None, step: Any = 1, **parameters: Any) -> Shape:
    low, high = (0, start) if stop is None else (start, stop)
    return (max(-int(-(high - low) // step), 0),)


def spaced(start: Any, stop: Any, /, num: int, **parameters: Any) -> Shape:
    return (num,)


def identity(n_rows: int, n_cols: int | None = None, /, **parameters: Any) -> Shape:
    return (n_rows, n_rows if n_cols is None else n_cols)


def of_data(data: Any, /, **parameters: Any) -> Shape:
    if isinstance(data, (list, tuple)):
        return (len(data), *(of_data(data[0]) if data else ()))
    return tuple(getattr(data, "shape", ()))


# -- shapes of Fourier transforms -----------------------------------------------------------------


def line(change: Callable[[int, bool], int]) -> Callable[..., Shape]:
    """Along one axis; `change` makes its length of `n`, or of the operand's where none is given."""

    def shapes(
        x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Shape:
        return _replaced(x.shape, axis, change(n or x.shape[axis], n is not None))

    return shapes


def lines(change: Callable[[int, bool], int]) -> Callable[..., Shape]:
    """Along several axes, of which the last changes as that of `line`."""

    def shapes(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Shape:
        if axes is None:
            axes = range(-(x.ndim if s is None else len(s)), 0)
        shape = tuple(x.shape)
        for number, axis in enumerate(axes):
            length = shape[axis] if s is None else s[number]
            last = number == len(axes) - 1
            shape = _replaced(shape, axis, change(length, s is not None) if last else length)
        return shape

    return shapes


# -- the kinds ------------------------------------------------------------------------------------

elementwise = Kind("elementwise", broadcast, costs.per_result())
reduction = Kind("reduction", reduced, costs.per_operand())
position_of_extreme = Kind("position of an extreme", reduced, costs.per_operand())
scan = Kind("scan", accumulated, costs.per_operand())
sorting = Kind("sorting", same, costs.free)
selection = Kind("selection", largest, costs.free)
gather = Kind("gather", gathered, costs.free)
scatter = Kind("scatter", nothing, costs.per_operand(position=2))
search = Kind("search", searched, costs.free)
product = Kind("matrix product", matrix_product, costs.product_flops)
contraction = Kind("contraction", contracted, costs.contraction_flops)
matrices = Kind("linear algebra of matrices", same, costs.free)
equations = Kind("linear equations", solved, costs.free)
transform = Kind("Fourier transform", same, costs.transform_flops(5, False))
transforms = Kind("Fourier transform along axes", same, costs.transform_flops(5, True))
view = Kind("view", same, costs.free)
rearrangement = Kind("rearrangement", same, costs.free)
indexing = Kind("indexing", indexed, costs.free)
creation = Kind("creation", of_data, costs.free)
allocation = Kind("allocation", allocated, costs.free)
allocation_like = Kind("allocation like an array", same, costs.free)
data_dependent = Kind("of data-dependent shape", unknown, costs.free)
query = Kind("query", nothing, costs.free)
