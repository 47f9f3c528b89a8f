"""Automatic differentiation: modes, graph, engine and what is built on them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from tensorflow_lite_clone import _absent
from tensorflow_lite_clone.autograd import anomaly as anomaly_mode
from tensorflow_lite_clone.autograd import (
    attributes,  # noqa: F401  binds a tensor's side of the graph
    function,
)
from tensorflow_lite_clone.autograd import mode as grad_mode
from tensorflow_lite_clone.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.autograd.gradcheck import gradcheck, gradgradcheck
from tensorflow_lite_clone.autograd.gradients import backward, grad
from tensorflow_lite_clone.autograd.mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from tensorflow_lite_clone.autograd.variable import Variable
from tensorflow_lite_clone.core.compat_path import mount_compat

mount_compat(__path__, __name__)


def variable(*args: Any, **kwargs: Any) -> NoReturn:
    """Always RuntimeError: the function that PyTorch had before `torch.tensor`."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


def _profiler_enabled() -> bool:
    """False: no profiler of PyTorch's engine runs."""
    return False


def _disable_profiler() -> None:
    """Nothing: none runs. Lightning's profiler would stop one."""


def _is_checkpoint_valid() -> bool:
    """True: checkpoints may be used in every backward pass."""
    return True


#: Parts that lie above, and are imported when they are named.
_LAZY = ("forward_ad", "functional", "graph", "profiler")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    raise _absent.error(f"module '{__name__}'", "torch.autograd", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [  # noqa: F822  some are lazy
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
