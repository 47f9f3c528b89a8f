"""`associative_scan`: what is combined so far, along a dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.func._vmap import vmap
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten, tree_unflatten


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The running combination of `xs` along `dim`: at i ``combine(...combine(x0, x1)..., xi)``.

    `xs` is a tensor or a tree of tensors of one shape, and the result is one of the same shapes.
    `combine_fn` takes two entries (trees like `xs` without `dim`) and must be associative: the
    entries are combined in about log2(n) rounds (Hillis and Steele, "Data parallel algorithms",
    1986). With `reverse` it goes from the last entry to the first. `combine_mode` is "generic", or
    "pointwise" for tensors of a GPU. Raises ValueError for other arguments.

        sums = associative_scan(torch.add, x, dim=0, combine_mode="generic")  # x.cumsum(0)
    """
    leaves, spec = tree_flatten(xs)
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if combine_mode == "pointwise" and any(leaf.is_cpu for leaf in leaves):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU"
        )
    dim = dim % leaves[0].ndim
    length = leaves[0].shape[dim]
    if any(leaf.ndim <= dim or not leaf.shape[dim] for leaf in leaves):
        raise ValueError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
        )

    def part(start: int, stop: int) -> Any:
        return tree_unflatten([leaf.narrow(dim, start, stop - start) for leaf in leaves], spec)

    combine = vmap(combine_fn, in_dims=dim, out_dims=dim)
    reach = 1
    while reach < length:  # each entry combines as many as `reach` of those before it
        early, late = part(0, length - reach), part(reach, length)
        combined, _ = tree_flatten(combine(late, early) if reverse else combine(early, late))
        kept = (length - reach, reach) if reverse else (0, reach)
        for i, leaf in enumerate(combined):
            edge = leaves[i].narrow(dim, *kept)
            leaves[i] = cat((leaf, edge) if reverse else (edge, leaf), dim)
        reach *= 2
    return tree_unflatten(leaves, spec)
