"""Modules as functions of their state, as ``torch.func``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.nn.modules.batchnorm import _BatchNorm
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils.stateless import _functional_call
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with other tensors in place of parameters and buffers.

    The dictionaries map names as in the state_dict to tensors; names that are left out keep the
    module's own. With `tie_weights` a tensor that the module holds under several names is replaced
    under all of them. `strict` makes missing and unknown names an error (RuntimeError).
    ValueError: a name stands in two dictionaries, or tied names have different tensors.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        values = dict(parameter_and_buffer_dicts)
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        for entry in parameter_and_buffer_dicts:
            if not isinstance(entry, dict):
                raise ValueError(
                    "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
                )
        names = [name for entry in parameter_and_buffer_dicts for name in entry]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        values = {name: v for entry in parameter_and_buffer_dicts for name, v in entry.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, values, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of models of one class, stacked by name along a new dimension 0.

    Stacked parameters are new leaves. Raises RuntimeError when the models are none, or differ in
    class or mode.
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    buffers = _stacked([dict(model.named_buffers()) for model in models])
    return parameters, buffers


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    result = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        if len({tensor.requires_grad for tensor in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = stack([tensor.detach() for tensor in tensors])
        result[name] = stacked.requires_grad_(tensors[0].requires_grad)
    return result


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch normalisation in `root` keep no running statistics; gives back `root`.

    Running statistics are written in place, which a function of vmap must not do.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
