"""Modules whose parameters lie on a mesh."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.tensor._dtensor import LocalParameter, distribute_tensor
from tensorflow_lite_clone.distributed.tensor._layout import mesh_or_current
from tensorflow_lite_clone.distributed.tensor._state import show_wholes
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Lay a module's parameters out on a mesh, in place; returns the module.

    ``partition_fn(name, module, mesh)`` is called for the module and all below it, and may put
    ``nn.Parameter(distribute_tensor(...))`` in place of parameters; all others are repeated.
    ``input_fn(module, inputs, mesh)`` and ``output_fn(module, outputs, mesh)`` convert what goes in
    and comes out. RuntimeError for a module that has been laid out before.
    """
    mesh = mesh_or_current(device_mesh)
    if module.__dict__.get("_distribute_module_applied"):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been "
            "called on this module!"
        )
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        lay_out(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(partial(_convert_inputs, input_fn, mesh))
    if output_fn is not None:
        module.register_forward_hook(partial(_convert_outputs, output_fn, mesh))
    module._distribute_module_applied = True
    return module


def lay_out(
    module: Module,
    mesh: DeviceMesh,
    src_data_rank: int | None = 0,
    **placements: Any,
) -> None:
    """Make a module's own parameters parts: placed as said by name, else repeated."""
    for name, value in module._parameters.items():
        if value is not None and not isinstance(value, LocalParameter):
            places = placements.get(name)
            whole = distribute_tensor(value, mesh, places, src_data_rank=src_data_rank)
            module.register_parameter(name, Parameter(whole, value.requires_grad))
    show_wholes(module)


def _convert_inputs(convert: Callable[..., Any], mesh: DeviceMesh, module: Any, inputs: Any) -> Any:
    return convert(module, inputs, mesh)


def _convert_outputs(
    convert: Callable[..., Any], mesh: DeviceMesh, module: Any, inputs: Any, outputs: Any
) -> Any:
    return convert(module, outputs, mesh)
