"""`step`: from an optimizer's rule for one parameter to its step over lists of parameters.

A rule ``rule(F, h, p, g, *states)`` is written over ``F``, as gradients are: on arrays it is the
generic form, on Tensors (``differentiable=True``) it is recorded. `h` has the hyperparameters, by
their names. It returns the new parameter and its new states, and None for a state that is not kept.

The step enters the dispatch table under the rule's name as a composite
``F.<name>(params, grads, *states, found_inf=None, **hyperparameters)``. A backend may override it
with a kernel that writes in place and returns None. So that a step can be captured once and
replayed, what changes from step to step may be zero-dim arrays on the device: step counts (Python
floats on the CPU), a learning rate, and `found_inf`, which makes a step change nothing where it is
not zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from itertools import chain
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32, float64
from tensorflow_lite_clone.core.hyper import Hyper
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.ops._formulas import scaled, wide


def step(*each: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the step that applies a rule to every parameter into the dispatch table.

    `each` names further arguments of the step that are lists with an entry per parameter, such as
    ``steps``; the rule takes its entries after the states.
    """

    def enter(rule: Callable[..., tuple]) -> Callable[..., Any]:
        @wraps(rule)
        def body(
            F: Any, params: list, grads: list, *states: list, found_inf: Any = None, **hyper: Any
        ) -> tuple[list, ...]:
            columns = [*states, *[hyper.pop(name) for name in each]]
            if not all(columns):
                absent = [None] * len(params)
                columns = [column or absent for column in columns]
            updated = map(partial(rule, F, Hyper(hyper)), params, grads, *columns)
            values = list(chain.from_iterable(updated))  # of each parameter in turn
            olds = (params, *states)
            news = [values[i :: len(olds)] if old else [] for i, old in enumerate(olds)]
            return unless(F, found_inf, olds, tuple(news))

        body.each = each  # type: ignore[attr-defined]
        return composite(body)

    return enter


def unless(
    F: Any, found_inf: Any, olds: tuple[list, ...], news: tuple[list, ...]
) -> tuple[list, ...]:
    """The new lists, but the old values if `found_inf` is set."""
    if found_inf is None:
        return news
    keep = found_inf != 0
    return tuple(
        [
            [F.where(keep, old, new) for old, new in zip(*pair, strict=True)]
            for pair in zip(olds, news, strict=True)
        ]
    )


def _are_half(number: Any, *arrays: Any) -> bool:
    """Whether a number is Python's and all arrays are of half floats."""
    return isinstance(number, (int, float)) and all([x.dtype.itemsize == 2 for x in arrays])


def plus(F: Any, x: Any, y: Any, number: Any) -> Any:
    """``x + number y``; of half floats PyTorch rounds the number, and then once the result."""
    if not _are_half(number, x, y):
        return x + number * y
    number = wide(F, F.full((), number, dtype=y.dtype))
    return F.astype(wide(F, x) + number * wide(F, y), x.dtype)


def times(F: Any, x: Any, number: Any) -> Any:
    """``x number``; half floats are rounded once."""
    return scaled(F, x, number) if _are_half(number, x) else x * number


def plus_product(F: Any, x: Any, y: Any, z: Any, number: Any) -> Any:
    """``x + number y z``; half floats are rounded once."""
    if _are_half(number, x, y, z):
        return F.addcmul(x, y, z, value=number)
    return x + (number * y) * z


def plus_quotient(F: Any, x: Any, y: Any, z: Any, number: Any) -> Any:
    """``x + number y / z``; half floats are rounded once."""
    if _are_half(number, x, y, z):
        return F.addcdiv(x, y, z, value=number)
    return x + (number * y) / z


def towards(F: Any, x: Any, y: Any, weight: Any) -> Any:
    """``x + weight (y - x)``; half floats are rounded once."""
    if _are_half(weight, x, y):
        return F.lerp_scalar(x, y, weight=weight)
    return x + (y - x) * weight


def with_penalty(F: Any, h: Any, p: Any, g: Any) -> Any:
    """The gradient of the loss to be minimised plus the L2 penalty's."""
    if h.maximize:
        g = -g
    return plus(F, g, p, h.weight_decay) if h.weight_decay else g


def decayed(F: Any, h: Any, p: Any, g: Any) -> tuple[Any, Any]:
    """Parameter and gradient with weight decay in the one or, unless it is decoupled, the other."""
    if h.decoupled_weight_decay:
        p = times(F, p, 1 - h.lr * h.weight_decay) if h.weight_decay else p
        return p, -g if h.maximize else g
    return p, with_penalty(F, h, p, g)


def precise(F: Any, count: Any, p: Any) -> Any:
    """A step count that is an array, wide enough for formulas with `p`; a number as it is."""
    wide = not isinstance(count, float) and p.dtype.itemsize == 8
    return F.astype(count, p.dtype) if wide else count


def widened(F: Any, count: Any) -> Any:
    """A step count for formulas that cancel: a float, or a float64 array."""
    return count if isinstance(count, float) else F.astype(count, float64)


def narrowed(F: Any, x: Any, p: Any) -> Any:
    """A number derived from a count, in a dtype that does not widen formulas with `p`."""
    if isinstance(x, float):
        return x
    return F.astype(x, p.dtype if p.dtype.itemsize == 8 else float32)


def square_root(F: Any, x: Any) -> Any:
    """The root of a float or an array."""
    return math.sqrt(x) if isinstance(x, float) else F.sqrt(x)
