"""Transforms of functions, as ``torch.func``."""

from __future__ import annotations

from tensorflow_lite_clone.func import _functions  # noqa: F401  custom functions
from tensorflow_lite_clone.func._functionalize import debug_unwrap, functionalize
from tensorflow_lite_clone.func._gradients import grad, grad_and_value, jvp, linearize, vjp
from tensorflow_lite_clone.func._jacobians import hessian, jacfwd, jacrev
from tensorflow_lite_clone.func._modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from tensorflow_lite_clone.func._rearrange import rearrange
from tensorflow_lite_clone.func._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
