"""Parameters averaged over the processes of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.distributed_c10d import get_rank
from tensorflow_lite_clone.distributed.flat_buffer import FlatBuffer, alike
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.tensor import Parameter

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]

Groups = Iterable[Parameter] | Iterable[dict[str, Any]]


@no_grad()
def average_parameters(params: Iterable[Parameter], process_group: Any) -> None:
    """Replace parameters by their averages over a group; nothing in processes outside of it."""
    if get_rank(process_group) < 0:
        return
    for part in alike([parameter.detach() for parameter in params], float("inf")):
        flat = FlatBuffer(part)
        flat.fill(part)
        all_reduce(flat.memory, ReduceOp.AVG, process_group)
        flat.spill(part)


def get_params_to_average(params: Groups) -> list[Parameter]:
    """The parameters that have a gradient, of a sequence or of the groups of an optimizer."""
    found: list[Parameter] = []
    for each in params:
        if isinstance(each, Parameter):
            members = [each]
        elif isinstance(each, dict):
            members = each["params"]
        else:
            raise NotImplementedError(
                f"Parameter input of type {type(each)} is not supported: it should be a parameter "
                "or a group of an optimizer"
            )
        found += [parameter for parameter in members if parameter.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Groups, process_group: Any) -> None:
    """`average_parameters` of those that have a gradient."""
    average_parameters(get_params_to_average(params), process_group)
