"""Kernels for steps of optimizers: one launch for all tensors of a dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.dynamic_scalar import DynamicScalar
from tensorflow_lite_clone.core.hyper import Hyper
from tensorflow_lite_clone.core.late_bound import launch_step
from tensorflow_lite_clone.dispatch.table import override
from tensorflow_lite_clone.kernels.kernel import Kernel


def fused_step(
    name: str,
    kernel: Kernel,
    numbers: Callable[[Any], tuple],
    *,
    cells: tuple[str, ...] = (),
    flags: tuple[str, ...] = ("maximize",),
    template: Callable[[Any], tuple] = lambda h: (),
) -> None:
    """Override the step `name` on CUDA by a kernel that updates all tensors of a dtype in place.

    Its template arguments are the dtype and ``template(h)``, `h` having the hyperparameters by
    their names. With the structs of ``tensors.cuh`` and `float* found_inf` it takes

    * `Tensors`: parameters, gradients (which it only reads) and those lists of states that are
      kept; then the arguments of the step that `cells` names, lists of float32 scalars on the
      device such as ``steps``;
    * `Numbers`: ``numbers(h)``, up to eight. What is computed from a hyperparameter is given as
      `function_of` it, so that a captured step computes it anew at every replay;
    * `found_inf`, which may be null: where it is set, nothing changes;
    * the hyperparameters that `flags` names, as an `int` each.

        kernel = Kernel("lion.cu", "lion_step", params=("T",))
        fused_step("lion_step", kernel, lambda h: (h.lr, *h.betas, h.weight_decay))

    The kernel is compiled for blocks of 256 threads, and a block is given 4096 bytes of a tensor.
    Lists in which dtypes or layouts differ at one place are declined: the step's rule then runs.
    """

    def run(F: Any, *lists: list, found_inf: Any = None, **hyper: Any) -> Any:
        h = Hyper(hyper)
        return launch_step(
            kernel,
            template(h),
            [arrays for arrays in lists if arrays],
            [hyper[cell] for cell in cells],
            lambda: numbers(h),
            [bool(hyper.get(flag)) for flag in flags],
            lr=hyper.get("lr"),
            found_inf=found_inf,
        )

    override(name, backend="cupy")(run)


def function_of(value: float, function: Callable[[float], float]) -> float:
    """``function(value)``, dynamic if `value` is."""
    return value.map(function) if value.__class__ is DynamicScalar else function(value)


def complement(x: float) -> float:
    """1 - x."""
    return 1 - x


def logarithm(x: float) -> float:
    """ln x, of 0 too."""
    return math.log(x) if x > 0 else -math.inf
