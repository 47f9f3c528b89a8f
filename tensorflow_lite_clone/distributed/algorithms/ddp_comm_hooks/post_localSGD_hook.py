"""A hook for processes that train in small groups, whose models are averaged now and then."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
)
from tensorflow_lite_clone.distributed.grad_bucket import GradBucket
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.tensor import Tensor


class PostLocalSGDState:
    """Until iteration `start_localSGD_iter` gradients are averaged over `process_group`.

    From then on they are over `subgroup`, or with `post_local_gradient_allreduce` False not at
    all; a `PeriodicModelAverager` that begins then is to average the models.
    """

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,  # noqa: N803  (PyTorch's name)
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        if subgroup is None and post_local_gradient_allreduce:
            raise ValueError("subgroup: expected the group of this process, not None")
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(  # noqa: N802  (PyTorch's name)
    state: PostLocalSGDState, bucket: GradBucket
) -> Future[Tensor]:
    """The average of gradients over the group whose turn it is.

    Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD" (2018).
    """
    is_local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if is_local and not state.post_local_gradient_allreduce:
        done: Future[Tensor] = Future()
        done.set_result(bucket.buffer())
        return done
    return allreduce_hook(state.subgroup if is_local else state.process_group, bucket)
