"""Gradient clipping."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.late_bound import norm_over_processes
from tensorflow_lite_clone.ops.create.constructors import scalar_tensor
from tensorflow_lite_clone.ops.linalg.norms import vector_norm
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.ops.update import (
    by_device,
    clamp_each,
    clip_to_norm,
    of_one_kind,
    total_norm,
    update,
)
from tensorflow_lite_clone.tensor import Tensor

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors' elements together, as a zero-dim tensor.

    RuntimeError with `error_if_nonfinite` when it is NaN or infinite.
    """
    entries = _listed(tensors)
    return _norm(entries, entries, float(norm_type), error_if_nonfinite)


def _norm(
    parameters: list[Tensor], grads: list[Tensor], norm_type: float, error_if_nonfinite: bool
) -> Tensor:
    total: Tensor | None = norm_over_processes(parameters, grads, norm_type)
    if total is None:
        total = _norm_of_own(grads, norm_type)
    if error_if_nonfinite and not total.is_meta and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _norm_of_own(entries: list[Tensor], norm_type: float) -> Tensor:
    if not entries:
        return scalar_tensor(0.0)
    if of_one_kind(entries):
        return total_norm(entries, norm_type)
    device = entries[0].device
    norms = [vector_norm(entry, norm_type).to(device) for entry in entries]
    return vector_norm(stack(norms), norm_type)


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients in place by max_norm / total_norm if that is below one."""
    grads = _gradients(parameters)
    if of_one_kind([*grads, total_norm]):
        if grads:
            update(clip_to_norm, grads, [total_norm], max_norm=float(max_norm))
        return
    coefficient = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(coefficient.to(g.device))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that their norm together is at most `max_norm`.

    Returns the norm before, without reading it back from the device.
    """
    entries = _listed(parameters)
    with no_grad():
        total = _norm(entries, _gradients(entries), float(norm_type), error_if_nonfinite)
    clip_grads_with_norm_(entries, float(max_norm), total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of `clip_grad_norm_`; deprecated (FutureWarning)."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: Any, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients in place to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for part in by_device(_gradients(parameters)):
        update(clamp_each, part, read=(), low=-clip_value, high=clip_value)
