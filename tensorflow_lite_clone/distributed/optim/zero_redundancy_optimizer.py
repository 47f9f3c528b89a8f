"""An optimizer of whose state each process of a group keeps a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorflow_lite_clone.distributed.collectives import broadcast
from tensorflow_lite_clone.distributed.distributed_c10d import _get_default_group
from tensorflow_lite_clone.distributed.objects import gather_object
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_map

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeROJoinHook(JoinHook):
    """A process without batches takes its part in the steps of the others."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """``optimizer_class(params, **defaults)``, whose state all processes of a group share out.

    Every process has all parameters and all gradients, as with `DistributedDataParallel`; each
    updates the parameters that are its own, and sends them to the others. The parameters of each
    group, the largest first, go to the process that has the fewest elements so far.

    `params` are parameters or groups of them, in the same order everywhere. With
    `parameters_as_bucket_view` those of one process and dtype lie in one piece of memory, and
    travel together. Hyperparameters in ``param_groups`` may be changed, by schedules, say.

    Raises:
        NotImplementedError: `overlap_with_ddp`: steps begin when all gradients are there.
        RuntimeError: `state_dict` without `consolidate_state_dict` before.

    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models" (2020), stage 1.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "overlap_with_ddp: a step begins when all gradients have been reduced"
            )
        self.process_group = process_group or _get_default_group()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._owners: dict[Tensor, int] = {}
        self._loads = [0] * self.process_group.size()
        self._buckets: list[tuple[int, Tensor]] = []
        self._collected: list[dict[int, Any]] | None = None
        self.optim: Optimizer | None = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self.optim = optimizer_class([self._own(group) for group in self.param_groups], **defaults)
        self._take(self.optim.param_groups, self.param_groups)
        self.state = self.optim.state
        self._lay_out()

    # -- who has what -------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, which are shared out as the others."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for parameter in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
            rank = self._loads.index(min(self._loads))
            self._owners[parameter] = rank
            self._loads[rank] += parameter.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._own(group))
            self._take(self.optim.param_groups, self.param_groups)
            self._lay_out()

    def _own(self, group: dict[str, Any]) -> dict[str, Any]:
        """The group with this process's parameters alone."""
        rank = self.process_group.rank()
        owned = [self._owners[p] == rank for p in group["params"]]
        own = {
            key: [value for value, kept in zip(values, owned, strict=True) if kept]
            for key, values in group.items()
            if key in ("params", "param_names")
        }
        return {**group, **own}

    @no_grad()
    def _lay_out(self) -> None:
        """Say which tensors travel: parameters, or pieces of memory in which they lie."""
        self._buckets = [(rank, p.detach()) for p, rank in self._owners.items()]
        if not self.parameters_as_bucket_view:
            return
        together: dict[tuple, list[Tensor]] = {}
        for parameter, rank in self._owners.items():
            together.setdefault((rank, parameter.dtype, parameter.device), []).append(parameter)
        self._buckets = []
        for (rank, _, _), parameters in together.items():
            bucket = cat([parameter.detach().reshape(-1) for parameter in parameters])
            places = bucket.split([parameter.numel() for parameter in parameters])
            for parameter, place in zip(parameters, places, strict=True):
                parameter.data = place.view(parameter.shape)
            self._buckets.append((rank, bucket))

    # -- steps --------------------------------------------------------------------------------

    @property
    def _step_supports_amp_scaling(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.optim, "_step_supports_amp_scaling", False))

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's parameters, and get those of the others; returns the loss.

        All processes call it; with `closure` in all.
        """
        Join.notify_join_context(self)
        assert self.optim is not None
        self._take(self.param_groups, self.optim.param_groups)
        self.optim.found_inf = self.found_inf
        loss = self.optim.step(closure, **kwargs)
        self._take(self.optim.param_groups, self.param_groups)
        works = [
            broadcast(tensor, group=self.process_group, async_op=True, group_src=rank)
            for rank, tensor in self._buckets
        ]
        for work in works:
            if work is not None:
                work.wait()
        self._collected = None
        return loss

    @staticmethod
    def _take(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        """Let groups have the hyperparameters of others."""
        for source_value, target_value in zip(source, target, strict=True):
            for key, value in source_value.items():
                if key not in ("params", "param_names"):
                    target_value[key] = value

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process does that has no batches left: it goes on stepping."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return next(iter(self._owners)).device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group."""
        return self.process_group

    # -- state --------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states together on the CPU of the process `to` of the world, for `state_dict`.

        All processes call it.
        """
        assert self.optim is not None
        state = tree_map(
            lambda x: x.cpu() if isinstance(x, Tensor) else x, self.optim.state_dict()["state"]
        )
        group = self.process_group
        received: list[Any] | None = [None] * group.size() if group.rank() == to else None
        gather_object(state, received, dst=to, group=group)
        self._collected = received

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters; after `consolidate_state_dict`, in its process.

        Raises RuntimeError elsewhere, and when there was a step since.
        """
        if self._collected is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.process_group.rank()})` on all ranks "
                "beforehand if you meant to save the global state."
            )
        order = [p for group in self.param_groups for p in group["params"]]
        counts = [0] * self.process_group.size()
        state = {}
        for number, parameter in enumerate(order):
            rank = self._owners[parameter]
            entry = self._collected[rank].get(counts[rank])
            counts[rank] += 1
            if entry is not None:
                state[number] = entry
        groups, first = [], 0
        for group in self.param_groups:
            numbers = list(range(first, first + len(group["params"])))
            groups.append({**group, "params": numbers})
            first += len(numbers)
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what `state_dict`, or that of the inner optimizer alone, gave.

        Each process keeps what is its own. Raises ValueError when the groups do not match.
        """
        assert self.optim is not None
        saved = state_dict["param_groups"]
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        rank, state, groups = self.process_group.rank(), {}, []
        for group, saved_group in zip(self.param_groups, saved, strict=True):
            numbers = []
            for parameter, number in zip(group["params"], saved_group["params"], strict=True):
                if self._owners[parameter] == rank:
                    numbers.append(number)
                    if number in state_dict["state"]:
                        state[number] = state_dict["state"][number]
            groups.append({**saved_group, "params": numbers})
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state
        self._take(self.optim.param_groups, self.param_groups)
        self._collected = None
