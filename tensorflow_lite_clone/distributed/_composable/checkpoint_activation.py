"""Activation checkpointing of a module in its place."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.utils.checkpoint import checkpoint as checkpointed

_OPTIONS = ("context_fn", "debug", "determinism_check", "early_stop", "preserve_rng_state")


def checkpoint(module: Module, **kwargs: Any) -> Module:
    """Let the activations of `module` be calculated again in the backward pass; it stays the
    module that it is, with the same parameters by the same names.

    Keywords are those of ``utils.checkpoint.checkpoint``, which runs in the form without an inner
    backward pass. Raises ValueError for others, AssertionError for a module that has been here.
    """
    unknown = [name for name in kwargs if name not in _OPTIONS]
    if unknown:
        raise ValueError(f"Unexpected keyword arguments: {','.join(unknown)}")
    forward = module.forward
    if isinstance(forward, partial) and forward.func is checkpointed:
        raise AssertionError(
            "Each distinct composable distributed API can only be applied to a module once. "
            f"checkpoint has already been applied to the following module:\n{module}"
        )
    module.forward = partial(checkpointed, forward, use_reentrant=False, **kwargs)  # type: ignore[method-assign]
    return module
