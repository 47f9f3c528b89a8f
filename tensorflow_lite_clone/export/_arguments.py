"""The arguments of a program: their names, and what the tensors in them are called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.utils import _pytree


class Leaf(NamedTuple):
    """A value in the arguments: a name for its node, and how a guard refers to it."""

    name: str
    source: str
    value: Any

    @property
    def expression(self) -> str:
        """How messages call it: ``x['a']`` for ``L['x']['a']``."""
        name, _, rest = self.source[3:].partition("']")
        return name + rest


def bound_arguments(module: Any, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their names, those by position first; TypeError where they do not fit.

    Those of ``*args`` are a tuple of that name.
    """
    function = module.forward if isinstance(module, Module) else module
    signature = inspect.signature(function)
    signature.bind(*args, **kwargs)
    return {**signature.bind_partial(*args).arguments, **kwargs}


def argument_names(arguments: Mapping[str, Any], args: tuple, kwargs: Mapping[str, Any]) -> list:
    """A name for each argument of a call: ``args_0`` for the first of ``*args``."""
    names = [name for name in arguments if name not in kwargs]
    rest = len(args) - len(names) + 1  # of *args, which come last, if there are any
    last = names[-1:]
    if last and (rest != 1 or arguments[last[0]] is not args[-1]):
        names[-1:] = [f"{last[0]}_{place}" for place in range(rest)]
    return [*names, *kwargs]


def leaves_of(arguments: Mapping[str, Any], deep: bool = True) -> list[Leaf]:
    """The leaves of all arguments in their order; without `deep`, of each its children."""
    found: list[Leaf] = []
    for name, value in arguments.items():
        _flatten(value, name, f"L['{name}']", found, 99 if deep else 1)
    return found


def _flatten(tree: Any, name: str, source: str, found: list[Leaf], depth: int) -> None:
    kind = _pytree._get_node_type(tree)
    node = _pytree.SUPPORTED_NODES.get(kind)
    if node is None or not depth:
        found.append(Leaf(name, source, tree))
        return
    children, _ = node.flatten_fn(tree)
    if isinstance(tree, Mapping):
        keys = list(tree)
        parts = [(str(key), f"[{key!r}]") for key in keys]
    elif hasattr(tree, "_fields"):
        parts = [(field, f".{field}") for field in tree._fields]
    elif hasattr(tree, "__dataclass_fields__"):
        fields = [each for each in tree.__dataclass_fields__ if getattr(tree, each) is not None]
        parts = [(field, f".{field}") for field in fields]
    else:
        parts = [(str(place), f"[{place}]") for place in range(len(children))]
    for (word, access), child in zip(parts, children):
        _flatten(child, f"{name}_{word}", source + access, found, depth - 1)
