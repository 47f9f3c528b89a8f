"""Lists and dictionaries among the arguments of nodes, which are replaced and not written to."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from tensorflow_lite_clone.utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. Arguments of a torch.fx.Node "
        "are changed by assigning changed copies:\n\n"
        "    new_args = ...  # copy and change args\n"
        "    node.args = new_args"
    )


class immutable_list(list[_T]):  # noqa: N801  PyTorch's name
    """A list that cannot be changed; TypeError where one tries.

    >>> torch.fx.immutable_collections.immutable_list([1, 2])
    [1, 2]
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation
    append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)


class immutable_dict(dict[_K, _V]):  # noqa: N801  PyTorch's name
    """A dictionary that cannot be changed; TypeError where one tries."""

    __delitem__ = __ior__ = __setitem__ = _no_mutation
    clear = pop = popitem = setdefault = update = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, _: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
register_pytree_node(
    immutable_dict,
    lambda values: (list(values.values()), list(values)),
    lambda values, keys: immutable_dict(zip(keys, values)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
