"""One distribution under PyTorch and here: every attribute, function and sample is compared."""

from __future__ import annotations

import math
import re
from typing import Any

from tests.autograd.against_torch import same
from tests.device import DEVICE

ATTRIBUTES = ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support")
MOMENTS = ("mean", "mode", "variance", "stddev")


def words(lib: Any) -> dict[str, Any]:
    """What the expressions of tables may name."""
    d = lib.distributions
    return {
        **{name: getattr(d, name) for name in d.__all__},
        "torch": lib,
        "T": lib.tensor,
        "D": lambda *values: lib.tensor(*values, dtype=lib.float64),
        "math": math,
        "nan": math.nan,
        "inf": math.inf,
    }


def made(lib: Any, expression: str) -> Any:
    """The value of an expression under a library."""
    return eval(expression, words(lib))


def attempt(function: Any) -> Any:
    """What `function()` returns, or the type of its error."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def check_attributes(expression: str, **tolerance: float) -> None:
    """repr, shapes, support, moments, entropy and enumeration."""

    def script(lib):
        d = made(lib, expression)
        support = re.sub(r", device='[^']*'", "", str(attempt(lambda: d.support)))
        shown = repr(d), support, repr(dict(d.arg_constraints))
        fixed = [getattr(d, name) for name in ATTRIBUTES]
        moments = [attempt(lambda name=name: getattr(d, name)) for name in MOMENTS]
        return shown, fixed, moments, attempt(d.entropy), attempt(d.enumerate_support)

    same(script, **tolerance)


def check_log_prob(expression: str, values: str, **tolerance: float) -> None:
    """log_prob and its gradient by the value, also after `expand` and without validation."""

    def script(lib):
        d = made(lib, expression)
        value = made(lib, values).requires_grad_()
        log_prob = d.log_prob(value)
        log_prob.nan_to_num(0, 0, 0).sum().backward()
        wide = d.expand((2, *d.batch_shape))
        free = made(lib, expression[:-1] + ", validate_args=False)")
        return (
            [log_prob, value.grad, wide.log_prob(value.detach()), free.log_prob(value.detach())],
            [wide.batch_shape, wide.event_shape, attempt(lambda: wide.mean), repr(wide)],
            # PyTorch's Multinomial forgets what its entropy needs when it is expanded.
            None if expression.startswith("Multinomial") else attempt(wide.entropy),
        )

    same(script, **tolerance)


def check_samples(expression: str, **tolerance: float) -> None:
    """Samples of one seed: shapes, and on the CPU's streams the values."""

    def script(lib):
        d = made(lib, expression)
        lib.manual_seed(6)
        with_seed = d.sample(), d.sample((3,)), d.expand((2, *d.batch_shape)).sample((2, 3))
        if d.has_rsample:
            with_seed += (d.rsample((2,)),)
        if DEVICE == "cuda":
            return [(list(sample.shape), str(sample.dtype)) for sample in with_seed]
        return with_seed, lib.rand(1)

    same(script, warned=False, **tolerance)


def check_parameter_gradients(expression: str, parameters: str, **tolerance: float) -> None:
    """Gradients of log_prob, entropy and a reparameterised sample; `expression` is a function of
    the parameters."""

    def script(lib):
        given = [value.requires_grad_() for value in made(lib, parameters)]
        lib.manual_seed(7)
        d = made(lib, expression)(*given)
        sample = d.rsample((4,)) if d.has_rsample else d.sample((4,))
        log_prob = d.log_prob(sample.detach())
        results = [lib.autograd.grad(log_prob.sum(), given, retain_graph=True)]
        entropy = attempt(d.entropy)
        if not isinstance(entropy, str):
            results.append(lib.autograd.grad(entropy.sum(), given, retain_graph=True))
        if d.has_rsample:
            weight = lib.linspace(-1, 1, sample.numel(), dtype=sample.dtype).reshape(sample.shape)
            results.append(lib.autograd.grad((sample * weight).sum(), given))
        return results

    same(script, **tolerance)
