"""Passes in an order, as ``torch.fx.passes.infra.pass_manager``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.passes.infra.pass_base import PassResult
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

_Pass = Callable[..., Any]
_Constraint = Callable[[_Pass, _Pass], bool]


def pass_result_wrapper(fn: _Pass) -> Callable[..., PassResult | None]:
    """A pass that gives a `PassResult`, of one that changes its module or returns another."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm: Module) -> PassResult | None:
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(gm if result is None else result, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: _Pass, that: _Pass) -> _Constraint:
    """The constraint that `this` is run before `that`: whether a pass may come before another."""
    return lambda a, b: a != that or b != this


def _validate_pass_schedule_constraint(constraint: _Constraint, passes: list[_Pass]) -> None:
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :]):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at "
                    f"index {i} and {b} at index {j} in pass list."
                )


def _topological_sort_passes(passes: list[_Pass], constraints: list[_Constraint]) -> list[_Pass]:
    """The passes in an order that fits all constraints; RuntimeError where there is none."""
    before = {
        a: [b for b in passes if a != b and not all(fits(a, b) for fits in constraints)]
        for a in passes
    }
    order = [function for function in before if not before[function]]
    for done in order:
        for function, required in before.items():
            if done in required:
                required.remove(done)
                if not required:
                    order.append(function)
    rest = [function for function in before if before[function]]
    if rest:
        raise RuntimeError(f"Circular dependency detected within the following passes: {rest}")
    return order


class Passes:
    """Passes, with constraints of their order, which is checked before they are run."""

    def __init__(self, passes: list[_Pass] | None, constraints: list[_Constraint] | None) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self._validated = False

    def add_pass(self, _pass: _Pass) -> None:
        """Run another pass, after the others."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: _Constraint) -> None:
        """Ask for an order."""
        self.constraints.append(constraint)
        self._validated = False

    def _validate(self) -> None:
        """Raise RuntimeError unless the order of the passes fits the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True


class PassManager(Passes):
    """Runs passes, functions that take a module and give a `PassResult`, in an order.

    The order is the given one, unless `constraints` (see `this_before_that_pass_constraint`) ask
    for another. All are run up to `steps` times, until none changes the module. With
    `run_checks_after_each_pass` the function given to `add_checks` is called after each. What a
    pass raises becomes the cause of an Exception that names it, and those that ran.
    """

    def __init__(
        self,
        passes: list[_Pass] | None = None,
        constraints: list[_Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        super().__init__(passes, constraints)
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._check: Callable[[Module], None] | None = None

    validate_constraints = Passes._validate

    def solve_constraints(self) -> None:
        """Put the passes into an order that fits; RuntimeError where there is none."""
        if self.constraints:
            self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Call a function of the module before the passes.

        TypeError unless it takes one argument.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self._check = check

    def check(self, module: Module) -> None:
        """Call the function given to `add_checks`, if any."""
        if self._check is not None:
            self._check(module)

    def __call__(self, module: Module) -> PassResult:
        """Run the passes; the module, and whether one of them changed it."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed_once = False
        for _ in range(self.steps):
            changed = False
            for number in range(len(self.passes)):
                result = self._run(number, module)
                module, changed = result.graph_module, changed or result.modified
            changed_once |= changed
            if not changed:
                break
        return PassResult(module, changed_once)

    def _run(self, number: int, module: Module) -> PassResult:
        name = _name(self.passes[number])
        try:
            result = self.passes[number](module)
            if not hasattr(result, "graph_module"):
                raise TypeError(
                    f"The result of the pass {name} should be type PassResult, not "
                    f"{type(result).__name__}. Please wrap it with pass_result_wrapper()"
                )
            if isinstance(result.graph_module, GraphModule):
                result.graph_module.recompile()
            if self.run_checks_after_each_pass:
                self.check(result.graph_module)
        except Exception as error:
            earlier = [_name(function) for function in self.passes[:number]]
            raise Exception(  # noqa: TRY002  as PyTorch's
                f"An error occurred when running the '{name}' pass after the following passes: "
                f"{earlier}"
            ) from error
        return result


def _name(function: _Pass) -> str:
    return function.__name__ if inspect.isfunction(function) else type(function).__name__
