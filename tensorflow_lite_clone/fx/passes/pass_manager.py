"""Functions of any object run in an order, as ``torch.fx.passes.pass_manager``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from tensorflow_lite_clone.fx.passes.infra.pass_manager import (
    Passes,
    this_before_that_pass_constraint,
)

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

_Pass = Callable[..., Any]
_Constraint = Callable[[_Pass, _Pass], bool]
_logger = logging.getLogger(__name__)


def inplace_wrapper(fn: _Pass) -> _Pass:
    """A function that returns its first argument, which `fn` changes."""

    @wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn: _Pass, level: int = logging.INFO) -> _Pass:
    """A function that logs what `fn` returns."""

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        _logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


def loop_pass(
    base_pass: _Pass,
    n_iter: int | None = None,
    predicate: Callable[[Any], bool] | None = None,
) -> _Pass:
    """A pass that runs another `n_iter` times, or as long as `predicate` of the result is true.

    AssertionError unless one of the two is given.
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def looped(source: Any) -> Any:
        if predicate is not None:
            while predicate(source):
                source = base_pass(source)
            return source
        for _ in range(n_iter or 0):
            source = base_pass(source)
        return source

    return looped


def these_before_those_pass_constraint(these: _Pass, those: _Pass) -> _Constraint:
    """As `this_before_that_pass_constraint`, of all passes made by the same wrappers.

    Passes are compared with their wrappers taken off.
    """
    return lambda a, b: unwrap(a) != those or unwrap(b) != these


class PassManager(Passes):
    """Runs passes, functions of an object that return the next one, in an order.

    With `constraints` (see `this_before_that_pass_constraint`) RuntimeError is raised where the
    order does not fit.
    """

    def __init__(
        self,
        passes: list[_Pass] | None = None,
        constraints: list[_Constraint] | None = None,
    ) -> None:
        super().__init__(passes, constraints)

    @classmethod
    def build_from_passlist(cls, passes: list[_Pass]) -> PassManager:
        """A manager of these passes."""
        return cls(passes)

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes of these names."""
        self.passes = [function for function in self.passes if function.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: _Pass, _replacement: _Pass) -> None:
        """Run another pass in the place of one, which is found by its name."""
        name = _target.__name__
        self.passes = [
            _replacement if function.__name__ == name else function for function in self.passes
        ]
        self._validated = False

    validate = Passes._validate

    def __call__(self, source: Any) -> Any:
        """What the last pass returns, for what the first is given."""
        self.validate()
        for function in self.passes:
            source = function(source)
        return source
