"""Automatic differentiation: modes, graph, engine and what is built on them."""

from __future__ import annotations

from tensorflow_lite_clone.autograd import attributes as _attributes  # noqa: F401  binds them
from tensorflow_lite_clone.autograd.gradients import backward, grad
from tensorflow_lite_clone.autograd.mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
