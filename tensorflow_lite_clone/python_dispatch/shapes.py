"""Forms of reductions, views and other functions of shapes; see `forms`."""

from __future__ import annotations

import sys
from typing import Any

from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.python_dispatch.calls import call, forms, operation, own
from tensorflow_lite_clone.python_dispatch.forms import as_shape, derived, form
from tensorflow_lite_clone.tensor import Tensor


@operation("slice.Tensor")
def _slice(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


@operation("_unsafe_view")
def _unsafe_view(x: Tensor, size: Any) -> Tensor:
    return x.reshape(tuple(size))


@operation("_to_copy")
def _to_copy(x: Tensor, *, dtype: Any = None, device: Any = None, **layout: Any) -> Tensor:
    return x.to(dtype=dtype or x.dtype, device=device or x.device, copy=True)


@operation("lift_fresh")
def _lift_fresh(x: Tensor) -> Tensor:
    return x


@operation("_local_scalar_dense")
def _local_scalar_dense(x: Tensor) -> Any:
    return x.item()


# -- reductions ------------------------------------------------------------------------------------


def _reduction(op: str, whole: str | None, by_dims: str, listed: bool = True) -> None:
    def reduced(x: Tensor, *, axis: Any, keepdims: bool, **others: Any) -> Tensor:
        axes = [axis] if isinstance(axis, int) else list(range(x.ndim) if axis is None else axis)
        if axis is None and not listed:
            return call(op, x, None, keepdims) if keepdims else call(op, x)
        if not axes and x.ndim:  # [] means all
            return own(TABLE[op], x, axis=axis, keepdims=keepdims, **others)
        kwargs = {"dtype": others["dtype"]} if others.get("dtype") is not None else {}
        if whole is not None and len(axes) == x.ndim and not keepdims:
            return call(whole, x, **kwargs)
        kept = (True,) if keepdims else ()
        return call(by_dims, x, axes if listed else axes[0], *kept, **kwargs)

    forms[op] = reduced


_reduction("sum", "sum", "sum.dim_IntList")
_reduction("mean", "mean", "mean.dim")
_reduction("amax", "max", "amax")
_reduction("amin", "min", "amin")
_reduction("any", "any", "any.dims")
_reduction("all", "all", "all.dims")
_reduction("max_with_indices", None, "max.dim", False)
_reduction("min_with_indices", None, "min.dim", False)
_reduction("argmax", None, "argmax", False)
_reduction("argmin", None, "argmin", False)
_reduction("prod", "prod", "prod.dim_int", False)
_reduction("logsumexp", None, "logsumexp")


@form("topk")
def _topk(x: Tensor, *, k: int, axis: int, largest: bool, **sizes: Any) -> Any:
    return call("topk", x, k, *([] if largest and axis == x.ndim - 1 else [axis, largest]))


@form("sort_with_indices")
def _sort(x: Tensor, *, axis: int, descending: bool, **sizes: Any) -> Any:
    return call("sort", x, *([axis, descending] if descending or axis != x.ndim - 1 else []))


def _moments(name: str) -> None:
    def moment(x: Tensor, *, axis: Any, keepdims: bool, correction: Any, shape: Any) -> Tensor:
        axes = () if len(axis) == x.ndim and not keepdims else (list(axis),)
        return call(f"{name}.correction", x, *axes, correction=correction, keepdim=keepdims)

    forms[name] = moment


_moments("var")
_moments("std")


# -- views and shapes ------------------------------------------------------------------------------


@form("squeeze")
def _squeeze(x: Tensor, *, axis: Any, shape: Any) -> Tensor:
    if len(axis) == 1:
        return call("squeeze.dim", x, axis[0])
    every = set(axis) == {dim for dim, size in enumerate(shape) if size == 1}
    return call("squeeze", x) if every else call("squeeze.dims", x, list(axis))


@form("index")
def _index(x: Tensor, index: Tensor, *, places: tuple, shape: Any) -> Tensor:
    indices: list[Any] = [None] * (max(places) + 1)
    for row, place in enumerate(places):
        indices[place] = derived(index.select, 0, row)
    return call("index.Tensor", x, indices)


@form("index_along")
def _index_along(x: Tensor, index: Tensor, *, axis: int, shape: Any) -> Tensor:
    return call("index.Tensor", x, [*[None] * axis, index])


@operation("index.Tensor")
def _index_tensor(x: Tensor, indices: Any) -> Tensor:
    return x[tuple([slice(None) if index is None else index for index in indices])]


@form("index_select")
def _index_select(x: Tensor, index: Tensor, *, axis: int, shape: Any) -> Tensor:
    if index.ndim == 1:
        return call("index_select", x, axis, index)
    return own(TABLE["index_select"], x, index, axis=axis, shape=shape)


@form("split")
def _split(x: Tensor, *, sizes: Any, axis: int) -> Any:
    size, args = sizes[0], (axis,) if axis else ()
    if set(sizes[:-1]) <= {size} and sizes[-1] <= size:
        return call("split.Tensor", x, size, *args)
    return call("split_with_sizes", x, list(sizes), *args)


@form("vector_norm")
def _vector_norm(x: Tensor, *, ord: Any, axis: Any, keepdims: bool, shape: Any) -> Tensor:
    if len(axis) == x.ndim and not keepdims:
        return call("linalg_vector_norm", x, *([] if ord == 2 else [ord]))
    return call("linalg_vector_norm", x, ord, list(axis), keepdims)


@operation("linalg_vector_norm")
def _linalg_vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return EXPORTS["linalg"]["vector_norm"](x, ord, dim, keepdim)


@form("transpose")
def _transpose(x: Tensor, *, axes: tuple) -> Tensor:
    if x.ndim <= 2 and axes != (0, 1):
        return call("t", x)
    first, second = [d for d, axis in enumerate(axes) if axis != d] or (0, 0)
    return call("transpose.int", x, first, second)


def _indexed(x: Tensor, *, index: Any, shape: Any) -> Tensor:
    """Basic indexing: a call for each item that is no full slice, as aten's."""
    items = index if isinstance(index, tuple) else (index,)
    used = len([item for item in items if item is not None and item is not Ellipsis])
    dim = 0
    for item in items:
        if item is Ellipsis:
            dim += len(shape) - used
        elif item is None:
            x = call("unsqueeze", x, dim)
            dim += 1
        elif isinstance(item, slice):
            if item != slice(None) and item.indices(x.shape[dim]) != (0, x.shape[dim], 1):
                stop = sys.maxsize if item.stop is None else item.stop
                step = () if item.step in (None, 1) else (item.step,)
                x = call("slice.Tensor", x, dim, item.start or 0, stop, *step)
            dim += 1
        else:
            x = call("select.int", x, dim, int(item))
    return x


for _name in ("select", "slice", "basic_index"):
    forms[_name] = _indexed


@operation("select_backward")
def _select_backward(g: Tensor, input_sizes: Any, dim: int, index: int) -> Tensor:
    x = g.new_zeros(input_sizes)
    x.select(dim, index).copy_(g)
    return x


@operation("slice_backward")
def _slice_backward(
    g: Tensor, input_sizes: Any, dim: int, start: int, end: int, step: int
) -> Tensor:
    x = g.new_zeros(input_sizes)
    _slice(x, dim, start, end, step).copy_(g)
    return x


@form("embed")
def _embed(g: Tensor, *, view: Any, parameters: dict, shape: Any) -> Tensor:
    """The gradient of a view: zeros, with g in the place of what was viewed."""
    index = parameters.get("index", ())
    index = index if isinstance(index, tuple) else (index,)
    *others, item = (index[:-1] if index[-1:] == (...,) else index) or (None,)
    dim = len(shape) - 1 if ... in others else len(others)
    if not all([other is ... or other == slice(None) for other in others]):
        return own(TABLE["embed"], g, view=view, parameters=parameters, shape=shape)
    if view is TABLE["select"]:
        return call("select_backward", g, list(shape), dim, item)
    if view is TABLE["slice"]:
        stop = sys.maxsize if item.stop is None else item.stop
        return call("slice_backward", g, list(shape), dim, item.start or 0, stop, item.step or 1)
    return own(TABLE["embed"], g, view=view, parameters=parameters, shape=shape)


forms.update(
    view=lambda x, *, shape, source: call("view", x, list(shape)),
    unsafe_view=lambda x, *, shape, source: as_shape(x, list(shape)),
    permute=lambda x, *, axes: call("permute", x, list(axes)),
    expand=lambda x, *, shape: call("expand", x, list(shape)),
    unsqueeze=lambda x, *, axis: call("unsqueeze", x, axis),
    unbind=lambda x, *, axis: call("unbind.int", x, *([axis] if axis else [])),
    cat=lambda *tensors, axis, sizes: call("cat", list(tensors), *([axis] if axis else [])),
    stack=lambda *tensors, axis: call("stack", list(tensors), *([axis] if axis else [])),
    flip=lambda x, *, axis: call("flip", x, [axis] if isinstance(axis, int) else list(axis)),
    repeat=lambda x, *, repeats, shape: call("repeat", x, list(repeats)),
    cast=lambda x, *, dtype: call("_to_copy", x, dtype=dtype),
    cast_to_integers=lambda x, *, dtype: call("_to_copy", x, dtype=dtype),
    restride=lambda x, *, strides: call("clone", x),
    pow_scalar=lambda x, *, exponent: call("pow.Tensor_Scalar", x, exponent),
    clamp=lambda x, **bounds: call("clamp", x, bounds["min"], bounds["max"]),
    tril=lambda x, *, k: call("tril", x, *([k] if k else [])),
    triu=lambda x, *, k: call("triu", x, *([k] if k else [])),
    cumsum=lambda x, *, axis: call("cumsum", x, axis),
    gather=lambda x, index, *, axis, **_: call("gather", x, axis, index),
    masked_fill=lambda x, mask, value: call("masked_fill.Tensor", x, mask, value),
    leaky_relu=lambda x, *, slope=0.01, **_: call("leaky_relu", x, slope),
)
