"""Steps of further optimizers by `optimizer_rules.cu`: one launch for all tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.backends.cupy.tensor_lists import (
    THREADS,
    batches,
    is_supported,
    numbers,
)
from tensorflow_lite_clone.dispatch.table import override
from tensorflow_lite_clone.kernels.steps import complement, function_of, fused_step, logarithm

_FILE = "optimizer_rules.cu"
_step = Kernel(_FILE, "ruled_step", params=("T", "R"))
_numbers = Kernel(_FILE, "ruled_numbers", params=("R", "A"))
_f64 = np.dtype(np.float64)


def _by_rule(name: str, rule: str, values: Callable[[Any], tuple], *cells: str) -> None:
    """Override a step by a rule, which reads what `values` computes of the hyperparameters."""

    def padded(h: Any) -> tuple:
        given = values(h)
        return (*given, *[0.0] * (7 - len(given)), getattr(h, "weight_decay", 0.0))

    flags = ("decoupled_weight_decay", "maximize")
    fused_step(name, _step, padded, cells=cells, flags=flags, template=lambda h: (rule,))


def _run_on_numbers(rule: str, lists: list[list], values: tuple, found_inf: Any) -> Any:
    """One launch of a rule for lists of numbers on the device, computed in float64."""
    if not is_supported(values[0], found_inf, *lists):
        return NotImplemented
    packed = numbers(_f64, *values)
    places = list(enumerate(zip(*lists, strict=True)))
    for tensors, count in batches(places, len(lists), 1):
        _numbers[rule, _f64](blocks_for(count, THREADS), THREADS, tensors, packed, found_inf)
    return None


def _adadelta(h: Any) -> tuple:
    return h.lr, h.rho, function_of(h.rho, complement), h.eps


def _adamax(h: Any) -> tuple:
    beta1, beta2 = h.betas
    return h.lr, function_of(beta1, complement), function_of(beta1, logarithm), beta2, h.eps


def _nadam(h: Any) -> tuple:
    beta1, beta2 = h.betas
    share1, share2 = function_of(beta1, complement), function_of(beta2, complement)
    return h.lr, share1, beta2, share2, function_of(beta2, logarithm), h.eps, h.momentum_decay


def _radam(h: Any) -> tuple:
    beta1, beta2 = h.betas
    logarithms = function_of(beta1, logarithm), function_of(beta2, logarithm)
    share1, share2 = function_of(beta1, complement), function_of(beta2, complement)
    return h.lr, share1, logarithms[0], beta2, share2, logarithms[1], h.eps


_by_rule("adadelta_step", "Adadelta", _adadelta)
_by_rule("adamax_step", "Adamax", _adamax, "steps")
_by_rule("nadam_step", "NAdam", _nadam, "steps", "products")
_by_rule("radam_step", "RAdam", _radam, "steps")
_by_rule("rprop_step", "Rprop", lambda h: (*h.etas, *h.step_sizes))
_by_rule("asgd_step", "Asgd", lambda h: (h.lambd,), "etas", "mus")


@override("nadam_products", backend="cupy")
def nadam_products(
    F: Any, products: list, *, steps: list, beta1: Any, momentum_decay: Any, found_inf: Any = None
) -> Any:
    values = beta1, momentum_decay
    return _run_on_numbers("NAdamProducts", [products, steps], values, found_inf)


@override("asgd_rates", backend="cupy")
def asgd_rates(F: Any, etas: list, mus: list, *, steps: list, **hyper: Any) -> Any:
    values = tuple([hyper[name] for name in ("lr", "lambd", "alpha", "t0")])
    return _run_on_numbers("AsgdRates", [etas, mus, steps], values, hyper.get("found_inf"))
