"""Checks of what transforms are given, and of what their functions return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import TreeSpec, tree_flatten

ArgNums = int | tuple[int, ...]


def checked_argnums(argnums: Any, count: int) -> ArgNums:
    """`argnums` as numbers from 0; RuntimeError for what is none of `count` arguments."""
    if isinstance(argnums, int):
        return _argnum(argnums, count)
    if not isinstance(argnums, tuple) or not all([isinstance(n, int) for n in argnums]):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    if len(set(argnums)) != len(argnums):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple([_argnum(number, count) for number in argnums])


def _argnum(number: int, count: int) -> int:
    if not -count <= number < count:
        raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return number % count


def chosen(args: Sequence[Any], argnums: ArgNums) -> Any:
    """The arguments to differentiate by: one, or a tuple."""
    if isinstance(argnums, int):
        return args[argnums]
    return tuple([args[number] for number in argnums])


def replaced(args: Sequence[Any], argnums: ArgNums, values: Any) -> tuple:
    """The arguments with other values at `argnums`."""
    result = list(args)
    if isinstance(argnums, int):
        result[argnums] = values
    else:
        for number, value in zip(argnums, values, strict=True):
            result[number] = value
    return tuple(result)


def flat_inputs(tree: Any) -> tuple[list[Tensor], TreeSpec]:
    """The tensors of an input; ValueError when a leaf is none."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
    return leaves, spec


def flat_outputs(tree: Any, caller: str) -> tuple[list[Tensor], TreeSpec]:
    """The tensors of an output of `caller`'s function; RuntimeError when there are others."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{caller}: expected f(*{'args' if 'args' in caller else 'primals'}) to return "
                f"only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, spec


def split_aux(result: Any, has_aux: bool, caller: str) -> tuple[Any, Any]:
    """Output and aux of what a function returned; RuntimeError for what is no pair."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{caller}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def leave_aux(aux: Any, leave: Callable[[Tensor], Tensor]) -> Any:
    """Aux as the caller gets it; RuntimeError when it holds anything but tensors."""
    leaves, spec = tree_flatten(aux)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return spec.unflatten([leave(leaf) for leaf in leaves])
