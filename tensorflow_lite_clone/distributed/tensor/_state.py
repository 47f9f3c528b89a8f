"""The state dicts of modules whose parameters are parts."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed import norms  # noqa: F401  (which are entered)
from tensorflow_lite_clone.distributed.tensor._dtensor import DTensor, LocalParameter
from tensorflow_lite_clone.distributed.tensor._moves import part_of
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.tensor import Tensor


def show_wholes(module: Module) -> None:
    """From now on the module's state dict has `DTensor`s for those parameters that are parts.

    It loads them, however they are placed, and whole tensors.
    """
    if not module.__dict__.get("_shows_wholes"):
        module._shows_wholes = True
        module._register_state_dict_hook(_show)
        module.register_load_state_dict_pre_hook(_take_parts)


def _parts(module: Module) -> list[tuple[str, LocalParameter]]:
    members = module._parameters.items()
    return [(name, value) for name, value in members if isinstance(value, LocalParameter)]


def _show(module: Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    for name, parameter in _parts(module):
        value = state.get(prefix + name)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):  # as with `keep_vars`
            state[prefix + name] = DTensor(value, parameter._spec)


def _take_parts(
    module: Module, state: dict[str, Any], prefix: str, metadata: dict[str, Any], *_: Any
) -> None:
    for name, parameter in _parts(module):
        value, layout = state.get(prefix + name), parameter._spec
        if isinstance(value, DTensor):
            value = value.redistribute(layout.mesh, layout.placements)
        elif isinstance(value, Tensor) and value.shape == layout.shape:
            value = DTensor(part_of(value.detach(), layout), layout)
        else:
            continue
        assign = metadata.get("assign_to_params_buffers")
        state[prefix + name] = Parameter(value) if assign else value.to_local()
