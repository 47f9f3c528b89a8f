"""Arguments of functions and modules as their signatures have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow_lite_clone.fx._compatibility import compatibility

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by keyword."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call with the defaults of the function; None where they do not fit.

    With `normalize_to_only_use_kwargs` all are by keyword. `arg_types` and `kwarg_types`, by which
    PyTorch chooses among overloads, change nothing: a function here has one signature.

    >>> from tensorflow_lite_clone.fx.operator_schemas import normalize_function
    >>> normalize_function(torch.sum, (1,), normalize_to_only_use_kwargs=True).kwargs["input"]
    1
    """
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of the module at the path `target`; RuntimeError without one."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    signature = inspect.signature(type(module).forward)
    parameters = [*signature.parameters.values()][1:]
    signature = signature.replace(parameters=parameters)
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(
    signature: inspect.Signature, args: tuple, kwargs: dict[str, Any], by_keyword: bool
) -> ArgsKwargsPair | None:
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if by_keyword:
        return ArgsKwargsPair((), dict(bound.arguments))
    count = len(args)
    named = [*bound.arguments.items()][count:]
    return ArgsKwargsPair(tuple(bound.arguments.values())[:count], dict(named))
