"""Gradients of a loss for each sample of a batch, as ``torch.nn.utils._per_sample_grad``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorflow_lite_clone.core.late_bound import vmap
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils.stateless import _functional_call
from tensorflow_lite_clone.tensor import Tensor


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """`module` as a function whose backward gives a gradient per sample.

    They are the parameters' attribute `grad_sample`, with the samples in dimension 0; `grad` stays
    as it is. `loss_reduction`, "sum" or "mean", is what the loss does over the samples. These are
    dimension 0 of all tensors given, or 1 if not `batch_first`. The module must do the same with
    each sample whatever the others are. RuntimeError for arguments that do not fit, and where a
    parameter still has a `grad_sample`.
    """
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for "
                "multiple calls without clearing gradients. Please clear out the grad_sample "
                f"parameter of {parameter} or post an issue to pytorch/pytorch to prioritize "
                "correct behavior"
            )
    dim = 0 if batch_first else 1

    @wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        tensors = {key: value for key, value in given.items() if isinstance(value, Tensor)}
        size = _batch_size(list(tensors.values()), dim, batch_size)
        weights = {
            name: _one_per_sample(parameter, size, loss_reduction)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }

        def one(weights: dict[str, Tensor], tensors: dict[Any, Tensor]) -> Any:
            given.update({key: value.unsqueeze(dim) for key, value in tensors.items()})
            positional = tuple(given[i] for i in range(len(args)))
            named = {key: given[key] for key in kwargs}
            return _functional_call(module, weights, positional, named).squeeze(dim)

        mapped = vmap(one, in_dims=(0, dim), out_dims=dim, randomness="different")
        return mapped(weights, tensors)

    return call


def _batch_size(tensors: list[Tensor], dim: int, given: int | None) -> int:
    sizes = [tensor.shape[dim] for tensor in tensors]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify "
            "it explicitly"
        )
    for size in sizes[1:]:
        if size != sizes[0] and given is None:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {sizes[0]} "
                f"and one with batch size {size}. Please specify it explicitly using the batch "
                "size kwarg in call_for_per_sample_grads"
            )
    if given is not None and given != sizes[0]:
        raise RuntimeError(
            "Expected ExpandedWeights to have batch size matching input but got input batch size "
            f"of {sizes[0]} with ExpandedWeight of batch size {given}"
        )
    return sizes[0]


def _one_per_sample(parameter: Any, size: int, loss_reduction: str) -> Tensor:
    """`parameter` repeated along a new dimension 0; its gradient becomes `grad_sample`."""
    repeated = parameter.detach().expand(size, *parameter.shape).requires_grad_()

    def keep(grad: Tensor) -> None:
        found = grad * size if loss_reduction == "mean" else grad
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = found if before is None else before + found

    repeated.register_hook(keep)
    return repeated
