"""Steps of further optimizers by `optimizer_rules.cu`: one launch for all tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.backends.cupy.optimizer import complement, logarithm, served
from tensorflow_lite_clone.backends.cupy.tensor_lists import (
    THREADS,
    batches,
    function_of,
    launch,
    numbers,
    rows,
)
from tensorflow_lite_clone.dispatch.table import override

_FILE = "optimizer_rules.cu"
_step = Kernel(_FILE, "ruled_step", params=("T", "R"))
_numbers = Kernel(_FILE, "ruled_numbers", params=("R", "A"))
_f64 = np.dtype(np.float64)


def _run(
    rule: str,
    lists: list[list],
    cells: list[list],
    values: tuple,
    weight_decay: Any,
    decoupled: bool,
    maximize: bool,
    found_inf: Any,
) -> Any:
    """One launch of a rule: `lists` of data, gradients second, and `cells`, lists of numbers."""
    found = rows(lists, read=(1,))
    if found is None or not served(values[0], found_inf, [cell for cs in cells for cell in cs]):
        return NotImplemented
    padded = (*values, *[0.0] * (7 - len(values)), weight_decay)
    for dtype, places in found.items():
        launch(
            _step[dtype, rule],
            dtype,
            [(place, (*arrays, *[c[place] for c in cells])) for place, arrays in places],
            len(lists) + len(cells),
            numbers(dtype, *padded),
            found_inf,
            bool(decoupled),
            bool(maximize),
        )
    return None


def _run_on_numbers(rule: str, lists: list[list], values: tuple, found_inf: Any) -> Any:
    """One launch of a rule for lists of numbers on the device, computed in float64."""
    if not served(values[0], found_inf, [cell for cells in lists for cell in cells]):
        return NotImplemented
    packed = numbers(_f64, *values)
    places = list(enumerate(zip(*lists, strict=True)))
    for tensors, count in batches(places, len(lists), 1):
        _numbers[rule, _f64](blocks_for(count, THREADS), THREADS, tensors, packed, found_inf)
    return None


def _complements(betas: tuple) -> tuple:
    """1 - b1, ln b1, b2, 1 - b2, ln b2."""
    beta1, beta2 = betas
    return (
        function_of(beta1, complement),
        function_of(beta1, logarithm),
        beta2,
        function_of(beta2, complement),
        function_of(beta2, logarithm),
    )


@override("adadelta_step", backend="cupy")
def adadelta_step(
    F: Any,
    params: list,
    grads: list,
    squares: list,
    deltas: list,
    *,
    lr: Any,
    rho: Any,
    eps: float,
    weight_decay: Any,
    maximize: bool,
    found_inf: Any = None,
) -> Any:
    values = (lr, rho, function_of(rho, complement), eps)
    lists = [params, grads, squares, deltas]
    return _run("Adadelta", lists, [], values, weight_decay, False, maximize, found_inf)


@override("adamax_step", backend="cupy")
def adamax_step(
    F: Any,
    params: list,
    grads: list,
    means: list,
    maxima: list,
    *,
    steps: list,
    lr: Any,
    betas: tuple,
    eps: float,
    weight_decay: Any,
    maximize: bool,
    found_inf: Any = None,
) -> Any:
    values = (lr, *_complements(betas)[:3], eps)
    lists = [params, grads, means, maxima]
    return _run("Adamax", lists, [steps], values, weight_decay, False, maximize, found_inf)


@override("nadam_step", backend="cupy")
def nadam_step(
    F: Any,
    params: list,
    grads: list,
    means: list,
    squares: list,
    *,
    steps: list,
    products: list,
    lr: Any,
    betas: tuple,
    eps: float,
    weight_decay: Any,
    momentum_decay: Any,
    decoupled: bool,
    maximize: bool,
    found_inf: Any = None,
) -> Any:
    share1, _, beta2, share2, log2 = _complements(betas)
    values = (lr, share1, beta2, share2, log2, eps, momentum_decay)
    lists, cells = [params, grads, means, squares], [steps, products]
    return _run("NAdam", lists, cells, values, weight_decay, decoupled, maximize, found_inf)


@override("nadam_products", backend="cupy")
def nadam_products(
    F: Any,
    products: list,
    *,
    steps: list,
    beta1: Any,
    momentum_decay: Any,
    found_inf: Any = None,
) -> Any:
    values = beta1, momentum_decay
    return _run_on_numbers("NAdamProducts", [products, steps], values, found_inf)


@override("radam_step", backend="cupy")
def radam_step(
    F: Any,
    params: list,
    grads: list,
    means: list,
    squares: list,
    *,
    steps: list,
    lr: Any,
    betas: tuple,
    eps: float,
    weight_decay: Any,
    decoupled: bool,
    maximize: bool,
    found_inf: Any = None,
) -> Any:
    values = (lr, *_complements(betas), eps)
    lists = [params, grads, means, squares]
    return _run("RAdam", lists, [steps], values, weight_decay, decoupled, maximize, found_inf)


@override("rprop_step", backend="cupy")
def rprop_step(
    F: Any,
    params: list,
    grads: list,
    previous: list,
    sizes: list,
    *,
    etas: tuple,
    step_sizes: tuple,
    maximize: bool,
    found_inf: Any = None,
) -> Any:
    values = (*etas, *step_sizes)
    lists = [params, grads, previous, sizes]
    return _run("Rprop", lists, [], values, 0.0, False, maximize, found_inf)


@override("asgd_step", backend="cupy")
def asgd_step(
    F: Any,
    params: list,
    grads: list,
    averages: list,
    *,
    etas: list,
    mus: list,
    lambd: Any,
    weight_decay: Any,
    maximize: bool,
    found_inf: Any = None,
) -> Any:
    lists = [params, grads, averages]
    return _run("Asgd", lists, [etas, mus], (lambd,), weight_decay, False, maximize, found_inf)


@override("asgd_rates", backend="cupy")
def asgd_rates(
    F: Any,
    etas: list,
    mus: list,
    *,
    steps: list,
    lr: Any,
    lambd: Any,
    alpha: Any,
    t0: Any,
    found_inf: Any = None,
) -> Any:
    values = lr, lambd, alpha, t0
    return _run_on_numbers("AsgdRates", [etas, mus, steps], values, found_inf)
