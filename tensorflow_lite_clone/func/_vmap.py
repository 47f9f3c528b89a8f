"""vmap: a function of one sample as a function of many, as ``torch.func.vmap``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.func.batching.crossing import (
    Level,
    differs_at,
    enter,
    leave,
    levels_of,
)
from tensorflow_lite_clone.func.batching.random import randomness as randomness_of
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.slices import split
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import (
    TreeSpec,
    broadcast_to_and_flatten,
    tree_flatten,
)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its inputs, all samples at once.

    `in_dims` says which dimension of each input is mapped over: an int for all, or a tuple (in
    it, trees as the inputs) of ints and None for inputs that all samples share; inputs by keyword
    are shared as well. `out_dims` says where the samples are in the outputs. `randomness`
    says what random functions do: "error" (RuntimeError), "different" for every sample, or the
    "same" for all. With `chunk_size` so many samples are computed at a time.
    Raises ValueError for dimensions that do not fit, RuntimeError for a `randomness` that is
    none, and where `func` reads values or makes results whose shape depends on values.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _inputs(func, in_dims, args)
        if chunk_size is not None and chunk_size < size:
            return _in_chunks(
                func, size, dims, leaves, spec, out_dims, randomness, chunk_size, kwargs
            )
        return _mapped(func, size, dims, leaves, spec, out_dims, randomness, kwargs)

    return wrapped


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _inputs(func: Any, in_dims: Any, args: tuple) -> tuple[int, list, list, TreeSpec]:
    """The number of samples, and per leaf of the inputs its dimension and value."""
    what = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{what}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{what}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for number, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{what}: Got in_dim={dim} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{what}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{what}: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {leaf.ndim} so expected in_dim to satisfy -{leaf.ndim} <= in_dim "
                f"< {leaf.ndim}."
            )
        dims[number] = dim % leaf.ndim
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, spec


def _outputs(
    func: Any, size: int, dims: list, leaves: list, spec: TreeSpec, randomness: str, kwargs: dict
) -> tuple[Level, Any]:
    """The level, and what `func` returns at it."""
    level = Level(size)
    mode.mappings.append(level)
    mode.transforms.append(level)
    randomness_of[level.number] = randomness
    try:
        args = spec.unflatten(
            [x if d is None else enter(x, d, level) for x, d in zip(leaves, dims, strict=True)]
        )
        return level, func(*args, **kwargs)
    finally:
        mode.mappings.pop()
        mode.transforms.pop()
        del randomness_of[level.number]


def _mapped(
    func: Any,
    size: int,
    dims: list,
    leaves: list,
    spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    kwargs: dict,
) -> Any:
    level, output = _outputs(func, size, dims, leaves, spec, randomness, kwargs)
    ys, places, out_spec = _out_dims(func, output, out_dims)
    result = []
    for y, place in zip(ys, places, strict=True):
        if place is None:
            if isinstance(y, Tensor) and differs_at(y, level):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor "
                    "when out_dim is None"
                )
            inside = isinstance(y, Tensor) and level.number in levels_of(y._storage.backend)
            result.append(leave(y, 0, level)[0] if inside else y)
            continue
        if not isinstance(y, Tensor):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
                f"{type(y)}. Did you mean to set out_dims= to None for output?"
            )
        ndim = y.ndim + 1
        if not -ndim <= place < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}], but "
                f"got {place})"
            )
        result.append(leave(y, place % ndim, level))
    return out_spec.unflatten(result)


def _out_dims(func: Any, output: Any, out_dims: Any) -> tuple[list, list, TreeSpec]:
    """The leaves of an output and where the samples go in them."""
    ys, out_spec = tree_flatten(output)
    what = f"vmap({_name(func)}, ..., out_dims={out_dims})"
    wrong = [d for d in tree_flatten(out_dims)[0] if d is not None and not isinstance(d, int)]
    if wrong:
        raise ValueError(
            f"{what}: `out_dims` must be an int, None or a python collection of ints representing "
            "where in the outputs the vmapped dimension should appear."
        )
    places = broadcast_to_and_flatten(out_dims, out_spec)
    if places is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and len(ys) == 1:
        places = list(out_dims) if out_spec.is_leaf() else None
    if places is None:
        raise ValueError(
            f"{what}(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure "
            f"{out_spec}."
        )
    return ys, places, out_spec


def _in_chunks(
    func: Any,
    size: int,
    dims: list,
    leaves: list,
    spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    chunk_size: int,
    kwargs: dict,
) -> Any:
    """`_mapped` for so many samples at a time, joined."""
    chunks = [
        None if dim is None else split(leaf, chunk_size, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    columns: list[list] = []
    out_spec: Any = None
    for number, start in enumerate(range(0, size, chunk_size)):
        part = [
            leaf if chunk is None else chunk[number]
            for leaf, chunk in zip(leaves, chunks, strict=True)
        ]
        count = min(chunk_size, size - start)
        output = _mapped(func, count, dims, part, spec, out_dims, randomness, kwargs)
        ys, out_spec = tree_flatten(output)
        columns.append(ys)
    places = broadcast_to_and_flatten(out_dims, out_spec)
    assert places is not None
    joined = [
        column[0] if place is None else cat(column, place)
        for column, place in zip(zip(*columns, strict=True), places, strict=True)
    ]
    return out_spec.unflatten(joined)
