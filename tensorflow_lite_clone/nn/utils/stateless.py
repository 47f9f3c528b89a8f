"""A module's call with other tensors as its state, as ``torch.nn.utils.stateless``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["functional_call"]

_ABSENT: Any = object()


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The older name of `torch.func.functional_call`, which takes one dictionary; deprecated."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with other tensors; see `torch.func.functional_call`."""
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _members(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers by all their names."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _tied(values: dict[str, Tensor], members: dict[str, Tensor]) -> dict[str, Tensor]:
    """`values` with those of tied names under all the names."""
    groups: dict[int, list[str]] = {}
    for name, member in members.items():
        groups.setdefault(id(member), []).append(name)
    result = dict(values)
    for names in groups.values():
        given = [name for name in names if name in values]
        if not given or len(names) == 1:
            continue
        if len({id(values[name]) for name in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(given)}, which are tied. "
                "Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(names, values[given[0]]))
    return result


def _where(module: Module, name: str) -> dict[str, Any]:
    """The dictionary of a module that has, or would have, an attribute."""
    for members in (module._parameters, module._buffers):
        if name in members:
            return members
    return vars(module)


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """The module with other members for the time of a block."""
    members, values = _members(module), parameters_and_buffers
    for value in values.values():
        if not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    if tie_weights:
        values = _tied(values, members)
    if strict:
        unknown = sorted(values.keys() - members.keys())
        missing = sorted(members.keys() - values.keys())
        if unknown or missing:
            problem = f"Error(s) in reparametrizing for {type(module).__name__}:"
            if unknown:
                problem += f"\n\tUnexpected key(s): {', '.join(map(repr, unknown))}."
            if missing:
                problem += f"\n\tMissing key(s): {', '.join(map(repr, missing))}."
            raise RuntimeError(problem)
    saved: list[tuple[dict, str, Any]] = []
    try:
        for name, value in values.items():
            owner, _, attribute = name.rpartition(".")
            attributes = _where(module.get_submodule(owner), attribute)
            saved.append((attributes, attribute, attributes.get(attribute, _ABSENT)))
            attributes[attribute] = value
        yield
    finally:
        for attributes, attribute, value in reversed(saved):
            if value is _ABSENT:
                del attributes[attribute]
            else:
                attributes[attribute] = value
