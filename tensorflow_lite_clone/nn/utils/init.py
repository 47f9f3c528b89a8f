"""Modules without initial values, as ``torch.nn.utils.init``."""

from __future__ import annotations

import inspect
from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """``module_cls(*args, **kwargs)`` without drawing values for its parameters.

    What they hold is not specified. RuntimeError unless it is a Module class whose constructor
    takes a `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
