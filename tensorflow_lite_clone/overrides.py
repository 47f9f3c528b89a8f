"""Overloads for types that are no tensors, as ``torch.overrides``.

The functions of this package do not look for ``__torch_function__``; functions of a program that
ask with `has_torch_function` and call `handle_torch_function` work as with PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from tensorflow_lite_clone.tensor import Tensor


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a Tensor or of a class that has ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether some value is of a class that has ``__torch_function__``."""
    return any([hasattr(type(value), "__torch_function__") for value in relevant_args])


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """`has_torch_function` of one value."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function` of these values."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the first ``__torch_function__`` gives that does not decline, subclasses first.

    TypeError when all return NotImplemented.
    """
    overloads: list[Any] = []
    for value in relevant_args:
        kind = type(value)
        if hasattr(kind, "__torch_function__") and kind not in [type(seen) for seen in overloads]:
            bases = [i for i, seen in enumerate(overloads) if issubclass(kind, type(seen))]
            overloads.insert(bases[0] if bases else len(overloads), value)
    types = tuple([type(value) for value in overloads])
    for value in overloads:
        result = value.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{list(types)}"
    )


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: a function that hands over to the overloads of ``dispatcher(*args)``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        wrapped.__name__, wrapped.__module__ = function.__name__, function.__module__
        return wrapped

    return decorate


class TorchFunctionMode:
    """A mode under which each function of PyTorch asks ``__torch_function__`` of the mode.

    Programs subclass it; entering one raises NotImplementedError, for no function here asks.
    """

    def __enter__(self) -> Self:
        raise NotImplementedError(
            f"{type(self).__name__}: functions do not look for modes of __torch_function__ here"
        )

    def __exit__(self, *error: object) -> None:
        pass


__all__ = [
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "wrap_torch_function",
]
