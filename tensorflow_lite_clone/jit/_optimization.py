"""What asks the TorchScript compiler for faster code: checked as PyTorch does, and left at that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.jit._modules import ScriptModule


class _Settings:
    onednn_fusion = False
    fusion_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]  # noqa: RUF012


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> Any:
    """The module itself, which must be scripted and in evaluation mode: RuntimeError otherwise.

    Its parameters stay parameters, where PyTorch makes constants of them.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """The module itself, in evaluation mode; RuntimeError where it is not scripted."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    return freeze(mod.eval())


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Nothing."""


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context that changes nothing."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """A context that changes nothing; `name` is ``fuser0`` to ``fuser3``."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """A context that changes nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keep the strategy, nothing more; gives the one that was set before."""
    before, _Settings.fusion_strategy = _Settings.fusion_strategy, strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Set what `onednn_fusion_enabled` says, nothing more."""
    _Settings.onednn_fusion = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was told."""
    return _Settings.onednn_fusion
