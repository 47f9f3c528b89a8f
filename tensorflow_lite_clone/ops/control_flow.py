"""`cond` and `while_loop`: branches and loops as functions, run as they are met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor


def _is_true(value: Any) -> bool:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {value}.")
    return bool(value)


@public("torch")
def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """``true_fn(*operands)`` if `pred` is true, else ``false_fn(*operands)``.

    `pred` is a bool or a tensor of one element. Where `func.vmap` maps over it, both are called,
    and every sample has what its own says. Raises RuntimeError for other arguments.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves, but got {operands}."
        )
    if isinstance(pred, Tensor) and pred.dtype.kind == "b" and pred._storage.backend.batched:
        return _chosen(pred, true_fn(*operands), false_fn(*operands))
    return (true_fn if _is_true(pred) else false_fn)(*operands)


def _chosen(pred: Tensor, yes: Any, no: Any) -> Any:
    """The results of one branch or of the other, tensor by tensor."""
    if isinstance(yes, Tensor):
        return where(pred, yes, no)
    if isinstance(yes, dict):
        return {name: _chosen(pred, value, no[name]) for name, value in yes.items()}
    return type(yes)([_chosen(pred, *pair) for pair in zip(yes, no, strict=True)])


@public("torch")
def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Replace `carried_inputs` by ``body_fn(*carried_inputs)`` while ``cond_fn`` of them is true.

    Raises RuntimeError for other arguments, or when the body returns another number of values.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"Expect carried_inputs to be a tuple or list of tensors, but got {carried_inputs}."
        )
    state = tuple(carried_inputs)
    while _is_true(cond_fn(*state)):
        result = body_fn(*state)
        result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(result) != len(state):
            raise RuntimeError(
                f"body_fn should return {len(state)} values, as it is given, but gave {len(result)}"
            )
        state = result
    return state
