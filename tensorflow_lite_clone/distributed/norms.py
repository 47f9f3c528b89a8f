"""Norms of tensors of which other processes have parts, for the clipping of gradients.

A parameter that is a part says by `groups_of_parts` in which groups the other parts are: one group
for each cut.
"""

from __future__ import annotations

from math import inf
from typing import Any

from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.nn.utils.clip_grad import get_total_norm
from tensorflow_lite_clone.ops.linalg.norms import vector_norm
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor

Groups = tuple[ProcessGroup, ...]


@late_bound.norm_over_processes.provide
def norm_over_processes(
    parameters: list[Tensor], entries: list[Tensor], order: float
) -> Tensor | None:
    """The norm of whole gradients, of which some are cut; None if none is.

    All processes of the groups have to ask. For the order p it is the p-th root of the sum over
    processes of their parts' norms to the power of p; for infinity the largest of them.
    """
    known = [parameter for parameter in parameters if parameter.grad is not None]
    pairs: Any = zip(entries, entries) if parameters is entries else zip(known, entries)
    by_groups: dict[Groups, list[Tensor]] = {}
    for parameter, gradient in pairs:
        part = gradient.to_local() if hasattr(gradient, "to_local") else gradient
        by_groups.setdefault(getattr(parameter, "groups_of_parts", ()), []).append(part)
    if not any(by_groups):
        return None
    device = entries[0].device
    norms = [_over(parts, order, groups).to(device) for groups, parts in by_groups.items()]
    return norms[0] if len(norms) == 1 else vector_norm(stack(norms), order)


def _over(parts: list[Tensor], order: float, groups: Groups) -> Tensor:
    present = [part for part in parts if part.numel()]
    norm = get_total_norm(present, order) if present else parts[0].new_zeros(())
    if not groups:
        return norm
    norm = groups[0].carriable(norm)
    power = norm if order == inf else norm**order
    for group in groups:
        all_reduce(power, ReduceOp.MAX if order == inf else ReduceOp.SUM, group)
    return power if order == inf else power ** (1 / order)
