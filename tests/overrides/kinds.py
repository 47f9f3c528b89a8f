"""Subclasses of Tensor as programs write them, for either library."""

from __future__ import annotations

from typing import Any


def kept(lib: Any) -> Any:
    """A subclass that says nothing about functions."""

    class Kept(lib.Tensor):
        pass

    return Kept


def tagged(lib: Any) -> Any:
    """A subclass with an attribute that results inherit from the arguments."""

    class Tagged(lib.Tensor):
        @staticmethod
        def __new__(cls, data: Any, tag: str = "", **kwargs: Any) -> Any:
            return lib.as_tensor(data, **kwargs).as_subclass(cls)

        def __init__(self, data: Any, tag: str = "", **kwargs: Any) -> None:
            self.tag = tag

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            result = super().__torch_function__(func, types, args, kwargs or {})
            tags = [value.tag for value in leaves((args, kwargs)) if hasattr(value, "tag")]
            for value in leaves(result):
                if isinstance(value, cls) and tags:
                    value.tag = max(tags)
            return result

    return Tagged


def leaves(values: Any) -> list[Any]:
    """What tuples, lists and dictionaries hold."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (tuple, list)):
        return [leaf for value in values for leaf in leaves(value)]
    return [values]


def described(values: Any) -> Any:
    """What a result is made of: classes and tags."""
    if isinstance(values, (tuple, list)):
        return type(values).__name__, [described(value) for value in values]
    return type(values).__name__, getattr(values, "tag", None)
