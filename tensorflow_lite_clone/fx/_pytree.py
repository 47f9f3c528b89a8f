"""Trees taken apart as another tree says, for the code of graphs whose arguments are trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.utils._pytree import TreeSpec, tree_flatten

#: Type -> what gives the children of a tree of it, as a spec has them.
SUPPORTED_NODES: dict[type, Callable[[Any, TreeSpec], list[Any]]] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]],
    flatten_fn_exact_match_spec: Any = None,
) -> None:
    """Let instances of `cls` be taken apart by ``flatten_fn_spec(tree, spec)``."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree at the places where `spec` has leaves.

    More than the spec has of a dictionary or a sequence is left out. RuntimeError for a tree of
    another structure.
    """
    if spec.is_leaf():
        return [pytree]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None:
        leaves, real = tree_flatten(pytree)
        if real != spec:
            raise RuntimeError(
                f"Real spec {real} of object {pytree} is different from expected spec {spec}."
            )
        return leaves
    children = zip(flatten(pytree, spec), spec.children())
    return [leaf for child, its in children for leaf in tree_flatten_spec(child, its)]


def map_instances(tree: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """A tree with ``change(x)`` for the instances of a class; lists of it may be written to."""
    if isinstance(tree, kind):
        return change(tree)
    if isinstance(tree, slice):
        return slice(
            *[map_instances(part, kind, change) for part in (tree.start, tree.stop, tree.step)]
        )
    if isinstance(tree, dict):
        return {name: map_instances(entry, kind, change) for name, entry in tree.items()}
    if isinstance(tree, list) or type(tree) is tuple or hasattr(type(tree), "_fields"):
        entries = [map_instances(entry, kind, change) for entry in tree]
        if isinstance(tree, list):
            return entries
        return tuple(entries) if type(tree) is tuple else type(tree)(*entries)
    return tree


def _items(values: Any, spec: TreeSpec) -> list[Any]:
    return [values[i] for i in range(len(spec.children()))]


register_pytree_flatten_spec(dict, lambda values, spec: [values[key] for key in spec.context])
register_pytree_flatten_spec(list, _items)
register_pytree_flatten_spec(tuple, _items)
