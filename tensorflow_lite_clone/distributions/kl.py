"""Kullback-Leibler divergences: the table of pairs and its look-up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator for the function that serves ``kl_divergence(p, q)`` of these types.

    It serves their subclasses, too, where no pair closer to them is registered. Any classes are
    taken: some packages' distributions are of their own bases. TypeError for what is no class.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a class but got {given}")

    def decorator(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> Callable[[Any, Any], Tensor]:
    """The function of the closest pair of base classes.

    Where p's class and q's disagree which pair is closest, p's decides, with a warning.
    NotImplementedError if there is no pair.
    """
    distances = {
        pair: (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1]))
        for pair in _KL_REGISTRY
        if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    }
    if not distances:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type "
            f"{type_q.__name__}"
        )
    left = min(distances, key=lambda pair: distances[pair])
    right = min(distances, key=lambda pair: distances[pair][::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the mean of ``log p(x) - log q(x)`` under p, of the batch's shape.

    NotImplementedError if nothing is registered for the types.
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    return _KL_MEMOIZE[pair](p, q)
