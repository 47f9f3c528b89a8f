"""Modules whose parameters are parts: their state dicts, and the norm of their gradients."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributed import collectives
from tensorflow_lite_clone.distributed.distributed_c10d import ReduceOp
from tensorflow_lite_clone.distributed.tensor._dtensor import DTensor, LocalParameter
from tensorflow_lite_clone.distributed.tensor._moves import move
from tensorflow_lite_clone.distributed.tensor.placement_types import Replicate, Shard
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.nn.utils import clip_grad
from tensorflow_lite_clone.ops.join import stack
from tensorflow_lite_clone.ops.norms import vector_norm
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
            whole = layout.with_placements((Replicate(),) * layout.mesh.ndim)
            value = DTensor(move(value.detach(), whole, layout.placements), layout)
        else:
            continue
        assign = metadata.get("assign_to_params_buffers")
        state[prefix + name] = Parameter(value) if assign else value.to_local()


def _norm_of_wholes(
    parameters: list[Tensor], grads: list[Tensor], order: float
) -> Tensor | None:
    """The norm of the gradients of all parameters, those of other processes' parts included.

    A part's powers are summed over the dimensions of the mesh that cut it. None where no parameter
    is a part.
    """
    by_cuts: dict[tuple, list[Tensor]] = {}
    for parameter in parameters:
        cuts: tuple = ()
        if isinstance(parameter, LocalParameter):
            mesh, placements = parameter.device_mesh, parameter.placements
            cut = tuple([i for i, place in enumerate(placements) if isinstance(place, Shard)])
            cuts = (mesh, cut) if cut else ()
        if parameter.grad is not None:
            by_cuts.setdefault(cuts, []).append(parameter.grad)
    if not any(by_cuts):
        return None
    norms = []
    for cuts, grads in by_cuts.items():
        norm = clip_grad.get_total_norm(grads, order)
        if cuts:
            mesh, dims = cuts
            infinite = math.isinf(order)
            norm = norm if infinite else norm**order
            for dim in dims:
                op = ReduceOp.MAX if infinite else ReduceOp.SUM
                collectives.all_reduce(norm, op, mesh.get_group(dim))
            norm = norm if infinite else norm ** (1 / order)
        norms.append(norm)
    return vector_norm(stack(norms), order)


clip_grad.norms_over_processes.append(_norm_of_wholes)
