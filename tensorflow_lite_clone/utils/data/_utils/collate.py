"""Collation: from a list of samples to a batch of tensors."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.device import strided
from tensorflow_lite_clone.core.dtypes import float64
from tensorflow_lite_clone.ops.create.constructors import as_tensor, tensor
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor

# Kinds of NumPy dtypes that no tensor holds: bytes, str, object.
NOT_NUMERIC = "SUO"
#: PyTorch's name and form of the same, which other packages import.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def refuse(seen: Any) -> TypeError:
    """The error for what cannot become a tensor."""
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {seen}"
    )


def rebuild_mapping(like: Mapping, convert: Callable[[Any], Any]) -> Any:
    """A mapping of `like`'s type with the value `convert(key)` for every key.

    Types that cannot be copied, or made from a dict, become a plain dict.
    """
    values = {key: convert(key) for key in like}
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(values)  # type: ignore[call-arg]
        # A copy keeps what the type holds besides its items (a default factory, for example).
        result = copy.copy(like)
        result.update(values)
        return result
    except TypeError:
        return values


def rebuild_sequence(like: Sequence, values: list) -> Any:
    """A sequence of `like`'s type that holds `values`; tuples become lists, as in PyTorch."""
    if isinstance(like, tuple):
        return type(like)(*values) if hasattr(like, "_fields") else values
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(values)  # type: ignore[call-arg]
        result = copy.copy(like)
        for i, value in enumerate(values):
            result[i] = value
        return result
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Turns the NumPy arrays and scalars in nested mappings and sequences into tensors.

    Everything else is left as it is. It is the loader's `collate_fn` when it does not batch.
    """
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in NOT_NUMERIC else as_tensor(data)
    if isinstance(data, Mapping):
        return rebuild_mapping(data, lambda key: default_convert(data[key]))
    if isinstance(data, Sequence):
        return rebuild_sequence(data, [default_convert(item) for item in data])
    return data


Rule = Callable[..., Any]
Rules = dict[type | tuple[type, ...], Rule]


def collate(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Any:
    """`default_collate` with rules of the caller's own: {type or types: rule}.

    A rule is called as `rule(batch, collate_fn_map=collate_fn_map)`. The first sample's type
    chooses: an exact entry first, then the first entry it is an instance of, then mappings and
    sequences item by item. Raises TypeError when nothing fits.
    """
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        rule = collate_fn_map.get(kind)
        if rule is None:
            matching = (collate_fn_map[key] for key in collate_fn_map if isinstance(sample, key))
            rule = next(matching, None)
        if rule is not None:
            return rule(batch, collate_fn_map=collate_fn_map)

    def join(items: Sequence) -> Any:
        return collate(items, collate_fn_map=collate_fn_map)

    if isinstance(sample, Mapping):
        return rebuild_mapping(sample, lambda key: join([item[key] for item in batch]))
    if isinstance(sample, Sequence):
        named = isinstance(sample, tuple) and hasattr(sample, "_fields")
        if not named and any(len(item) != len(sample) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return rebuild_sequence(sample, [join(items) for items in zip(*batch)])
    raise refuse(kind)


def collate_tensor_fn(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Tensor:
    """Stacks dense tensors of equal shape along a new first dimension."""
    if batch[0].layout is not strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    return stack(batch, 0)


def collate_numpy_array_fn(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Any:
    """Stacks arrays of equal shape; refuses strings and objects."""
    if batch[0].dtype.kind in NOT_NUMERIC:
        raise refuse(batch[0].dtype)
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Tensor:
    """A 1-d tensor of the scalars' own dtype; Python's numbers among them are weaker."""
    return as_tensor(batch)


def collate_float_fn(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Tensor:
    """A 1-d float64 tensor."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Tensor:
    """A 1-d int64 tensor (or bool, for bools)."""
    return tensor(batch)


def collate_str_fn(batch: Sequence, *, collate_fn_map: Rules | None = None) -> Sequence:
    """Text and bytes are not joined."""
    return batch


# Public in effect: programs add rules for their own types here, so the names are PyTorch's.
default_collate_fn_map: Rules = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Sequence) -> Any:
    """Makes one batch of a list of samples: every leaf gets a new first dimension.

    Tensors and arrays are stacked, ints become int64, floats float64, text stays as it is;
    mappings, named tuples and sequences are collated item by item (tuples become lists).
    Raises TypeError for other types, RuntimeError for sizes that differ.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
