"""`autograd.Function` under transforms: level by level, from the innermost outwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.func.batching.crossing import Level, differs_at, enter, leave
from tensorflow_lite_clone.func.batching.random import randomness
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import broadcast_to_and_flatten, tree_flatten

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a function's ``vmap`` is told of the mapping."""

    batch_size: int
    randomness: str


@contextmanager
def _lowered() -> Iterator[None]:
    """Without the innermost transform."""
    transforms, mappings = mode.transforms, mode.mappings
    mode.transforms = transforms[:-1]
    mode.mappings = [level for level in mappings if level is not transforms[-1]]
    try:
        yield
    finally:
        mode.transforms, mode.mappings = transforms, mappings


def _below(cls: type[Function], *args: Any) -> Any:
    with _lowered():
        return cls.apply(*args)


@late_bound.apply_transformed.provide
def _apply(cls: type[Function], args: tuple) -> Any:
    """A call under the innermost transform; RuntimeError where a mapping is not supported."""
    level = mode.transforms[-1]
    if not isinstance(level, Level):  # of derivatives: one node, whatever is below it
        return cls._run(args, partial(_below, cls))
    own = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if own:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True "
                "and an overridden vmap staticmethod. Please set generate_vmap_rule=False or "
                f"delete the overridden vmap staticmethod to avoid ambiguity. {_MORE}"
            )
        return cls._run(args, cls.forward)  # over arrays of samples, and so is backward
    if not own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True. "
            f"{_MORE}"
        )
    return _by_rule(cls, args, level)


def _by_rule(cls: type[Function], args: tuple, level: Level) -> Any:
    """What the function's own ``vmap`` says."""
    leaves, spec = tree_flatten(args)
    dims = [0 if isinstance(x, Tensor) and differs_at(x, level) else None for x in leaves]
    if all([dim is None for dim in dims]):
        return _below(cls, *args)
    given = [x if dim is None else leave(x, 0, level) for x, dim in zip(leaves, dims)]
    info = VmapInfo(level.size, randomness[level.number])
    with _lowered():
        result = cls.vmap(info, spec.unflatten(dims), *spec.unflatten(given))
    if not isinstance(result, tuple) or len(result) != 2:
        what = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. Got {what} instead"
        )
    output, out_dims = result
    ys, out_spec = tree_flatten(output)
    places = broadcast_to_and_flatten(out_dims, out_spec)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but output has structure "
            f"{out_spec}. {_MORE}"
        )
    return out_spec.unflatten(
        [
            y if place is None or not isinstance(y, Tensor) else enter(y, place % y.ndim, level)
            for y, place in zip(ys, places, strict=True)
        ]
    )
