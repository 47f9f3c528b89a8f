"""A batch cut into micro-batches, and results of micro-batches put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.slices import tensor_split
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """A tensor is cut along its dimension `split_dim`, or put together along it."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """A specification per argument, of its dimension."""
        return tuple([TensorChunkSpec(dim) for dim in chunk_dims])

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """A specification per keyword, of its dimension."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """A value goes to all micro-batches as it is."""

    def __repr__(self) -> str:
        return "_Replicate()"


#: Tensors are cut along their first dimension, and other values go to all.
_DEFAULT = object()


def _default_specs(leaves: list[Any]) -> list[Any]:
    return [TensorChunkSpec(0) if isinstance(x, Tensor) else _Replicate() for x in leaves]


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[Any, ...] | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple], list[dict]]:
    """The arguments and the keyword arguments of each of `chunks` micro-batches.

    Tensors, also those inside of tuples, lists and dictionaries, are cut along their first
    dimension as `tensor_split` does: of 10 samples, 4 micro-batches get 3, 3, 2 and 2. Other values
    go to all. A specification has the arguments' structure with a `TensorChunkSpec` per tensor and
    `_Replicate` for what goes to all. There are fewer micro-batches where a tensor has fewer rows.

    Raises AssertionError if a specification names other arguments than there are, ValueError for
    one that does not fit its value, IndexError for a dimension that a tensor does not have.
    """
    if args_chunk_spec is not None and len(args_chunk_spec) != len(args):
        raise AssertionError(
            f"args_chunk_spec is for {len(args_chunk_spec)} arguments, and there are {len(args)}"
        )
    named: list[tuple[int | str, Any]] = [*enumerate(args), *(kwargs or {}).items()]
    specs: dict[int | str, Any] = dict(enumerate(args_chunk_spec or ()))
    specs.update(kwargs_chunk_spec or {})
    cut = [_Cut(value, specs.get(name, _DEFAULT)) for name, value in named]
    count = min([chunks, *[rows for part in cut for rows in part.rows()]])
    split_args = list(zip(*[part.pieces(count) for part in cut], strict=True)) or [()] * count
    names = list(kwargs or {})
    return (
        [chunk[: len(args)] for chunk in split_args],
        [dict(zip(names, chunk[len(args) :], strict=True)) for chunk in split_args],
    )


class _Cut:
    """One argument, whose leaves are to be cut by their specifications."""

    def __init__(self, value: Any, spec: Any) -> None:
        self.leaves, self.structure = tree_flatten(value)
        if spec is _DEFAULT:
            self.specs = _default_specs(self.leaves)
        else:
            self.specs = self.structure.flatten_up_to(spec)
        for spec, leaf in zip(self.specs, self.leaves, strict=True):
            if not isinstance(spec, _Replicate) and not (
                isinstance(spec, TensorChunkSpec) and isinstance(leaf, Tensor)
            ):
                raise ValueError(f"Unsupported chunk spec: {spec} and value: {leaf} combination.")

    def rows(self) -> list[int]:
        """How many rows each tensor has that is cut."""
        return [
            leaf.size(spec.split_dim) if leaf.dim() else _refuse_scalar(leaf)
            for leaf, spec in zip(self.leaves, self.specs, strict=True)
            if isinstance(spec, TensorChunkSpec)
        ]

    def pieces(self, count: int) -> list[Any]:
        """The value for each micro-batch."""
        leaves = [
            [leaf] * count
            if isinstance(spec, _Replicate)
            else tensor_split(leaf, count, dim=spec.split_dim)
            for leaf, spec in zip(self.leaves, self.specs, strict=True)
        ]
        return [
            tree_unflatten([parts[index] for parts in leaves], self.structure)
            for index in range(count)
        ]


def _refuse_scalar(value: Tensor) -> int:
    raise IndexError(f"a tensor without dimensions cannot be cut into micro-batches: {value}")


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any) -> Any:
    """The results of all micro-batches as one: tensors are joined along their first dimension.

    Other values must be the same in all. `chunk_spec` has the results' structure, with a
    `TensorChunkSpec` per tensor, `_Replicate` for what is the same, None where the first counts.

    Raises ValueError for results of different structures, or of another one than the
    specification's, AssertionError where they differ and should not.
    """
    first, structure = tree_flatten(chunks[0])
    if chunk_spec is None:
        specs = _default_specs(first)
    else:
        specs = structure.flatten_up_to(chunk_spec)
    columns = zip(*[structure.flatten_up_to(chunk) for chunk in chunks], strict=True)
    merged = [_merged(values, spec) for values, spec in zip(columns, specs, strict=True)]
    return tree_unflatten(merged, structure)


def _merged(values: tuple[Any, ...], spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return cat(values, dim=spec.split_dim)
    if isinstance(spec, _Replicate) and any(value != values[0] for value in values):
        raise AssertionError(f"expected the same value of all micro-batches, got {values}")
    return values[0]
